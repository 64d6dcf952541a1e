"""Many cases at once: our own threads, one code path, each reported the moment it is finished."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

Item = TypeVar("Item")
Result = TypeVar("Result")

GRACE = 10.0  # seconds that cases in flight may take to finish after an interruption


class Interrupted(Exception):
    """Ctrl-C or SIGTERM: finished cases are on disk, and the same command resumes the run."""


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[Result]):
    result: Result | None = None
    error: BaseException | None = None


def in_threads(
    items: Sequence[Item],
    work: Callable[[Item], Result],
    workers: int,
    interrupt: threading.Event | None = None,
    grace: float = GRACE,
) -> Iterator[Result]:
    """`work(item)` for every item on `workers` threads, yielding results as they finish.

    The caller's context variables (dspy.context among them) are seen by every thread. The first exception, or
    `interrupt` being set, starts nothing new; those in flight may finish for `grace` seconds and are still
    yielded, then the exception (or Interrupted) is raised. Threads are daemons: a stuck LM call cannot keep the
    process alive.
    """
    waiting: queue.SimpleQueue[Item] = queue.SimpleQueue()
    finished: queue.SimpleQueue[_Outcome[Result]] = queue.SimpleQueue()
    stop = threading.Event()
    for item in items:
        waiting.put(item)

    def worker() -> None:
        while not stop.is_set():
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                finished.put(_Outcome(work(item)))
            except BaseException as error:
                stop.set()
                finished.put(_Outcome(error=error))

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(worker,), daemon=True, name=f"case-worker-{i}")
        for i in range(min(workers, len(items)))
    ]
    for thread in threads:
        thread.start()
    try:
        yield from _collect(len(items), finished, threads, stop, interrupt or threading.Event(), grace)
    finally:
        stop.set()


def _collect(
    expected: int,
    finished: queue.SimpleQueue[_Outcome[Result]],
    threads: list[threading.Thread],
    stop: threading.Event,
    interrupt: threading.Event,
    grace: float,
) -> Iterator[Result]:
    failure: BaseException | None = None
    deadline = float("inf")
    received = 0
    while received < expected and time.monotonic() < deadline:
        outcome: _Outcome[Result] | None
        try:
            outcome = finished.get(timeout=0.1)
            received += 1
        except queue.Empty:
            outcome = None
            if failure is not None and not any(t.is_alive() for t in threads) and finished.empty():
                break
        if outcome is not None and outcome.error is None:
            yield cast(Result, outcome.result)
        raised = outcome.error if outcome is not None else None
        if failure is None and (raised is not None or interrupt.is_set()):
            failure = raised or Interrupted()
            deadline = time.monotonic() + grace
            stop.set()
    if failure is not None:
        raise failure
