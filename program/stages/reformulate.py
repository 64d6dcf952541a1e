"""Stage 1: the patient's message becomes a clinician's question of at most 15 words."""

from __future__ import annotations

import dspy

from archehr.program.extractive.reformulate import ExtractiveReformulate
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages import signatures
from archehr.program.stages.ask import Checked, ask
from archehr.program.stages.limits import count_words, cut_question, one_line
from archehr.program.types import Notice


class Reformulate(dspy.Module):
    """narrative -> question (one line, 1..15 words) and notices. The extractive twin answers if the LM fails."""

    def __init__(self, settings: PipelineSettings = PRESETS["default"]) -> None:
        super().__init__()
        self.settings = settings
        self.predict = dspy.Predict(signatures.Reformulate)

    def forward(self, narrative: str, phrases: tuple[str, ...] = ()) -> dspy.Prediction:
        reply = ask(self.predict, self._check, "reformulate", self.settings, narrative=narrative)
        question = reply.value
        if question is None:
            question = ExtractiveReformulate()(narrative=narrative, phrases=phrases).question
        return dspy.Prediction(question=question, notices=reply.notices)

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
