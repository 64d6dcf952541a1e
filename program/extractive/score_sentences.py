"""Stage 2 without an LM: a small model on interpretable features says how much each note sentence matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import dspy

from archehr.data.case import Case, Sentence
from archehr.data.dataset import read_cases
from archehr.data.files import shipped_sample
from archehr.program.extractive.features import STRUCTURE, sentence_features, shared_concepts
from archehr.program.extractive.fitted.odds import chance, log_odds, surplus
from archehr.program.extractive.reformulate import reformulate
from archehr.program.types import SentenceScore

# Chances at which scores 2, 3, 4 and 5 begin. 4 is the decision: the cut that served best when each dev case was
# predicted by a model fitted on the other nineteen (tests/benchmarks/extractive.py prints the figures).
SCORE_EDGES = (0.08, 0.18, 0.3, 0.6)
# A case has about this many essential sentences however long its note; a short note at most this share of them.
USUAL_EVIDENCE = 6
USUAL_SHARE = 0.3
# Weight of shared concepts, in log-odds; mean and weight chosen on dev as the cut was.
CONCEPT_WEIGHT = 4.0
CONCEPT_MEAN = 0.1

_fitting = Lock()


class ExtractiveScoreSentences(dspy.Module):
    """question, narrative, sentences -> scores: every id once, in note order, 1..5; 4 and 5 are evidence."""

    def forward(self, question: str, narrative: str, sentences: Sequence[Sentence]) -> dspy.Prediction:
        chances = essential_chances(question, narrative, sentences) if sentences else []
        return dspy.Prediction(
            scores=[SentenceScore(id=s.id, score=to_score(c)) for s, c in zip(sentences, chances, strict=True)]
        )


def to_score(probability: float) -> int:
    """Chance of being essential -> 1..5 by SCORE_EDGES."""
    return 1 + sum(probability >= edge for edge in SCORE_EDGES)


def essential_chances(question: str, narrative: str, sentences: Sequence[Sentence]) -> list[float]:
    """Chance of each sentence to be essential, by the model fitted on the dev sample at first use."""
    with _fitting:  # workers that start together wait for one fit
        model = _dev_model()
    return model.chances(question, narrative, [s.text for s in sentences])


@cache
def _dev_model() -> EvidenceModel:
    return fit(read_cases(shipped_sample("dev")))


@dataclass(frozen=True)
class EvidenceModel:
    """A logistic regression and extremely randomised trees, their log-odds averaged: the one steady on 20 cases, the
    other free to find that length counts for more in the main problem's block."""

    linear: Any
    trees: Any
    structure_only: bool = False

    def chances(self, question: str, narrative: str, texts: Sequence[str]) -> list[float]:
        """One chance a sentence. The case as a whole then has its say: how many are usual, what they share."""
        rows = _rows(question, narrative, texts, self.structure_only)
        odds = (log_odds(self.linear.predict_proba(rows)) + log_odds(self.trees.predict_proba(rows))) / 2
        odds = odds - surplus(odds, min(USUAL_EVIDENCE, USUAL_SHARE * len(odds)))
        if not self.structure_only:
            odds = odds + CONCEPT_WEIGHT * (shared_concepts(texts, chance(odds)) - CONCEPT_MEAN)
        found: list[float] = chance(odds).tolist()
        return found


def fit(cases: Sequence[Case], structure_only: bool = False) -> EvidenceModel:
    """The evidence model fitted on the labelled ones of `cases`, with the program's own question as in a run;
    `structure_only` leaves it length, position, blocks and headers, to see what reading the words adds.

    A supplementary sentence counts half against being essential: labellers disagree most about those."""
    import numpy as np
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    labelled = [(c, c.gold) for c in cases if c.gold is not None and c.gold.relevance is not None]
    rows = np.vstack(
        [
            _rows(reformulate(c.narrative), c.narrative, [s.text for s in c.sentences], structure_only)
            for c, _ in labelled
        ]
    )
    essential = np.array([s.id in gold.essential for c, gold in labelled for s in c.sentences])
    weights = np.array([0.5 if s.id in gold.supplementary else 1.0 for c, gold in labelled for s in c.sentences])
    linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.05, max_iter=2000))
    trees = ExtraTreesClassifier(300, min_samples_leaf=5, max_features=0.6, random_state=0)
    linear.fit(rows, essential, logisticregression__sample_weight=weights)
    trees.fit(rows, essential, sample_weight=weights)
    return EvidenceModel(linear, trees, structure_only)


def _rows(question: str, narrative: str, texts: Sequence[str], structure_only: bool) -> Any:
    rows = sentence_features(question, narrative, texts)
    return rows[:, : len(STRUCTURE)] if structure_only else rows
