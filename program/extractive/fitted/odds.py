"""Chances and log-odds, as the two fitted models of this room combine them."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Vector = np.ndarray[Any, np.dtype[np.float64]]


def log_odds(probabilities: Any) -> Vector:
    """Log-odds of the second column of predict_proba, kept finite."""
    import numpy as np

    positive = np.clip(probabilities[:, 1], 0.005, 0.995)
    odds: Vector = np.log(positive / (1 - positive))
    return odds


def chance(odds: Vector) -> Vector:
    """The inverse of log-odds."""
    import numpy as np

    chances: Vector = 1 / (1 + np.exp(-odds))
    return chances


def surplus(odds: Vector, usual: float) -> float:
    """Log of how many times the usual number of positives these odds expect together. Subtracting it makes long and
    short notes alike: a case has about as many answers to give, however much else its note records."""
    return log(float(chance(odds).sum()) / usual)
