"""Many cases at once: our own threads, one code path, each case reported the moment it is finished."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from archehr.data.case import Case
from archehr.program.run.records import CaseRecord

GRACE = 10.0  # seconds that cases in flight may take to finish after an interruption


class Interrupted(Exception):
    """Ctrl-C or SIGTERM: finished cases are on disk, and the same command resumes the run."""


def answer_all(
    cases: Sequence[Case],
    answer: Callable[[Case], CaseRecord],
    workers: int,
    interrupt: threading.Event | None = None,
    grace: float = GRACE,
) -> Iterator[CaseRecord]:
    """`answer(case)` for every case on `workers` threads, yielding records as they finish.

    The caller's context variables (dspy.context among them) are seen by every thread. The first exception, or
    `interrupt` being set, stops new cases; those in flight may finish for `grace` seconds and are still yielded, then
    the exception (or Interrupted) is raised. Threads are daemons: a stuck LM call cannot keep the process alive.
    """
    waiting: queue.SimpleQueue[Case] = queue.SimpleQueue()
    finished: queue.SimpleQueue[CaseRecord | BaseException] = queue.SimpleQueue()
    stop = threading.Event()
    for case in cases:
        waiting.put(case)

    def work() -> None:
        while not stop.is_set():
            try:
                case = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                finished.put(answer(case))
            except BaseException as error:
                stop.set()
                finished.put(error)

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True, name=f"case-worker-{i}")
        for i in range(min(workers, len(cases)))
    ]
    for thread in threads:
        thread.start()
    try:
        yield from _collect(len(cases), finished, threads, stop, interrupt or threading.Event(), grace)
    finally:
        stop.set()


def _collect(
    expected: int,
    finished: queue.SimpleQueue[CaseRecord | BaseException],
    threads: list[threading.Thread],
    stop: threading.Event,
    interrupt: threading.Event,
    grace: float,
) -> Iterator[CaseRecord]:
    failure: BaseException | None = None
    deadline = float("inf")
    received = 0
    while received < expected and time.monotonic() < deadline:
        outcome: CaseRecord | BaseException | None
        try:
            outcome = finished.get(timeout=0.1)
            received += 1
        except queue.Empty:
            outcome = None
            if failure is not None and not any(t.is_alive() for t in threads) and finished.empty():
                break
        if isinstance(outcome, CaseRecord):
            yield outcome
        if failure is None and (isinstance(outcome, BaseException) or interrupt.is_set()):
            failure = outcome if isinstance(outcome, BaseException) else Interrupted()
            deadline = time.monotonic() + grace
            stop.set()
    if failure is not None:
        raise failure
