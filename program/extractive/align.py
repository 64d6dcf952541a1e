"""Stage 4 without an LM: a small model says which note sentences support an answer sentence."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from archehr.data.case import AnswerSentence, Sentence
from archehr.program.extractive.fitted.file import shipped
from archehr.program.extractive.fitted.models import AlignmentModel
from archehr.program.types import Link


class ExtractiveAlign(dspy.Module):
    """answer_sentences, sentences, question -> links: every answer id once, with known note ids in note order; none
    where no note sentence reaches the cut. By the shipped model where none is given."""

    def __init__(self, model: AlignmentModel | None = None) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, answer_sentences: Sequence[AnswerSentence], sentences: Sequence[Sentence], question: str
    ) -> dspy.Prediction:
        model = self.model or shipped().alignment
        chances: Sequence[Sequence[float]] = [[] for _ in answer_sentences]
        if answer_sentences and sentences:
            chances = model.chances([a.text for a in answer_sentences], [s.text for s in sentences], question)
        links = [
            Link(answer_id=a.id, evidence_ids=[s.id for s, c in zip(sentences, row, strict=True) if c >= model.cut])
            for a, row in zip(answer_sentences, chances, strict=True)
        ]
        return dspy.Prediction(links=links)
