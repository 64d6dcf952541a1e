"""Where to cut: which scores of ScoreSentences count as evidence, chosen on scores of cases that were no demo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from archehr.data.case import Case
from archehr.metrics.components import headline
from archehr.metrics.evidence import case_counts, evidence_table
from archehr.program.run.records import CaseRecord
from archehr.program.settings import PipelineSettings
from archehr.program.stages.registry import STAGES
from archehr.program.stages.score_sentences import select_evidence

LIKERT = (1, 2, 3, 4, 5)


class Reliability(NamedTuple):
    """How often a score value was given, and to how many sentences of each label."""

    score: int
    sentences: int
    essential: int
    supplementary: int


def fit_cut(records: Sequence[CaseRecord], cases: Sequence[Case], settings: PipelineSettings) -> PipelineSettings:
    """`settings` with the cut and relaxed cut of the best pooled strict micro F1; of equals the higher cut, then the
    higher relaxed cut. Without labels, or scores, `settings` as they are."""
    pairs = scored_pairs(records, cases)
    if not pairs:
        return settings
    choices = [
        settings.model_copy(update={"cut": cut, "relaxed_cut": relaxed})
        for cut in LIKERT
        for relaxed in LIKERT
        if relaxed <= cut
    ]
    return max(choices, key=lambda s: (strict_micro_f1(pairs, s), s.cut, s.relaxed_cut))


def strict_micro_f1(pairs: Sequence[tuple[CaseRecord, Case]], settings: PipelineSettings) -> float:
    """Subtask 2's headline score (0-100) of records already scored, were they cut so."""
    counts = []
    for record, case in pairs:
        assert case.gold is not None
        counts.append(case_counts(select_evidence(record.scores or [], settings)[0], case.gold))
    board = evidence_table([case.id for _, case in pairs], counts).leaderboard()
    return board[headline(2, board)]


def reliability(records: Sequence[CaseRecord], cases: Sequence[Case]) -> list[Reliability]:
    """One row per score value, highest first: what a 5 or a 4 of this LM is worth."""
    rows = []
    for value in reversed(LIKERT):
        ids = [
            (case.gold, s.id) for r, case in scored_pairs(records, cases) for s in r.scores or () if s.score == value
        ]
        essential = sum(i in gold.essential for gold, i in ids if gold)
        supplementary = sum(i in gold.supplementary for gold, i in ids if gold)
        rows.append(Reliability(value, len(ids), essential, supplementary))
    return rows


def scored_pairs(records: Sequence[CaseRecord], cases: Sequence[Case]) -> list[tuple[CaseRecord, Case]]:
    """The records that were scored, with their cases, as far as every sentence of these is labelled."""
    known = {c.id: c for c in cases if STAGES["score"].measures(c)}
    return [(r, known[r.case_id]) for r in records if r.scores is not None and r.case_id in known]
