"""Answers on a Ray cluster: Ray Data feeds the cases to a pool of actors, and the driver journals what comes back."""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from archehr.data.case import DataError
from archehr.program.batch import GRACE, Interrupted
from archehr.program.run.engines.engine import Work
from archehr.program.run.engines.order import Order, budgets_of, case_as_json, keys_of
from archehr.program.run.job import Job
from archehr.program.run.records import CaseRecord

CASES = 8  # in a block where no LM is asked: handing out a block costs about as much as half a case
CALLS = 8  # that wait for an LM in one actor
BLOCKS_A_SECOND = 64  # that one driver hands out easily; an LM's blocks grow where there would be more


@dataclass(frozen=True)
class RayEngine:
    """`address` is the cluster's HOST:PORT, or "auto" on one of its nodes; None is $RAY_ADDRESS, else this machine."""

    address: str | None = None

    def check(self, job: Job) -> None:
        """Raises DataError without Ray or a cluster, and for a program or LM that only this process has."""
        _require_ray()
        from archehr.program.run.engines.on_ray.connection import address_of

        address_of(self.address)
        if Order.of(job) is None:
            raise DataError("--engine ray: this program's stages are not archehr's own; use --engine threads")
        if any(lm.engine.asked.record is not None for lm in job.lms):
            raise DataError("--engine ray: --record keeps the replies of this process alone; use --engine threads")

    def answers(self, work: Work) -> Iterator[CaseRecord]:
        """As RunEngine says. Raises DataError for a cluster that cannot be used or is lost."""
        from archehr.program.run.engines.on_ray.connection import connected

        local_only = any(lm.engine.asked.local_only for lm in work.job.lms)
        with connected(self.address, local_only, work.tell) as cluster:
            yield from _Run(work, cluster).answers()


@dataclass(frozen=True)
class Shape:
    """How many actors, calls at once in each, and cases in a block of which each call answers one."""

    actors: int
    calls: int
    cases: int

    @classmethod
    def of(cls, workers: int, asks_lm: bool, cpus: int, nodes: int) -> Shape:
        """For `workers` cases at once: an actor a core where no LM is asked, else few actors whose threads wait."""
        if not asks_lm:
            return cls(min(workers, cpus), 1, CASES)
        actors = min(workers, cpus, max(nodes, -(-workers // CALLS)))
        cases = 1 + workers // (4 * BLOCKS_A_SECOND)
        return cls(actors, -(-workers // (actors * cases)), cases)

    @property
    def ahead(self) -> int:
        """Blocks that are out at once: what the actors work on, and as many that wait at them."""
        return 2 * self.actors * self.calls + 2


class _Run:
    """The driver's side: a thread that hands out blocks, one that takes replies, and the caller's that journals."""

    def __init__(self, work: Work, cluster: Any) -> None:
        self.work = work
        self.cluster = cluster
        self.shape = Shape.of(work.workers, bool(work.job.lms), cluster.cpus, cluster.nodes)
        self.room = threading.Semaphore(self.shape.ahead)
        self.came: queue.SimpleQueue[Any] = queue.SimpleQueue()  # a row, None at the end, or an error
        self.given = self.back = 0  # cases
        self.all_given = False
        self.stopped = threading.Event()
        self.budgets = budgets_of(work.job)
        self.desk = self._desk()

    def answers(self) -> Iterator[CaseRecord]:
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
            came = _next(self.came)
            if isinstance(came, dict):
                for reply in self._replies(came):
                    if "record" in reply:
                        yield CaseRecord.model_validate(reply["record"])
                    elif "error" in reply:
                        failure = failure or _raised(*reply["error"])
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

    def _replies(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
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
        import ray

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
        """The source, then the pool. Blocks stay as they are read: Ray would gather them to 128 MB."""
        import ray.data

        from archehr.program.run.engines.on_ray.source import Blocks
        from archehr.program.run.engines.on_ray.worker import Answerer

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
                Answerer, fn_constructor_args=(self.desk,), batch_size=None, compute=pool, num_cpus=1
            )

    def _desk(self) -> Any:
        import ray

        from archehr.program.run.engines.on_ray.desk import BudgetState, Desk, Opening

        order = Order.of(self.work.job)
        assert order is not None
        opening = Opening(
            order=order.model_dump_json(),
            keys=keys_of(self.work.job),
            keep_replies=bool(self.work.job.lms) and self.work.folder is not None,
        )
        calls = 100 + 4 * self.shape.actors * self.shape.calls * self.shape.cases  # each may wait for the budget
        actor = ray.remote(num_cpus=0, max_concurrency=calls, scheduling_strategy=self.cluster.here)(Desk)
        desk = actor.remote()
        desk.open.remote(opening.model_dump(), [BudgetState.of(b).model_dump() for b in self.budgets])
        return desk

    def _stop(self) -> None:
        self.stopped.set()
        self.room.release()
        self.desk.stop.remote()

    def _keep_budgets(self) -> None:
        """What the workers spent, in the budgets of this process, which a later run may share."""
        import ray

        from archehr.program.run.engines.on_ray.desk import BudgetState

        if not self.budgets:
            return
        with contextlib.suppress(ray.exceptions.RayError):  # of a cluster that is gone
            for budget, state in zip(self.budgets, ray.get(self.desk.budgets.remote(), timeout=GRACE), strict=True):
                BudgetState(**state).onto(budget)


_NOTHING = object()


def _next(came: queue.SimpleQueue[Any]) -> Any:
    try:
        return came.get(timeout=0.1)
    except queue.Empty:
        return _NOTHING


def _raised(kind: str, message: str) -> Exception:
    from archehr.program.run.engines.on_ray.worker import raised

    return raised(kind, message)


def _explained(error: BaseException) -> BaseException:
    """An error of Ray's in one line; another as it is."""
    import ray

    if not isinstance(error, ray.exceptions.RayError):
        return error
    return DataError(f"the Ray cluster was lost ({type(error).__name__}); the same command answers what is left")


@contextlib.contextmanager
def _quiet_context() -> Iterator[None]:
    """Datasets made inside print no progress, and keep a block a row."""
    import logging

    from ray.data import DataContext

    context = DataContext.get_current().copy()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.target_max_block_size = 1
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    with DataContext.current(context):
        yield


def _require_ray() -> None:
    try:
        import ray.data  # noqa: F401  (a second that only this engine needs)
    except ImportError:
        raise DataError("--engine ray needs the extra `ray`: pip install 'archehr-dspy[ray]'") from None


def engine() -> RayEngine:
    """The engine."""
    return RayEngine()
