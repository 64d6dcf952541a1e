"""The gold inputs and outputs of each stage: what a stage is taught and measured on alone, and labelled demos."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archehr.data.case import Case, Relevance
from archehr.program.pipeline import evidence_sentences
from archehr.program.settings import PRESETS
from archehr.program.stages.render import near, render
from archehr.program.types import StageName

# The key's three labels on the 1..5 scale that the stage answers in. 4 and 2 are never gold: the key does not grade
# that finely.
GOLD_SCORE = {Relevance.ESSENTIAL: 5, Relevance.SUPPLEMENTARY: 3, Relevance.NOT_RELEVANT: 1}


def has_gold(stage: StageName, case: Case) -> bool:
    """Whether the case holds the stage's inputs and outputs in full; labelled in part is not labelled."""
    gold, asked = case.gold, bool(case.clinician_question)
    if stage == "reformulate":
        return asked
    if gold is None or not asked or not case.sentences:
        return False
    if stage == "score":
        return set(gold.relevance or ()) == {s.id for s in case.sentences}
    if stage == "generate":
        return bool(gold.essential) and bool(gold.answer) and bool(case.answer_sentences)
    cited = {s.id for s in gold.answer_sentences if s.citations is not None}
    return bool(case.answer_sentences) and cited == {a.id for a in case.answer_sentences}


def gold_arguments(stage: StageName, case: Case) -> dict[str, Any]:
    """What the stage's module is called with, every input taken from the gold of the stages before it."""
    if stage == "reformulate":
        return {"narrative": case.narrative, "phrases": case.question_phrases}
    question = case.clinician_question
    if stage == "score":
        return {"question": question, "narrative": case.narrative, "sentences": case.sentences}
    if stage == "generate":
        evidence, note = _evidence_and_note(case)
        return {"question": question, "evidence": evidence, "note": render(note)}
    return {"question": question, "answer_sentences": case.answer_sentences, "sentences": case.sentences}


def gold_demo(stage: StageName, case: Case) -> dict[str, Any]:
    """The case as a demo: the fields of the stage's signature by name, inputs as they are sent, outputs as JSON.

    The case must have the stage's gold (`has_gold`). Relevance becomes 5, 3 or 1 (GOLD_SCORE).
    """
    if stage == "reformulate":
        return {"narrative": case.narrative, "question": case.clinician_question}
    asked, note, gold = case.clinician_question, render(case.sentences), case.gold
    assert gold is not None
    if stage == "score":
        labels: Mapping[str, Relevance] = gold.relevance or {}
        scores = [{"id": s.id, "score": GOLD_SCORE[labels[s.id]]} for s in case.sentences]
        return {"question": asked, "narrative": case.narrative, "sentences": note, "scores": scores}
    if stage == "generate":
        evidence, near_note = _evidence_and_note(case)
        answer = [" ".join(a.text.split()) for a in case.answer_sentences]
        return {
            "question": asked,
            "evidence": render(evidence),
            "note": render(near_note),
            "answer_sentences": answer,
        }
    cited = {a.id: a.citations or () for a in gold.answer_sentences}
    links = [
        {"answer_id": a.id, "evidence_ids": [s.id for s in case.sentences if s.id in cited[a.id]]}
        for a in case.answer_sentences
    ]
    return {"question": asked, "answer_sentences": render(case.answer_sentences), "sentences": note, "links": links}


def made_from(demo: Mapping[str, Any], case: Case) -> bool:
    """Whether the demo shows this case, told by its text: ids say nothing across data sets."""
    if "narrative" in demo:
        return bool(demo["narrative"] == case.narrative)
    note = str(demo.get("sentences") or demo.get("note") or "").splitlines()
    return bool(note) and set(note) <= set(render(case.sentences).splitlines())


def _evidence_and_note(case: Case) -> tuple[Any, Any]:
    assert case.gold is not None
    chosen = set(case.gold.essential)
    return evidence_sentences(case, chosen), near(case.sentences, chosen, PRESETS["default"].window_chars)
