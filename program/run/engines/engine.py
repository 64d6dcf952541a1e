"""RunEngine: what answers the cases of a run; and how a run is told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from archehr.data.case import Case
from archehr.program.run.job import Job
from archehr.program.run.records import CaseRecord


@dataclass(frozen=True)
class Work:
    """What an engine is given. `cases` are read once, as they are needed. `workers` is how many are answered at once.
    `interrupt` is set when the user wants to stop. `folder` is the run folder, where an engine may keep what must not
    be lost (None: in memory alone), `tell` takes a line for what the user should know."""

    job: Job
    cases: Iterable[Case]
    workers: int
    interrupt: threading.Event
    folder: Path | None
    tell: Callable[[str], None]


class RunEngine(Protocol):
    """An engine is one file here and a line in archehr.program.run.engines.registry."""

    def check(self, job: Job) -> None:
        """Raises DataError, before anything is sent, for what this engine cannot do."""

    def answers(self, work: Work) -> Iterator[CaseRecord]:
        """The record of each case as soon as it is finished, in any order; the same records whatever the engine.

        The first error that ends a run starts nothing new; what is in flight may finish and is still yielded, then
        the error (Interrupted where `interrupt` is set) is raised.
        """


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM set the event; a second one kills as usual. In other threads than the main one, no-op."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, _frame: object) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)] or signal.SIG_DFL)

    for s in before:
        signal.signal(s, note)
    try:
        yield asked
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
