"""From predictions and keys to the per-case table of a subtask: the step our scoring and the official mode share."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from archehr.data.case import DataError
from archehr.metrics.alignment import alignment_table, count_links
from archehr.metrics.components import Batch, Component, Resources, components, compute
from archehr.metrics.evidence import count_evidence, evidence_table
from archehr.metrics.leaderboard import CaseTable, bare_table, with_components
from archehr.metrics.predictions import Prediction, check_known
from archehr.metrics.scorers.neural import Missing

BATCH = 1_000  # cases that components score at once


@dataclass(frozen=True, slots=True)
class Scored:
    """A table, the components it lacks (name -> what to install or pass), and the cases a formula has no value for
    ("case 3: bleu" -> why)."""

    table: CaseTable
    missing: dict[str, str] = field(default_factory=dict)
    unscorable: dict[str, str] = field(default_factory=dict)


class Scorer:
    """The table of one subtask, made case by case: of a case that has been scored only its numbers are kept.

    Cases count by the counts of subtasks 2 and 4 and by all components; with `official_only` by none that another
    package adds. Components get up to BATCH cases at once.
    """

    def __init__(self, subtask: int, resources: Resources, *, official_only: bool = False) -> None:
        self._subtask, self._resources = subtask, resources
        self._known = components(subtask, official_only=official_only)
        self._waiting: list[tuple[Any, Prediction, Any]] = []
        self._ids: list[Any] = []
        self._tables: list[CaseTable] = []
        self._scores: dict[str, array[float]] = {component.name: array("d") for component in self._known}
        self._missing: dict[str, str] = {}
        self._unscorable: dict[str, str] = {}

    def add(self, case_id: Any, prediction: Prediction, key: Any) -> None:
        """Score the next case. Raises DataError naming every id that its case, or one before it, does not have."""
        self._waiting.append((case_id, prediction, key))
        if len(self._waiting) == BATCH:
            self._score_waiting()

    def scored(self) -> Scored:
        """What has been scored. Raises DataError as `add` does."""
        if self._waiting or not self._tables:
            self._score_waiting()
        scores = {name: found for name, found in self._scores.items() if name not in self._missing}
        values = np.concatenate([table.values for table in self._tables])
        table = replace(self._tables[0], case_ids=tuple(self._ids), values=values)
        return Scored(with_components(table, scores, self._subtask, self._known), self._missing, self._unscorable)

    def _score_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        ids = [case_id for case_id, _, _ in waiting]
        counted = _COUNTED.get(self._subtask)
        self._tables.append(counted(waiting) if counted else bare_table(ids))
        batch = Batch([prediction for _, prediction, _ in waiting], [key for _, _, key in waiting], self._resources)
        for component in self._known:
            if component.name not in self._missing:
                self._compute(component, batch, ids)
        self._ids += ids

    def _compute(self, component: Component, batch: Batch, ids: Sequence[Any]) -> None:
        try:
            scores, faults = compute(component, batch)
        except Missing as absent:
            self._missing[component.name] = str(absent)
        else:
            self._scores[component.name].extend(scores)
            self._unscorable |= {f"case {ids[i]}: {component.name}": why for i, why in faults.items()}


def _evidence(answered: Sequence[tuple[Any, Prediction, Any]]) -> CaseTable:
    _refuse([fault for case_id, ids, key in answered for fault in check_known(case_id, "sentence", ids, key.known)])
    counts = [count_evidence(ids, key.essential, key.supplementary) for _, ids, key in answered]
    return evidence_table([case_id for case_id, _, _ in answered], counts)


def _alignment(answered: Sequence[tuple[Any, Prediction, Any]]) -> CaseTable:
    faults, counts = [], []
    for case_id, alignments, key in answered:
        links = {(answer_id, evidence_id) for answer_id, evidence in alignments for evidence_id in evidence}
        faults += check_known(case_id, "answer sentence", {answer_id for answer_id, _ in alignments}, key.answers)
        faults += check_known(case_id, "note sentence", {evidence_id for _, evidence_id in links}, key.known)
        counts.append(count_links(links, key.links))
    _refuse(faults)
    return alignment_table([case_id for case_id, _, _ in answered], counts)


_COUNTED = {2: _evidence, 4: _alignment}


def _refuse(faults: list[str]) -> None:
    if faults:
        more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise DataError("; ".join(faults[:5]) + more + "; use the ids of the case's own sentences")
