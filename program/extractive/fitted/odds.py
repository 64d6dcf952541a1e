"""Chances and log-odds, as the fitted models combine them."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Vector = np.ndarray[Any, np.dtype[np.float64]]

MOST_CERTAIN = log(0.995 / 0.005)  # an odd text, far from all that was fitted on, must not drown the others


def bounded(odds: Vector) -> Vector:
    """The odds between 0.5 and 99.5 %."""
    import numpy as np

    return np.clip(odds, -MOST_CERTAIN, MOST_CERTAIN)


def chance(odds: Vector) -> Vector:
    """The inverse of log-odds."""
    import numpy as np

    chances: Vector = 1 / (1 + np.exp(-odds))
    return chances


def surplus(odds: Vector, usual: float) -> float:
    """Log of how many times the usual number of positives these odds expect together. Subtracting it makes long and
    short notes alike: a case has about as many answers to give, however much else its note records."""
    return log(float(chance(odds).sum()) / usual)


def settled(odds: Vector, usual: float) -> Vector:
    """The odds less their surplus until they expect the usual number, however far apart they lie."""
    for _ in range(20):
        beyond = surplus(odds, usual)
        odds = odds - beyond
        if abs(beyond) < 0.01:
            break
    return odds
