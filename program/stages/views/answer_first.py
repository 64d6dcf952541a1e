"""The view that writes the short answer first: what its sentences rest on is the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy
from pydantic import BaseModel, ConfigDict

from archehr.data.case import Case
from archehr.metrics.evidence import strict_f1
from archehr.metrics.feedback import evidence_feedback
from archehr.program.settings import PipelineSettings
from archehr.program.stages.ask import Checked
from archehr.program.stages.render import render
from archehr.program.stages.stage import Labels, Stage
from archehr.program.stages.views.view import View
from archehr.program.types import Notice, SentenceScore, shorten

CITED, NOT_CITED = 5, 1


class AnswerPart(BaseModel):
    """One sentence of the answer and the ids of the note sentences it rests on."""

    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True)

    sentence: str
    evidence_ids: list[str]


class AnswerFirstSignature(dspy.Signature):
    """You are a clinician who answers a patient's question from the note excerpt alone.

    1. Write the answer first, in two to six short sentences: the direct answer, then the findings and the
       treatment that explain it. A question with two parts gets both answered.
    2. Beside each sentence give the ids of every note sentence that it rests on: all that state the finding,
       decision or result, not only one of them.
    3. Where the note says a thing twice, cite where it says it most fully.
    4. Never cite a section header. A sentence of the answer that no note sentence supports does not belong in it."""

    question: str = dspy.InputField(desc="the clinician's question")
    narrative: str = dspy.InputField(desc="the patient's own message, for what lies behind the question")
    sentences: str = dspy.InputField(desc="the note excerpt, one sentence a line, each with its [id]")
    cited_answer: list[AnswerPart] = dspy.OutputField(desc="the answer, a sentence an entry, each with its ids")


class AnswerFirst(View):
    """Cited sentences score 5, all others 1."""

    name = "answer_first"
    signature = AnswerFirstSignature

    def read(self, ids: Sequence[str], prediction: dspy.Prediction) -> Checked[list[SentenceScore]]:
        return read_citations(prediction.cited_answer, ids)


def read_citations(raw: Sequence[AnswerPart], ids: Sequence[str]) -> Checked[list[SentenceScore]]:
    """The rule: unknown ids go, with a notice; an answer that cites nothing of the note is a failure."""
    cited = {i.strip().strip("[]") for part in raw or () for i in part.evidence_ids}
    if not cited & set(ids):
        failed = Notice(AnswerFirst.name, "lm_failed", "no sentence id of the note cited")
        return Checked(None, [failed], "it cited no sentence id of the note")
    scores = [SentenceScore(id=i, score=CITED if i in cited else NOT_CITED) for i in ids]
    if unknown := sorted(cited - set(ids)):
        told = Notice(AnswerFirst.name, "unknown_ids", f"{len(unknown)} dropped")
        return Checked(scores, [told], f"it cites ids that the note does not have: {shorten(unknown)}")
    return Checked(scores)


def _present(case: Case) -> bool:
    gold = case.gold
    if gold is None or not case.clinician_question or not case.sentences or not gold.answer_sentences:
        return False
    return all(a.citations is not None for a in gold.answer_sentences) and any(
        a.citations for a in gold.answer_sentences
    )


def _arguments(case: Case) -> dict[str, Any]:
    return {"question": case.clinician_question, "narrative": case.narrative, "sentences": case.sentences}


def _demo(case: Case) -> dict[str, Any]:
    assert case.gold is not None
    parts = [
        {
            "sentence": " ".join(a.text.split()),
            "evidence_ids": [s.id for s in case.sentences if s.id in (a.citations or ())],
        }
        for a in case.gold.answer_sentences
    ]
    return {**_arguments(case), "sentences": render(case.sentences), "cited_answer": parts}


def _picked(prediction: dspy.Prediction) -> list[str]:
    return [s.id for s in prediction.scores if s.score >= CITED]


def _score(prediction: dspy.Prediction, case: Case, settings: PipelineSettings) -> float:
    assert case.gold is not None
    return strict_f1(_picked(prediction), case.gold)


def _feedback(prediction: dspy.Prediction, case: Case, settings: PipelineSettings) -> str:
    assert case.gold is not None
    return evidence_feedback(_picked(prediction), case.gold)


STAGE = Stage(
    name=AnswerFirst.name,
    signature=AnswerFirstSignature,
    module=AnswerFirst,
    in_windows=True,
    labels=Labels(
        present=_present,
        field="a clinician_question and an answer with citations of every sentence",
        arguments=_arguments,
        demo=_demo,
        score=_score,
        metric="strict F1 of the sentences cited",
        threshold=0.6,
        feedback=_feedback,
    ),
)
