"""Where programs differ: per case, the scores beside the baseline's, evidence and links gained and lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archehr.data.case import Case
from archehr.metrics.alignment import Pair, link_pairs, scored_links
from archehr.optimize.compare.compare import Comparison, Row
from archehr.program.run.records import CaseRecord


@dataclass(frozen=True)
class Beside:
    """One row's answer to one case, beside that of the row it is compared with: scores (0-100) and their differences
    by subtask, note ids and (answer id, note id) pairs that only one of the two has."""

    row: Row
    record: CaseRecord
    scores: Mapping[int, float]
    differences: Mapping[int, float]
    evidence_gained: Sequence[str] = ()
    evidence_lost: Sequence[str] = ()
    links_gained: Sequence[Pair] = ()
    links_lost: Sequence[Pair] = ()

    @property
    def size(self) -> float:
        """The mean over subtasks of how far the scores are apart, in points."""
        return sum(map(abs, self.differences.values())) / len(self.differences) if self.differences else 0.0


@dataclass(frozen=True)
class CaseDifference:
    """One case with every row's answer to it."""

    case: Case
    answers: Sequence[Beside]

    @property
    def size(self) -> float:
        """The largest size among its answers, in points."""
        return max(a.size for a in self.answers)

    def size_of(self, subtask: int) -> float:
        """The largest difference in one subtask, in points."""
        return max(abs(a.differences.get(subtask, 0.0)) for a in self.answers)

    @property
    def differs(self) -> bool:
        """Whether any row chose other evidence or other links than its baseline."""
        return any(a.evidence_gained or a.evidence_lost or a.links_gained or a.links_lost for a in self.answers)


def case_differences(comparison: Comparison) -> list[CaseDifference]:
    """The cases, those with the largest differences first; equal ones in the order of the data."""
    per_case = {row.label: {n: row.case_scores(n) for n in row.scores} for row in comparison.rows}
    differences = [
        CaseDifference(case, [_beside(case, row, comparison, per_case) for row in comparison.rows])
        for case in comparison.cases
    ]
    return sorted(differences, key=lambda c: -c.size)


def _beside(
    case: Case, row: Row, comparison: Comparison, per_case: Mapping[str, Mapping[int, Mapping[str, float]]]
) -> Beside:
    record = row.run.records[case.id]
    scores = {n: by_case[case.id] for n, by_case in per_case[row.label].items() if case.id in by_case}
    if row.against is None:
        return Beside(row, record, scores, {})
    theirs = comparison.row(row.against).run.records[case.id]
    base = per_case[row.against]
    differences = {n: score - base[n][case.id] for n, score in scores.items() if n in base}
    links, their_links = link_pairs(scored_links(record)), link_pairs(scored_links(theirs))
    if not case.answer_sentences:  # the answers differ, so their sentence numbers are not comparable
        links = their_links = []
    return Beside(
        row,
        record,
        scores,
        differences,
        _without(record.evidence or (), theirs.evidence or ()),
        _without(theirs.evidence or (), record.evidence or ()),
        _without(links, their_links),
        _without(their_links, links),
    )


def _without(ours: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    return [x for x in ours if x not in theirs]
