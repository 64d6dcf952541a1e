"""From predictions and keys to the per-case table of a subtask: the step our scoring and the official mode share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archehr.data.case import DataError
from archehr.metrics.alignment import alignment_table, count_links
from archehr.metrics.components import Batch, Resources, components, compute
from archehr.metrics.evidence import count_evidence, evidence_table
from archehr.metrics.leaderboard import CaseTable, bare_table, with_components
from archehr.metrics.predictions import Prediction, check_known
from archehr.metrics.scorers.neural import Missing


@dataclass(frozen=True, slots=True)
class Scored:
    """A table, the components it lacks (name -> what to install or pass), and the cases a formula has no value for
    ("case 3: bleu" -> why)."""

    table: CaseTable
    missing: dict[str, str] = field(default_factory=dict)
    unscorable: dict[str, str] = field(default_factory=dict)


def build_table(
    subtask: int,
    predictions: Sequence[tuple[Any, Prediction]],
    keys: Mapping[Any, Any],
    resources: Resources,
    *,
    official_only: bool = False,
) -> Scored:
    """Scores `predictions` (case id, prediction) against `keys`, which hold every one of these cases, by the counts
    of subtasks 2 and 4 and by all components; with `official_only` by none that another package adds.

    Raises DataError naming every id that its case does not have.
    """
    known = components(subtask, official_only=official_only)
    counted = _COUNTED.get(subtask)
    ids = tuple(case_id for case_id, _ in predictions)
    table = counted(predictions, keys) if counted else bare_table(ids)
    batch = Batch([prediction for _, prediction in predictions], [keys[case_id] for case_id in ids], resources)
    scores: dict[str, Sequence[float]] = {}
    missing: dict[str, str] = {}
    unscorable: dict[str, str] = {}
    for component in known:
        try:
            scores[component.name], faults = compute(component, batch)
        except Missing as absent:
            missing[component.name] = str(absent)
        else:
            unscorable |= {f"case {ids[i]}: {component.name}": why for i, why in faults.items()}
    return Scored(with_components(table, scores, subtask, known), missing, unscorable)


def _evidence(predictions: Sequence[tuple[Any, Prediction]], keys: Mapping[Any, Any]) -> CaseTable:
    _refuse([f for case_id, ids in predictions for f in check_known(case_id, "sentence", ids, keys[case_id].known)])
    counts = [count_evidence(ids, keys[case_id].essential, keys[case_id].supplementary) for case_id, ids in predictions]
    return evidence_table([case_id for case_id, _ in predictions], counts)


def _alignment(predictions: Sequence[tuple[Any, Prediction]], keys: Mapping[Any, Any]) -> CaseTable:
    faults, counts = [], []
    for case_id, alignments in predictions:
        key = keys[case_id]
        links = {(answer_id, evidence_id) for answer_id, evidence in alignments for evidence_id in evidence}
        faults += check_known(case_id, "answer sentence", {answer_id for answer_id, _ in alignments}, key.answers)
        faults += check_known(case_id, "note sentence", {evidence_id for _, evidence_id in links}, key.known)
        counts.append(count_links(links, key.links))
    _refuse(faults)
    return alignment_table([case_id for case_id, _ in predictions], counts)


_COUNTED = {2: _evidence, 4: _alignment}


def _refuse(faults: list[str]) -> None:
    if faults:
        more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise DataError("; ".join(faults[:5]) + more + "; use the ids of the case's own sentences")
