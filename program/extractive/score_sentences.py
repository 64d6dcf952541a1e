"""Stage 2 without an LM: a small model on interpretable features says how much each note sentence matters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Any

import dspy

from data.case import Case, Sentence
from data.files import SAMPLES
from data.shared_task import read_cases
from program.extractive.features import STRUCTURE, sentence_features
from program.extractive.reformulate import reformulate
from program.types import SentenceScore

# Chances of being essential at which scores 2, 3, 4, 5 begin. 4 is the decision: the cut that served best when each
# dev case was predicted by a model fitted on the other nineteen (tests/benchmarks/extractive.py prints it).
SCORE_EDGES = (0.10, 0.22, 0.34, 0.55)

_fitting = Lock()


class ExtractiveScoreSentences(dspy.Module):
    """question, narrative, sentences -> scores: every id once, in note order, 1..5; 4 and 5 are evidence."""

    def forward(self, question: str, narrative: str, sentences: Sequence[Sentence]) -> dspy.Prediction:
        if not sentences:
            return dspy.Prediction(scores=[])
        with _fitting:  # workers that start together wait for one fit
            model = _fitted_model()
        chances = model.predict_proba(sentence_features(question, narrative, [s.text for s in sentences]))[:, 1]
        return dspy.Prediction(
            scores=[SentenceScore(id=s.id, score=to_score(c)) for s, c in zip(sentences, chances, strict=True)]
        )


def to_score(chance: float) -> int:
    """Chance of being essential -> 1..5 by SCORE_EDGES."""
    return 1 + sum(chance >= edge for edge in SCORE_EDGES)


@cache
def _fitted_model() -> Any:
    return fit(read_cases(SAMPLES / "dev"))


def fit(cases: Sequence[Case], structure_only: bool = False) -> Any:
    """The evidence model fitted on labelled cases; `structure_only` leaves it position, length and headers."""
    import numpy as np

    features, essential, weights = training_rows(cases, structure_only)
    return _estimator().fit(np.vstack(features), np.concatenate(essential), sample_weight=np.concatenate(weights))


def training_rows(cases: Sequence[Case], structure_only: bool = False) -> tuple[list[Any], list[Any], list[Any]]:
    """Per case: feature rows, essential or not, and weights. A supplementary sentence counts half against
    being essential: labellers disagree most about those."""
    import numpy as np

    features, essential, weights = [], [], []
    for case in cases:
        if case.gold is None or case.gold.relevance is None:
            continue
        rows = sentence_features(reformulate(case.narrative), case.narrative, [s.text for s in case.sentences])
        features.append(rows[:, : len(STRUCTURE)] if structure_only else rows)
        essential.append(np.array([s.id in case.gold.essential for s in case.sentences]))
        weights.append(np.array([0.5 if s.id in case.gold.supplementary else 1.0 for s in case.sentences]))
    return features, essential, weights


def _estimator() -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(400, min_samples_leaf=3, max_features=0.3, random_state=0)
