"""Answers in processes of this machine, a core each: for programs that ask no LM, whose threads hold one another up."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

from archehr.data.case import Case, DataError, shown_id
from archehr.program.batch import in_threads
from archehr.program.run.engines.crossing import raised
from archehr.program.run.engines.engine import Work
from archehr.program.run.engines.order import Order, case_as_json
from archehr.program.run.job import Job
from archehr.program.run.records import CaseRecord

ATTEMPTS = 2  # a worker that is killed loses its case to another one, once


class Processes:
    """Each worker is `python -m archehr.program.run.engines.worker`, which reads a case a line and writes its record:
    no pickle, and no `if __name__ == "__main__"` in the caller's script."""

    def check(self, job: Job) -> None:
        """Raises DataError for a program that asks an LM, or that only this process has."""
        if job.program.asks_lm:
            raise DataError("--engine processes is for programs without an LM; an LM's calls run on threads")
        if Order.of(job) is None:
            raise DataError("--engine processes: this program's stages are not archehr's own; use --engine threads")

    def answers(self, work: Work) -> Iterator[CaseRecord]:
        """As RunEngine says. Raises DataError for a case that ends two workers."""
        order = Order.of(work.job)
        assert order is not None
        pool = _Pool(order.model_dump_json())
        try:
            yield from in_threads(work.cases, pool.answer, min(work.workers, cores()), work.interrupt)
        finally:
            pool.close()


class _Pool:
    """A worker for every thread that asks."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.own = threading.local()
        self.all: list[subprocess.Popen[str]] = []

    def answer(self, case: Case) -> CaseRecord:
        line = case_as_json(case)
        for _ in range(ATTEMPTS):
            if (reply := self._ask(line)) is not None:
                return _record(reply)
            self.own.worker = None
        raise DataError(f"case {shown_id(case.id)}: the worker process ended on it, twice; is there memory enough?")

    def _ask(self, line: str) -> str | None:
        """The worker's reply, or None where it has ended."""
        worker, first = getattr(self.own, "worker", None), ""
        if worker is None:
            worker, first = self._started(), self.order + "\n"
        assert worker.stdin is not None and worker.stdout is not None
        try:
            worker.stdin.write(f"{first}{line}\n")
            worker.stdin.flush()
        except OSError:
            return None
        reply = worker.stdout.readline()
        return reply if reply.endswith("\n") else None

    def _started(self) -> subprocess.Popen[str]:
        """A worker of this thread, which takes the order and then cases."""
        # Threads of numpy's own in every worker would take the cores from one another.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
        worker = subprocess.Popen(
            [sys.executable, "-m", "archehr.program.run.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=environment,
            start_new_session=True,  # Ctrl-C is for this process, which lets the cases in flight finish
        )
        self.all.append(worker)
        self.own.worker = worker
        return worker

    def close(self) -> None:
        """End the workers: they leave when there is nothing more to read."""
        for worker in self.all:
            worker.kill()
            worker.wait()
            for stream in (worker.stdin, worker.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


def _record(reply: str) -> CaseRecord:
    """Raises what ended the worker's answer."""
    parsed = json.loads(reply)
    if "error" in parsed:
        raise raised(*parsed["error"])
    return CaseRecord.model_validate(parsed)


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def engine() -> Processes:
    """The engine."""
    return Processes()
