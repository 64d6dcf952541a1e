"""Answers on threads of this process: what waits for an LM's replies needs no more."""

from __future__ import annotations

from collections.abc import Iterator

from archehr.program.batch import in_threads
from archehr.program.run.engines.engine import Work
from archehr.program.run.job import Job
from archehr.program.run.records import CaseRecord


class Threads:
    """Answers every job."""

    def check(self, job: Job) -> None:
        """Nothing to refuse."""

    def answers(self, work: Work) -> Iterator[CaseRecord]:
        """As RunEngine says."""
        yield from in_threads(work.cases, work.job.answer, work.workers, work.interrupt)


def engine() -> Threads:
    """The engine."""
    return Threads()
