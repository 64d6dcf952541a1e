"""From predictions and keys to the per-case table of a subtask: the step our scoring and the official mode share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archehr.data.case import DataError
from archehr.metrics import medcon, neural, text
from archehr.metrics.alignment import alignment_table, count_links
from archehr.metrics.evidence import count_evidence, evidence_table
from archehr.metrics.leaderboard import IN_OVERALL, ROUGE, CaseTable, text_table
from archehr.metrics.predictions import Prediction, check_known


@dataclass(frozen=True, slots=True)
class Resources:
    """What the model-based components need and no package brings: names or folders of models, an index.

    `bertscore_model` is distilbert-base-uncased, `alignscore_checkpoint` AlignScore-base.ckpt and `roberta_model` the
    roberta-base it was trained from, `umls_index` a QuickUMLS index of the user's own UMLS.
    """

    bertscore_model: str | None = None
    alignscore_checkpoint: Path | None = None
    roberta_model: str | None = None
    umls_index: Path | None = None
    spacy_model: str = "en_core_web_sm"


@dataclass(frozen=True, slots=True)
class Scored:
    """A table, the components it lacks (name -> what to install or pass), and the cases a formula has no value for
    ("case 3: bleu" -> why)."""

    table: CaseTable
    missing: dict[str, str] = field(default_factory=dict)
    unscorable: dict[str, str] = field(default_factory=dict)


def build_table(
    subtask: int, predictions: Sequence[tuple[Any, Prediction]], keys: Mapping[Any, Any], resources: Resources
) -> Scored:
    """Scores `predictions` (case id, prediction) against `keys`, which hold every one of these cases.

    Raises DataError naming every id that its case does not have.
    """
    if subtask == 2:
        return Scored(_evidence(predictions, keys))
    if subtask == 4:
        return Scored(_alignment(predictions, keys))
    return _texts(subtask, predictions, keys, resources)


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


def _texts(
    subtask: int, predictions: Sequence[tuple[Any, Prediction]], keys: Mapping[Any, Any], resources: Resources
) -> Scored:
    ids = [case_id for case_id, _ in predictions]
    predicted = [prediction for _, prediction in predictions]
    references = [keys[case_id].reference for case_id in ids]
    sources = [keys[case_id].source for case_id in ids]
    scores: dict[str, list[float]] = {}
    missing: dict[str, str] = {}
    unscorable: dict[str, str] = {}

    def keep(name: str, result: tuple[list[float], dict[int, str]]) -> None:
        scores[name] = result[0]
        unscorable.update({f"case {ids[i]}: {name}": why for i, why in result[1].items()})

    rouge = [text.rouge(p, r) for p, r in zip(predicted, references, strict=True)]
    scores.update({name: [case[name] for case in rouge] for name in ROUGE})
    if subtask == 3:
        keep("bleu", text.over_cases(text.bleu, predicted, references))
        if None in sources:
            missing["sari"] = "compares with the patient's message: pass --data, a key alone does not hold it"
        else:
            keep("sari", text.over_cases(text.sari, sources, predicted, references))
    model_based = {
        "bertscore": lambda: neural.bertscore(predicted, references, resources.bertscore_model),
        "medcon": lambda: medcon.medcon(predicted, references, resources.umls_index, resources.spacy_model),
        "alignscore": lambda: neural.alignscore(
            predicted, references, resources.alignscore_checkpoint, resources.roberta_model
        ),
    }
    for name, compute in model_based.items():
        try:
            keep(name, compute())
        except neural.Missing as absent:
            missing[name] = str(absent)
    order = [name for name in IN_OVERALL[subtask] if name in missing]
    return Scored(text_table(ids, scores, subtask), {name: missing[name] for name in order}, unscorable)


def _refuse(faults: list[str]) -> None:
    if faults:
        more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise DataError("; ".join(faults[:5]) + more + "; use the ids of the case's own sentences")
