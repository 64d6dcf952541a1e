"""Answers on a Ray cluster: Ray Data feeds the cases to a pool of actors, and the driver journals what comes back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from archehr.data.case import DataError
from archehr.program.run.engines.engine import Work
from archehr.program.run.engines.order import Order
from archehr.program.run.job import Job
from archehr.program.run.records import CaseRecord


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
        """As RunEngine says. Raises DataError for a cluster that cannot be used or is lost.

        Each actor counts for itself the cases in a row that an LM was not reached for.
        """
        _require_ray()
        from archehr.program.run.engines.on_ray.connection import connected
        from archehr.program.run.engines.on_ray.driver import Driver

        local_only = any(lm.engine.asked.local_only for lm in work.job.lms)
        with connected(self.address, local_only, work.tell) as cluster:
            yield from Driver(work, cluster).answers()


def _require_ray() -> None:
    if "ray" not in sys.modules:  # a thread of Ray Data's that outlives a run would start a Ray of its own
        os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
    try:
        import ray.data  # noqa: F401  (a second that only this engine needs)
    except ImportError:
        raise DataError("--engine ray needs the extra `ray`: pip install 'archehr-dspy[ray]'") from None


def engine() -> RayEngine:
    """The engine."""
    return RayEngine()
