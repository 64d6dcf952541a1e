"""The view that asks no LM: the fitted model's vote beside those of an LM, at no call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dspy

from archehr.data.case import Sentence
from archehr.program.extractive.fitted.file import FittedFile, read_fitted
from archehr.program.extractive.score_sentences import ExtractiveScoreSentences
from archehr.program.settings import PipelineSettings
from archehr.program.stages.stage import Stage
from archehr.program.types import SentenceScore

NAME = "extractive"


class ExtractiveSignature(dspy.Signature):
    """What the view is given and what it says; no LM is asked."""

    question: str = dspy.InputField()
    narrative: str = dspy.InputField()
    sentences: str = dspy.InputField()
    scores: list[SentenceScore] = dspy.OutputField()


class ExtractiveView(dspy.Module):
    """question, narrative, sentences -> scores (each id once, note order), silent and notices, both empty.

    What the models at work take for evidence has 5 as an LM would give it, the next two degrees 4 and 3. Every
    `sample` is the same.
    """

    def forward(self, question: str, narrative: str, sentences: Sequence[Sentence], sample: int = 0) -> dspy.Prediction:
        made = ExtractiveScoreSentences()(question=question, narrative=narrative, sentences=sentences)
        scores = [SentenceScore(id=s.id, score=min(s.score + 1, 5) if s.score > 1 else 1) for s in made.scores]
        return dspy.Prediction(scores=scores, silent=[], notices=[])


def by_name(settings: PipelineSettings, fitted: FittedFile | None) -> tuple[PipelineSettings, FittedFile | None]:
    """The settings with a view that is named by its file ("mine.json") under its name, and the models of that file; as
    they are where none is. Raises DataError."""
    files = [view.name for view in settings.views if view.name.endswith(".json")]
    if not files:
        return settings, fitted
    views = [v.model_copy(update={"name": NAME}) if v.name in files else v for v in settings.views]
    return settings.changed({"views": views}), read_fitted(Path(files[0]))


STAGE = Stage(name=NAME, signature=ExtractiveSignature, module=lambda settings: ExtractiveView(), asks_lm=False)
