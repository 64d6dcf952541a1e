"""Whose fitted models answer a case: those of the program at work, else shipped ones that never saw the case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from archehr.data.case import Case
from archehr.data.dataset import case_sha256
from archehr.program.extractive.fitted.file import PARTS, SHIPPED, FittedFile, WholeFile, shipped

_AT_WORK: ContextVar[tuple[FittedFile | None, Case | None]] = ContextVar("at_work", default=(None, None))


@contextmanager
def at_work(fitted: FittedFile | None, case: Case | None = None) -> Iterator[None]:
    """While inside, models_at_work gives those of `fitted` or, without, shipped ones that were not fitted on `case`."""
    before = _AT_WORK.set((fitted, case))
    try:
        yield
    finally:
        _AT_WORK.reset(before)


def models_at_work() -> WholeFile:
    """The models to answer with. One that stands in for an LM, or for what a file leaves out, has thereby never seen
    the labels of a sample case."""
    fitted, case = _AT_WORK.get()
    if isinstance(fitted, WholeFile):
        return fitted
    others = unseen(case) if case else shipped()
    own = {name: model for name in PARTS if (model := getattr(fitted, name, None)) is not None}
    return others.model_copy(update=own)


def unseen(case: Case) -> WholeFile:
    """The first shipped file that was not fitted on the case, told by its message and note sentences."""
    (known,) = case_sha256([case])
    return next((f for f in map(shipped, SHIPPED) if known not in f.provenance["case_sha256"]), shipped())
