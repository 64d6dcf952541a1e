"""What to tell the user, in one line, when a run stops early."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import typer


class Stop(NamedTuple):
    """One line and the exit code: 2 the call is wrong, 130 interrupted and resumable."""

    line: str
    exit_code: int


RESUME = "finished cases are kept; the same command resumes"
ASKED_ONCE = "nothing is kept"
CACHED = "every reply so far is in the cache; the same command goes on from there"

_REMEDY = {
    "LMAuthError": "check the API key in the environment",
    "LMBillingError": "wait until the quota is renewed, or check the account's plan and billing",
    "LMUnsupportedModelError": "check the model's name, or name another",
    "LMUnsupportedFeatureError": "leave the option out, or name another model",
    "LMConfigurationError": "check --lm and its options",
}


@contextmanager
def telling(kept: str) -> Iterator[None]:
    """Ends the command with the line for what stops it inside, which says what is `kept` instead of RESUME."""
    try:
        yield
    except Exception as error:
        if (stop := explain_stop(error, kept)) is None:
            raise
        typer.echo(f"archehr: {stop.line}", err=True)
        raise typer.Exit(stop.exit_code) from error


def explain_stop(error: BaseException, kept: str = RESUME) -> Stop | None:
    """The line for an error that a run lets through, or None for a fault of ours."""
    if "dspy" not in sys.modules:
        return None
    from archehr.program.batch import Interrupted
    from archehr.program.lm.ledger import budget_error
    from archehr.program.lm.wire.errors import LMGone
    from archehr.program.run.job import RunStopped
    from archehr.program.stages.ask import UNUSABLE

    if isinstance(error, Interrupted):
        return Stop(f"interrupted; {kept}", 130)
    if (budget := budget_error(error)) is not None:
        return Stop(f"{budget}; {kept}{'' if kept == ASKED_ONCE else ', and its limits count anew'}", 130)
    hint, begun = kept, False
    if isinstance(error, RunStopped):
        hint = f"{error.done} of {error.total} cases are done and kept; the same command answers the others"
        begun, error = error.begun, error.__cause__ or error
    if isinstance(error, LMGone):
        return Stop(f"the LM is gone: {error}; start it or wait, and check --api-base; {hint}", 130)
    if isinstance(error, UNUSABLE):
        name = next(n for kind in type(error).__mro__ if (n := kind.__name__) in _REMEDY)
        message = " ".join(str(error).split())
        # What will pass some day, or was right when the run began, is no fault of the call.
        interrupted = begun or name == "LMBillingError"
        return Stop(f"the LM cannot be used: {message[:400]}; {_REMEDY[name]}; {hint}", 130 if interrupted else 2)
    return None
