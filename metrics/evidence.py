"""Subtask 2: which note sentences are evidence, strict and lenient, as the official scorer counts them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from archehr.data.case import Gold
from archehr.metrics.counts import ROW, Array, Counts, count_rows, micro_macro, precision_recall_f1
from archehr.metrics.leaderboard import CaseTable

# An answer that needs no evidence, and got none, is right (official scoring_subtask_2.py).
BOTH_EMPTY = 1.0
_VARIANTS = ("strict", "lenient")


@dataclass(frozen=True, slots=True)
class EvidenceCounts(Counts):
    """Strict counts of a case. Lenient scoring differs in one number only: what counts as predicted."""

    n_pred_lenient: int

    @property
    def lenient(self) -> Counts:
        """The same case with its supplementary predictions taken out."""
        return Counts(self.tp, self.n_pred_lenient, self.n_gold)


def count_evidence(
    predicted: Iterable[str], essential: AbstractSet[str], supplementary: AbstractSet[str]
) -> EvidenceCounts:
    """Counts of one case. Gold is `essential`; lenient scoring drops supplementary predictions before it counts.

    An id labelled both essential and supplementary is essential.
    """
    picked = set(predicted)
    return EvidenceCounts(
        len(picked & essential), len(picked), len(essential), len(picked - (supplementary - essential))
    )


def case_counts(predicted: Iterable[str], gold: Gold) -> EvidenceCounts:
    """Counts of one case: predicted sentence ids against the key's labels."""
    return count_evidence(predicted, gold.essential, gold.supplementary)


def strict_f1(predicted: Iterable[str], gold: Gold) -> float:
    """F1 (0-1) of one case against its essential sentences, as in the official macro average."""
    counts = case_counts(predicted, gold)
    return float(precision_recall_f1(counts.tp, counts.n_pred, counts.n_gold, both_empty=BOTH_EMPTY)[2])


def evidence_table(case_ids: Sequence[str], counts: Sequence[EvidenceCounts]) -> CaseTable:
    """The table of subtask 2: strict columns, then lenient ones."""
    rows = [count_rows(c, both_empty=BOTH_EMPTY) for c in (counts, [c.lenient for c in counts])]
    columns = tuple(f"{variant}_{name}" for variant in _VARIANTS for name in ROW)
    return CaseTable(tuple(case_ids), columns, np.column_stack(rows), _board)


def _board(totals: Array, n: int) -> dict[str, Array]:
    scores: dict[str, Array] = {}
    for i, variant in enumerate(_VARIANTS):
        block = totals[..., i * len(ROW) : (i + 1) * len(ROW)]
        # The official macro average of no cases is NaN.
        averages = micro_macro(block, n, both_empty=BOTH_EMPTY, no_cases=np.nan)
        scores |= {
            f"{variant}_{average}_{name}": averages[f"{average}_{name}"]
            for average in ("macro", "micro")
            for name in ROW[3:]
        }
    return scores | {"overall_score": scores["strict_micro_f1"]}
