"""Stage 2 without an LM: a small model on interpretable features says how much each note sentence matters."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from archehr.data.case import Sentence
from archehr.program.extractive.fitted.at_work import models_at_work
from archehr.program.types import SentenceScore


class ExtractiveScoreSentences(dspy.Module):
    """question, narrative, sentences -> scores: every id once, in note order, 1..5; 4 and 5 are evidence. By the
    models at work."""

    def forward(self, question: str, narrative: str, sentences: Sequence[Sentence]) -> dspy.Prediction:
        model = models_at_work().evidence
        chances = model.chances(question, narrative, [s.text for s in sentences]) if sentences else []
        return dspy.Prediction(
            scores=[SentenceScore(id=s.id, score=model.score(c)) for s, c in zip(sentences, chances, strict=True)]
        )
