"""Stage 4 without an LM: a small model says which note sentences support an answer sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import dspy

from archehr.data.case import AnswerSentence, Case, Sentence
from archehr.data.dataset import read_cases
from archehr.data.files import shipped_sample
from archehr.program.extractive.odds import chance, log_odds, surplus
from archehr.program.extractive.pairs import pair_features
from archehr.program.extractive.reformulate import reformulate
from archehr.program.types import Link

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

# Chosen on dev, each case predicted by a model fitted on the others (tests/benchmarks/extractive.py).
CUT = 0.32
# Links of an answer sentence on average (fewer in a short note), and how far one that expects more or fewer is drawn
# to that number.
USUAL_LINKS = 1.7
USUAL_SHARE = 0.08
PULL = 0.5

_fitting = Lock()


class ExtractiveAlign(dspy.Module):
    """answer_sentences, sentences, question -> links: every answer id once, with known note ids in note order; none
    where no note sentence reaches the cut."""

    def forward(
        self, answer_sentences: Sequence[AnswerSentence], sentences: Sequence[Sentence], question: str
    ) -> dspy.Prediction:
        chances = support_chances(answer_sentences, sentences, question)
        links = [
            Link(answer_id=a.id, evidence_ids=[s.id for s, c in zip(sentences, row, strict=True) if c >= CUT])
            for a, row in zip(answer_sentences, chances, strict=True)
        ]
        return dspy.Prediction(links=links)


def support_chances(
    answer_sentences: Sequence[AnswerSentence], sentences: Sequence[Sentence], question: str
) -> list[list[float]]:
    """One row an answer sentence, one chance (0-1) a note sentence to support it, by the model fitted on the dev
    sample at first use."""
    if not answer_sentences or not sentences:
        return [[0.0] * len(sentences) for _ in answer_sentences]
    with _fitting:  # workers that start together wait for one fit
        model = _dev_model()
    return model.chances([a.text for a in answer_sentences], [s.text for s in sentences], question)


@cache
def _dev_model() -> AlignmentModel:
    return fit(read_cases(shipped_sample("dev")))


@dataclass(frozen=True)
class AlignmentModel:
    """A logistic regression and extremely randomised trees, their log-odds averaged."""

    linear: Any
    trees: Any

    def chances(self, answers: Sequence[str], notes: Sequence[str], question: str) -> list[list[float]]:
        """One row an answer sentence, one chance a note sentence; at least one of each."""
        rows = pair_features(answers, notes, question)
        odds = (log_odds(self.linear.predict_proba(rows)) + log_odds(self.trees.predict_proba(rows))) / 2
        usual = min(USUAL_LINKS, USUAL_SHARE * len(notes))
        return [chance(row - PULL * surplus(row, usual)).tolist() for row in odds.reshape(len(answers), len(notes))]


def fit(cases: Sequence[Case]) -> AlignmentModel:
    """The alignment model fitted on those of `cases` whose key has citations, with the program's own question."""
    import numpy as np
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows: list[Matrix] = []
    linked: list[bool] = []
    for case in cases:
        answers = [a for a in case.gold.answer_sentences if a.citations is not None] if case.gold else []
        if not answers or not case.sentences:
            continue
        notes = [s.text for s in case.sentences]
        rows.append(pair_features([a.text for a in answers], notes, reformulate(case.narrative)))
        linked += [s.id in (a.citations or ()) for a in answers for s in case.sentences]
    linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.05, max_iter=3000))
    trees = ExtraTreesClassifier(200, min_samples_leaf=2, max_features=0.5, random_state=0)
    return AlignmentModel(linear.fit(np.vstack(rows), linked), trees.fit(np.vstack(rows), linked))
