"""Stage 1: the patient's message becomes a clinician's question of at most 15 words."""

from __future__ import annotations

from typing import Any

import dspy

from archehr.data.case import Case
from archehr.metrics.feedback import GOOD_ENOUGH, question_score
from archehr.program.extractive.reformulate import ExtractiveReformulate
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages.ask import Checked, ask
from archehr.program.stages.limits import count_words, cut_question, one_line
from archehr.program.stages.stage import Labels, Stage
from archehr.program.types import Notice


class ReformulateSignature(dspy.Signature):
    """You are a clinical administrative assistant. Turn a patient's or relative's message into the one question
    that a clinician would take to the medical record.

    1. Ask what the writer most wants to know about the care, not everything that is mentioned.
    2. At most 15 words, one line, third person ("the patient", "his", "her"), ending with a question mark.
    3. Keep the medical terms of the message; correct their spelling; add no diagnosis of your own.
    4. Give the question alone: no preamble, no greeting, no advice."""

    narrative: str = dspy.InputField(desc="the message as the patient or relative wrote it")
    question: str = dspy.OutputField(desc="the clinician's question, at most 15 words")


class Reformulate(dspy.Module):
    """narrative -> question (one line, 1..15 words), silent and notices.

    The extractive twin answers if the LM fails, which is then `silent`. `sample` asks for another reply to the same
    prompt.
    """

    def __init__(self, settings: PipelineSettings = PRESETS["default"]) -> None:
        super().__init__()
        self.settings = settings
        self.predict = dspy.Predict(ReformulateSignature)

    def forward(self, narrative: str, phrases: tuple[str, ...] = (), sample: int = 0) -> dspy.Prediction:
        reply = ask(self.predict, self._check, "reformulate", self.settings, sample, narrative=narrative)
        question = reply.value
        if question is None:
            question = ExtractiveReformulate(self.settings.question_words)(
                narrative=narrative, phrases=phrases
            ).question
        return dspy.Prediction(question=question, silent=reply.value is None, notices=reply.notices)

    def _check(self, prediction: dspy.Prediction) -> Checked[str]:
        return check_question(str(prediction.question or ""), self.settings.question_words)


def check_question(text: str, limit: int) -> Checked[str]:
    """The rule: one line, at least one word, at most `limit` words by a hard cut."""
    question = one_line(text)
    if not question:
        return Checked(None, [Notice("reformulate", "empty", "the LM gave no question")], "the question was empty")
    if (words := count_words(question)) > limit:
        cut = Notice("reformulate", "cut_words", f"{words} words cut to {limit}")
        return Checked(cut_question(question, limit), [cut], f"the question has {words} words; at most {limit}")
    return Checked(question)


def _present(case: Case) -> bool:
    return bool(case.clinician_question)


def _arguments(case: Case) -> dict[str, Any]:
    return {"narrative": case.narrative, "phrases": case.question_phrases}


def _demo(case: Case) -> dict[str, Any]:
    return {"narrative": case.narrative, "question": case.clinician_question}


def _score(prediction: dspy.Prediction, case: Case, settings: PipelineSettings) -> float:
    return question_score(prediction.question, case)


def _feedback(prediction: dspy.Prediction, case: Case, settings: PipelineSettings) -> str:
    reached = _score(prediction, case, settings)
    return f"It scored {reached:.2f} of 1; the clinician asked: {case.clinician_question}"


STAGE = Stage(
    name="reformulate",
    signature=ReformulateSignature,
    module=Reformulate,
    twin=lambda settings: ExtractiveReformulate(settings.question_words),
    subtask=1,
    needs_sentences=False,
    labels=Labels(
        present=_present,
        field="a clinician_question",
        arguments=_arguments,
        demo=_demo,
        score=_score,
        metric="ROUGE-Lsum with the clinician's question",
        threshold=GOOD_ENOUGH[1],
        feedback=_feedback,
    ),
)
