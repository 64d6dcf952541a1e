"""Many cases at once: our own threads, one code path, each reported the moment it is finished."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 4  # results that each worker may have waiting to be collected
GRACE = 10.0  # seconds that cases in flight may take to finish after an interruption

_NONE = object()


class Interrupted(Exception):
    """Ctrl-C or SIGTERM: finished cases are on disk, and the same command resumes the run."""


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[Result]):
    """What a thread hands over; `left` is its last, with the error that it left for."""

    result: Result | None = None
    left: bool = False
    error: BaseException | None = None


def in_threads(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    workers: int,
    interrupt: threading.Event | None = None,
    grace: float = GRACE,
) -> Iterator[Result]:
    """`work(item)` for every item on `workers` threads, yielding results as they finish. Items are taken as they are
    needed, so that few of a long stream are held.

    The caller's context variables (dspy.context among them) are seen by every thread. The first exception, or
    `interrupt` being set, starts nothing new; those in flight may finish for `grace` seconds and are still
    yielded, then the exception (or Interrupted) is raised. Threads are daemons: a stuck LM call cannot keep the
    process alive.
    """
    waiting = _Waiting(items, workers * AHEAD)
    finished: queue.SimpleQueue[_Outcome[Result]] = queue.SimpleQueue()

    def worker() -> None:
        error = None
        try:
            while (item := waiting.take()) is not _NONE:
                finished.put(_Outcome(work(cast(Item, item))))
        except BaseException as raised:
            waiting.stop()
            error = raised
        finished.put(_Outcome(left=True, error=error))

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(worker,), daemon=True, name=f"case-worker-{i}")
        for i in range(min(workers, len(items)) if isinstance(items, Sized) else workers)
    ]
    for thread in threads:
        thread.start()
    try:
        yield from _collect(len(threads), finished, waiting, interrupt or threading.Event(), grace)
    finally:
        waiting.stop()


def side_by_side(asks: Sequence[Callable[[], Result]]) -> list[Result]:
    """What each gives, in their order, all asked at once; one alone is asked on the caller's own thread. An error is
    raised when all are asked, so that a run by batches has them in one job."""
    if len(asks) == 1:
        return [asks[0]()]
    results: dict[int, Result] = {}
    errors: list[BaseException] = []

    def ask(number: int) -> None:
        try:
            results[number] = asks[number]()
        except BaseException as error:
            errors.append(error)

    for _ in in_threads(range(len(asks)), ask, len(asks)):
        pass
    if errors:
        raise errors[0]
    return [results[i] for i in range(len(asks))]


class _Waiting(Generic[Item]):
    """The items that no thread has taken yet; at most `most` are taken and not collected, so that results cannot pile
    up either."""

    def __init__(self, items: Iterable[Item], most: int) -> None:
        self._items = iter(items)
        self._most = most
        self._out = 0
        self._changed = threading.Condition()
        self._stopped = False
        self.none_left = False

    def take(self) -> Item | object:
        """The next item, or _NONE where there is no more to do."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._out < self._most)
            item = _NONE if self._stopped or self.none_left else next(self._items, _NONE)
            self.none_left = self.none_left or (item is _NONE and not self._stopped)
            self._out += item is not _NONE
            return item

    def collected(self) -> None:
        """One result has been taken away."""
        with self._changed:
            self._out -= 1
            self._changed.notify()

    def stop(self) -> None:
        """Hand out no more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def _collect(
    working: int,
    finished: queue.SimpleQueue[_Outcome[Result]],
    waiting: _Waiting[Item],
    interrupt: threading.Event,
    grace: float,
) -> Iterator[Result]:
    failure: BaseException | None = None
    deadline = float("inf")
    while working and time.monotonic() < deadline:
        try:
            outcome = finished.get(timeout=0.1)
        except queue.Empty:
            outcome = None
        if outcome is not None and outcome.left:
            working -= 1
        elif outcome is not None:
            yield cast(Result, outcome.result)
            waiting.collected()
        raised = outcome.error if outcome is not None else None
        if failure is None and (raised is not None or interrupt.is_set()):
            failure = raised or Interrupted()
            deadline = time.monotonic() + grace
            waiting.stop()
    if failure is not None and not (isinstance(failure, Interrupted) and not working and waiting.none_left):
        raise failure
