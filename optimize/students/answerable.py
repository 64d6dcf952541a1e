"""Fit the model that tells a note that answers a question from one that does not."""

from __future__ import annotations

from collections.abc import Sequence

from archehr.data.case import Case
from archehr.optimize.students.fit import DIGITS, as_arrays
from archehr.program.extractive.fitted.answerable import (
    ANSWERABLE_NAMES,
    AnswerableModel,
    Spread,
    answerable_features,
    term_counts,
)
from archehr.program.extractive.reformulate import reformulate


def fit_answerable(cases: Sequence[Case]) -> AnswerableModel:
    """The model that tells each question of `cases` on its own note from the same on every other note.

    Each is asked twice, as the whole message and as the clinician's question alone: people write both."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    asked = [askings(case) for case in cases]
    notes = [term_counts([s.text for s in case.sentences]) for case in cases]
    rows: list[list[float]] = []
    own: list[bool] = []
    for place, note in enumerate(notes):
        others = Spread.of([other for other in notes if other is not note])
        weights = others.weights(note)
        for asker, ways in enumerate(asked):
            for question, message in ways:
                rows.append(answerable_features(question, message, weights, others))
                own.append(asker == place)
    scaler = StandardScaler().fit(rows)
    regression = LogisticRegression(C=0.1, class_weight="balanced", solver="newton-cholesky", tol=1e-10)
    regression.fit(scaler.transform(np.array(rows)), own)
    return AnswerableModel(logistic=as_arrays(scaler, regression, ANSWERABLE_NAMES, DIGITS), spread=Spread.of(notes))


def askings(case: Case) -> list[tuple[str, str]]:
    """(question, message) as a run asks it, and as somebody in a hurry would."""
    short = case.clinician_question
    return [(reformulate(case.narrative), case.narrative), *([(short, short)] if short else [])]
