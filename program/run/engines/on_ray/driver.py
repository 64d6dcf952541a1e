"""Driver: hands out the cases of a run in blocks, and takes, books and yields what the actors make of them."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import ray
import ray.data
from ray.exceptions import RayError

from archehr.data.case import DataError
from archehr.program.batch import GRACE, Interrupted
from archehr.program.run.engines.crossing import raised
from archehr.program.run.engines.engine import Work
from archehr.program.run.engines.on_ray.connection import Cluster
from archehr.program.run.engines.on_ray.desk import BudgetState, Desk, Opening
from archehr.program.run.engines.on_ray.shape import Shape
from archehr.program.run.engines.on_ray.source import Blocks
from archehr.program.run.engines.on_ray.worker import Answerer, Reply
from archehr.program.run.engines.order import Order, budgets_of, case_as_json, keys_of
from archehr.program.run.records import CaseRecord

_NOTHING = object()


class Driver:
    """One run: a thread that hands out blocks, one that takes replies, and the caller's, which journals."""

    def __init__(self, work: Work, cluster: Cluster) -> None:
        self.work = work
        self.shape = Shape.of(work.workers, bool(work.job.lms), cluster.cpus, cluster.nodes)
        self.room = threading.Semaphore(self.shape.ahead)
        self.came: queue.SimpleQueue[Any] = queue.SimpleQueue()  # a row, None at the end, or an error
        self.given = self.back = 0  # cases
        self.all_given = False
        self.stopped = threading.Event()
        self.budgets = budgets_of(work.job)
        self.desk = self._desk(cluster)

    def answers(self) -> Iterator[CaseRecord]:
        """As RunEngine says."""
        for task in (self._hand_out, self._take):
            threading.Thread(target=task, daemon=True).start()
        try:
            yield from self._collect()
        finally:
            self._stop()
            self._keep_budgets()

    def _collect(self) -> Iterator[CaseRecord]:
        failure: BaseException | None = None
        running, deadline = True, float("inf")
        while running and time.monotonic() < deadline:
            came = self._next()
            if isinstance(came, dict):
                for reply in self._replies(came):
                    if "record" in reply:
                        yield CaseRecord.model_validate(reply["record"])
                    elif "error" in reply:
                        failure = failure or raised(*reply["error"])
            elif came is not _NOTHING:
                failure, running = failure or came, False
            if failure is None and self.work.interrupt.is_set():
                failure = Interrupted()
            if failure is not None and not self.stopped.is_set():
                self._stop()
                deadline = time.monotonic() + GRACE
        lost = self.given - self.back
        if failure is None and lost:
            failure = DataError(f"Ray lost {lost} cases that it was given; the same command answers them")
        if failure is not None and not (isinstance(failure, Interrupted) and self.all_given and not lost):
            raise failure

    def _next(self) -> Any:
        try:
            return self.came.get(timeout=0.1)
        except queue.Empty:
            return _NOTHING

    def _replies(self, row: dict[str, Any]) -> Iterator[Reply]:
        """The replies of a block, booked."""
        self.room.release()
        self.desk.done.remote(row["block"])
        for line in row["replies"].split("\n"):
            reply = json.loads(line)
            self.back += bool(reply)
            if (taken := reply.get("taken")) is not None and self.work.job.ledger is not None:
                self.work.job.ledger.book_taken(taken)
            yield reply

    def _hand_out(self) -> None:
        """Blocks to the desk, as there is room for them."""
        try:
            cases = iter(self.work.cases)
            for number in itertools.count():
                self.room.acquire()
                block = [] if self.stopped.is_set() else list(itertools.islice(cases, self.shape.cases))
                if self.stopped.is_set():  # and Ray may be gone
                    return
                if not block:
                    break
                self.given += len(block)
                ray.get(self.desk.put.remote(number, "\n".join(map(case_as_json, block))))
            self.all_given = True
            ray.get(self.desk.end.remote())
        except BaseException as error:  # of the source, or of a cluster that is gone
            self.came.put(_explained(error))

    def _take(self) -> None:
        """Rows of replies, as they come."""
        try:
            for rows in self._dataset().iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
                for row in rows.to_pylist():
                    self.came.put(row)
            self.came.put(None)
        except BaseException as error:
            self.came.put(_explained(error))

    def _dataset(self) -> Any:
        """The source, then the pool."""
        shape = self.shape
        pool = ray.data.ActorPoolStrategy(
            size=shape.actors,
            max_tasks_in_flight_per_actor=2 * shape.calls,
            max_concurrent_calls_per_actor=shape.calls,
            enable_true_multi_threading=True,
        )
        with _quiet_context():
            source = ray.data.read_datasource(Blocks(self.desk), override_num_blocks=1, num_cpus=0)
            return source.map_batches(
                Answerer, fn_constructor_args=(self.desk,), batch_size=None, compute=pool, num_cpus=shape.share
            )

    def _desk(self, cluster: Cluster) -> Any:
        order = Order.of(self.work.job)
        assert order is not None
        opening = Opening(
            order=order.model_dump_json(),
            keys=keys_of(self.work.job),
            keep_replies=bool(self.work.job.lms) and self.work.folder is not None,
        )
        at_once = 100 + 4 * self.shape.workers  # each may wait for the budget
        desk = ray.remote(num_cpus=0, max_concurrency=at_once, scheduling_strategy=cluster.here)(Desk).remote()
        desk.open.remote(opening.model_dump(), [BudgetState.of(budget).model_dump() for budget in self.budgets])
        return desk

    def _stop(self) -> None:
        self.stopped.set()
        self.room.release()
        self.desk.stop.remote()

    def _keep_budgets(self) -> None:
        """What the workers spent, in the budgets of this process, which a later run may share."""
        if not self.budgets:
            return
        with contextlib.suppress(RayError):  # of a cluster that is gone
            for budget, state in zip(self.budgets, ray.get(self.desk.budgets.remote(), timeout=GRACE), strict=True):
                BudgetState(**state).onto(budget)


def _explained(error: BaseException) -> BaseException:
    """An error of Ray's in one line; another as it is."""
    if not isinstance(error, RayError):
        return error
    return DataError(f"the Ray cluster was lost ({type(error).__name__}); the same command answers what is left")


@contextlib.contextmanager
def _quiet_context() -> Iterator[None]:
    """Datasets made inside print no progress, and keep a row a block, where Ray would gather 128 MB of them."""
    context = ray.data.DataContext.get_current().copy()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.target_max_block_size = 1
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    with ray.data.DataContext.current(context):
        yield
