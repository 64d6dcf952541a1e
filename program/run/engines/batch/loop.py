"""Answers through a provider's batch service, at half the price.

The program runs over the replies that are there, case by case; what it asks beyond them goes out in the next job, and
when that has ended the same case runs again and comes further. So asking again, fallbacks, views and checks are those
of a direct run, and a call that was killed takes up where the files in the run folder leave off.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import dspy

from archehr.data.case import Case, DataError
from archehr.program.batch import Interrupted, in_threads
from archehr.program.lm.batch_service import BatchService
from archehr.program.run.engines.batch.jobs import Jobs
from archehr.program.run.engines.batch.passes import Pass, PassLedger, Pending, over_store, passing
from archehr.program.run.engines.batch.store import FOLDER, Store, in_words
from archehr.program.run.engines.engine import Work
from archehr.program.run.job import Job
from archehr.program.run.records import CaseRecord
from archehr.program.stage_lms import stage_lms, with_lms

MOST_CASES = 20_000  # that are under way at once, for they are held in memory until they are finished


@dataclass(frozen=True)
class _Passed:
    """What came of one pass of a case: its record, or None where replies are lacking."""

    case: Case
    record: CaseRecord | None
    its: Pass


class Batches:
    """The engine."""

    def check(self, job: Job) -> None:
        """Raises DataError for an LM whose provider has no batches that are known here."""
        if not job.lms:
            raise DataError("--batch: this program asks no LM; leave it out")
        for lm in job.lms:
            service_of(lm)

    def answers(self, work: Work) -> Iterator[CaseRecord]:
        """As RunEngine says. Jobs stay at the provider when the call ends, and the next call fetches them."""
        with ExitStack() as stack:
            folder = work.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            store = stack.enter_context(closing(Store(folder / FOLDER)))
            job, jobs = _over(store, work)
            try:
                yield from _answers(work, job, jobs)
            except BaseException:
                if running := [batch_job for batch_job in store.open_jobs() if batch_job.name]:
                    work.tell(
                        f"{in_words(running)} at the provider: the same command fetches the replies, with "
                        "--batch-cancel it cancels"
                    )
                raise


def service_of(lm: dspy.BaseLM) -> BatchService:
    """The batch service of an LM. Raises DataError where there is none."""
    backend = getattr(getattr(lm, "engine", None), "backend", None)
    if backend is None or backend.batches is None:
        raise DataError(
            f"--batch: {lm.model} has no batch service that archehr knows; use gemini/MODEL, vertex_ai/gemini-MODEL or "
            "openai/MODEL, or leave --batch out"
        )
    service: BatchService = backend.batches()
    return service


def names_of(job: Job) -> dict[str, dspy.BaseLM]:
    """The LMs of a job by the name under which their jobs are kept."""
    models = Counter(lm.model for lm in job.lms)
    return {lm.model if models[lm.model] == 1 else f"{lm.model}#{n}": lm for n, lm in enumerate(job.lms)}


def _over(store: Store, work: Work) -> tuple[Job, Jobs]:
    """The job with its LMs over the store, and what sends their requests."""
    names = {id(lm): name for name, lm in names_of(work.job).items()}
    copies: dict[int, dspy.LM] = {}
    for lm in work.job.lms:
        copies[id(lm)] = over_store(lm, names[id(lm)], service_of(lm), store)
        budget = lm.engine.budget
        if lm.engine.backend.price is None and (budget is None or not budget.limited):
            work.tell(f"no price is known for {lm.model}, and no limit is set; --max-calls or --max-cost sets one")
    lms = {stage: copies[id(lm)] for stage, lm in stage_lms(work.job.program, work.job.lm).items() if lm is not None}
    program, _ = with_lms(work.job.program, lms)
    ledger = PassLedger(work.job.ledger) if work.job.ledger is not None else None
    engines = {names[key]: lm.engine for key, lm in copies.items()}
    return replace(work.job, program=program, lm=None, ledger=ledger), Jobs(store, engines, work.interrupt, work.tell)


def _answers(work: Work, job: Job, jobs: Jobs) -> Iterator[CaseRecord]:
    """Pass after pass, until no case lacks anything or the budget is spent."""

    def answer(case: Case) -> _Passed:
        with passing() as its:
            try:
                return _Passed(case, job.answer(case), its)
            except Pending:
                return _Passed(case, None, its)

    jobs.recover()
    waiting, fresh = _Waiting(), iter(work.cases)
    ready: list[Case] = []
    while True:
        any_passed = False
        room = max(0, MOST_CASES - len(waiting.cases) - len(ready))
        for passed in in_threads(chain(ready, islice(fresh, room)), answer, work.workers, work.interrupt):
            any_passed = True
            if passed.record is not None:
                passed.its.settle()
                yield passed.record
            else:
                waiting.add(passed)
                for lacking in passed.its.lacking:
                    jobs.ask(lacking)
        if waiting.cases and work.interrupt.is_set():
            raise Interrupted
        jobs.send()
        if waiting.cases and jobs.store.open_jobs():
            ready = waiting.ready(jobs.next_ended())
        elif waiting.cases or not any_passed:
            break
        else:
            ready = []
    if waiting.cases:
        assert jobs.stopped is not None
        raise jobs.stopped


class _Waiting:
    """The cases that lack replies, and how many each."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}
        self._of: dict[str, str] = {}
        self._lacks: Counter[str] = Counter()

    def add(self, passed: _Passed) -> None:
        self.cases[passed.case.id] = passed.case
        self._lacks[passed.case.id] = len(passed.its.lacking)
        for lacking in passed.its.lacking:
            self._of[lacking.key] = passed.case.id

    def ready(self, keys: Iterable[str]) -> list[Case]:
        """The cases that wait no more, now that these requests came to an end, one for each time."""
        for key in keys:
            if key in self._of:
                self._lacks[self._of[key]] -= 1
        done = [case for name, case in self.cases.items() if self._lacks[name] <= 0]
        for case in done:
            del self.cases[case.id]
        return done
