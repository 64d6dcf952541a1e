"""Stage 3: an answer of at most 75 words from the evidence alone."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from archehr.data.case import Sentence
from archehr.program.extractive.generate import ExtractiveGenerate
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages import signatures
from archehr.program.stages.ask import Checked, ask
from archehr.program.stages.limits import count_words, fit_answer, one_line
from archehr.program.stages.render import render
from archehr.program.types import Notice


class Generate(dspy.Module):
    """question, evidence, note -> answer_sentences (1..75 words in all) and notices.

    Where the extractive twin answered, `sources` holds the note ids that each sentence was made from.
    """

    def __init__(self, settings: PipelineSettings = PRESETS["default"]) -> None:
        super().__init__()
        self.settings = settings
        self.predict = dspy.Predict(signatures.Generate)

    def forward(self, question: str, evidence: Sequence[Sentence], note: str) -> dspy.Prediction:
        reply = ask(
            self.predict,
            self._check,
            "generate",
            self.settings,
            question=question,
            evidence=render(evidence),
            note=note,
        )
        if reply.value is None:
            twin = ExtractiveGenerate()(question=question, evidence=evidence, note=note)
            return dspy.Prediction(answer_sentences=twin.answer_sentences, sources=twin.sources, notices=reply.notices)
        return dspy.Prediction(answer_sentences=reply.value, notices=reply.notices)

    def _check(self, prediction: dspy.Prediction) -> Checked[list[str]]:
        return check_answer(prediction.answer_sentences or [], self.settings.answer_words, self.settings.soft_cut_share)


def check_answer(raw: Sequence[str], limit: int, soft_share: float) -> Checked[list[str]]:
    """The rule: no empty sentence, at least one word, at most `limit` words by the soft cut."""
    sentences = [line for line in (one_line(s) for s in raw) if line]
    if not sentences:
        return Checked(None, [Notice("generate", "empty", "the LM gave no answer")], "the answer was empty")
    words = sum(count_words(s) for s in sentences)
    if words <= limit:
        return Checked(sentences)
    fitted = fit_answer(sentences, limit, soft_share)
    cut = Notice("generate", "cut_words", f"{words} words cut to {sum(count_words(s) for s in fitted)}")
    return Checked(fitted, [cut], f"the answer has {words} words, {words - limit} over the limit of {limit}")
