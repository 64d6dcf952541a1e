"""Subtask 4: which note sentences support which answer sentence, scored over (answer id, evidence id) pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from archehr.data.case import Gold
from archehr.metrics.counts import ROW, Array, Counts, count_rows, micro_macro, precision_recall_f1
from archehr.metrics.leaderboard import CaseTable

Pair = tuple[str, str]

# Unlike subtask 2, a case without gold links scores 0 even if none was predicted (official scoring_subtask_4.py).
BOTH_EMPTY = 0.0


def count_links(links: Iterable[Pair], gold: AbstractSet[Pair]) -> Counts:
    """Counts of one case over pairs; repeats count once."""
    predicted = set(links)
    return Counts(len(predicted & gold), len(predicted), len(gold))


def link_pairs(links: Iterable[Any] | None) -> list[Pair]:
    """Links (each with an `answer_id` and `evidence_ids`) as (answer id, evidence id) pairs."""
    return [(link.answer_id, i) for link in links or () for i in link.evidence_ids]


def scored_links(answered: Any) -> Any:
    """The links that subtask 4 scores, of a prediction or a record: those of the clinician's answer sentences where
    the case gives these, else those of the program's own."""
    links = getattr(answered, "given_links", None)
    return getattr(answered, "links", None) if links is None else links


def alignment_f1(links: Iterable[Pair], gold: Gold) -> float:
    """F1 (0-1) of one case's (answer id, evidence id) pairs, as in the official macro average.

    A key without citations has no gold pairs, hence 0.
    """
    counts = count_links(links, gold.links or frozenset())
    return float(precision_recall_f1(counts.tp, counts.n_pred, counts.n_gold, both_empty=BOTH_EMPTY)[2])


def alignment_table(case_ids: Sequence[str], counts: Sequence[Counts]) -> CaseTable:
    """The table of subtask 4."""
    return CaseTable(tuple(case_ids), ROW, count_rows(counts, both_empty=BOTH_EMPTY), _board)


def _board(totals: Array, n: int) -> dict[str, Array]:
    # The official scorer writes 0, not NaN, for the macro average of no cases.
    scores = micro_macro(totals, n, both_empty=BOTH_EMPTY, no_cases=0.0)
    return scores | {"overall_score": scores["micro_f1"]}
