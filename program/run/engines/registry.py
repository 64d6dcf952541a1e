"""Which engine answers a run. Another package adds one by an entry point of the group `archehr.engines`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FunctionType
from typing import cast

from archehr.data.case import Case, DataError
from archehr.data.plugins import added
from archehr.program.run.engines.engine import RunEngine, Work, interruptible
from archehr.program.run.engines.order import Order
from archehr.program.run.engines.processes import cores
from archehr.program.run.job import Job
from archehr.program.run.records import CaseRecord

GROUP = "archehr.engines"
ENGINES = ("threads", "processes", "ray", "batch")  # modules here, each with a function `engine()`
MANY = 200  # cases from which starting processes, two seconds each, pays


def answers(
    engine: RunEngine,
    job: Job,
    cases: Iterable[Case],
    workers: int,
    folder: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[CaseRecord]:
    """The records of the cases as they are finished. Ctrl-C and SIGTERM end it with Interrupted."""
    with interruptible() as interrupt:
        yield from engine.answers(Work(job, cases, workers, interrupt, folder, tell))


def engine_of(name: str | RunEngine, job: Job, cases: int) -> RunEngine:
    """The engine called `name`, or the one that is given; "auto" is processes for many cases of a program without an
    LM, else threads.

    Raises DataError for an unknown name, and for a job that the engine cannot do.
    """
    if name == "auto":
        alone = not job.program.asks_lm and cases >= MANY and cores() > 1
        name = "processes" if alone and Order.of(job) is not None else "threads"
    chosen = _named(name) if isinstance(name, str) else name
    chosen.check(job)
    return chosen


def engine_names() -> list[str]:
    """What --engine takes."""
    return ["auto", *ENGINES, *(point.name for point, _ in added(GROUP, FunctionType))]


def _named(name: str) -> RunEngine:
    if name in ENGINES:
        return cast(RunEngine, importlib.import_module(f"archehr.program.run.engines.{name}").engine())
    for point, make in added(GROUP, FunctionType):
        if point.name == name:
            return cast(RunEngine, make())
    raise DataError(f"--engine {name}: there is no such engine; there are {', '.join(engine_names())}")
