"""Stage 4 without an LM: a small model says which note sentences support an answer sentence."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from archehr.data.case import AnswerSentence, Sentence
from archehr.program.extractive.fitted.at_work import models_at_work
from archehr.program.types import Link


class ExtractiveAlign(dspy.Module):
    """answer_sentences, sentences, question -> links: every answer id once, with known note ids in note order; none
    where no note sentence reaches the cut. By the models at work."""

    def forward(
        self, answer_sentences: Sequence[AnswerSentence], sentences: Sequence[Sentence], question: str
    ) -> dspy.Prediction:
        cut = models_at_work().alignment.cut
        chances = support_chances(answer_sentences, sentences, question)
        links = [
            Link(answer_id=a.id, evidence_ids=[s.id for s, c in zip(sentences, row, strict=True) if c >= cut])
            for a, row in zip(answer_sentences, chances, strict=True)
        ]
        return dspy.Prediction(links=links)


def support_chances(
    answer_sentences: Sequence[AnswerSentence],
    sentences: Sequence[Sentence],
    question: str,
) -> Sequence[Sequence[float]]:
    """One row an answer sentence, one chance (0-1) a note sentence to support it, by the models at work."""
    if not answer_sentences or not sentences:
        return [[0.0] * len(sentences) for _ in answer_sentences]
    return models_at_work().alignment.chances([a.text for a in answer_sentences], [s.text for s in sentences], question)
