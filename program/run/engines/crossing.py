"""Errors that end a run, as they cross from a worker in another process: a kind and a message, without note text."""

from __future__ import annotations

import traceback
from pathlib import Path

from archehr.data.case import DataError
from archehr.program.lm.ledger import BudgetExceeded, budget_error
from archehr.program.lm.wire.errors import LMGone
from archehr.program.stages.ask import UNUSABLE

# By the name they cross with; whatever else ends a run is a fault of ours.
ENDINGS: dict[str, type[Exception]] = {kind.__name__: kind for kind in (BudgetExceeded, LMGone, DataError, *UNUSABLE)}


def crossing(error: Exception) -> list[str]:
    """[kind, message] of an error. Of a fault of ours only the place: its message may quote a note."""
    error = budget_error(error) or error
    for kind in type(error).__mro__:
        if kind.__name__ in ENDINGS:
            return [kind.__name__, str(error)]
    place = traceback.extract_tb(error.__traceback__)[-1]
    return ["", f"{type(error).__name__} in a worker, at {Path(place.filename).name}:{place.lineno}"]


def raised(kind: str, message: str) -> Exception:
    """The error, as it would have been raised here."""
    return ENDINGS.get(kind, RuntimeError)(message)
