"""Stage 4 without an LM: an answer sentence is linked to the note sentences it resembles, above a fitted cut."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from data.case import AnswerSentence, Sentence
from program.extractive.text import terms
from program.types import Link

CUT = 0.2


class ExtractiveAlign(dspy.Module):
    """answer_sentences, sentences, question -> links: every answer id once, known note ids, in note order."""

    def forward(
        self, answer_sentences: Sequence[AnswerSentence], sentences: Sequence[Sentence], question: str
    ) -> dspy.Prediction:
        answers, notes = [a.text for a in answer_sentences], [s.text for s in sentences]
        chances = _similarity(answers, notes) if answers and notes else [[] for _ in answers]
        return dspy.Prediction(
            links=[
                Link(answer_id=a.id, evidence_ids=[s.id for s, c in zip(sentences, row, strict=True) if c >= CUT])
                for a, row in zip(answer_sentences, chances, strict=True)
            ]
        )


def _similarity(answers: Sequence[str], notes: Sequence[str]) -> list[list[float]]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer=terms, sublinear_tf=True)
    try:
        rows = vectorizer.fit_transform([*notes, *answers])
    except ValueError:  # no term anywhere
        return [[0.0] * len(notes) for _ in answers]
    similar: list[list[float]] = (rows[len(notes) :] @ rows[: len(notes)].T).toarray().tolist()
    return similar
