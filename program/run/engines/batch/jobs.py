"""Jobs: requests out, replies in. No job is sent twice, and none is waited for that is not on disk."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import dspy
from dspy import lm15

from archehr.data.case import DataError
from archehr.program.batch import Interrupted
from archehr.program.lm._dspy import wrap_error
from archehr.program.lm.batch_service import CANCELLED, SUCCEEDED, JobView, Raw
from archehr.program.lm.ledger import Budget, BudgetExceeded, Need, Tokens
from archehr.program.lm.wire.errors import LMGone, in_a_line, told
from archehr.program.lm.wire.replies import REFUSED, tokens_of, usable
from archehr.program.run.engines.batch.passes import BatchEngine, Lacking
from archehr.program.run.engines.batch.store import BatchJob, Store, in_words
from archehr.program.stages.ask import UNUSABLE

FIRST_WAIT, LONGEST_WAIT, SLOWER = 0.2, 60.0, 1.5  # seconds between two looks at a job
TRIES = 12  # of a call of the service that is not reached, about four minutes
TRANSIENT = (lm15.RateLimitError, lm15.ServerError, lm15.TimeoutError, lm15.TransportError)
# Stands for any request where only what a reply took matters.
_ANY = lm15.Request(model="-", messages=(lm15.Message.user("-"),))

T = TypeVar("T")


@dataclass
class _Queue:
    """Requests to be sent, their bytes, and whether the budget or the provider has no room for the next one now."""

    waiting: deque[Lacking] = field(default_factory=deque)
    size: int = 0
    full: bool = False


@dataclass
class Jobs:
    """What is to be sent, what is at the provider, and what of the budget is set aside for it; for one thread."""

    store: Store
    engines: Mapping[str, BatchEngine]
    interrupt: threading.Event
    tell: Callable[[str], None]
    stopped: BudgetExceeded | None = None
    _queues: dict[str, _Queue] = field(default_factory=lambda: defaultdict(_Queue))
    _held: dict[str, list[tuple[Budget, Need]]] = field(default_factory=dict)
    _unclaimed: Counter[str] = field(default_factory=Counter)

    def recover(self) -> None:
        """Take up the jobs of earlier calls. One that was about to be created is looked for at the provider, one that
        was fetched is removed there."""
        for job in self.store.jobs.values():
            if job.ended is not None and job.name is not None and not job.cleared and job.lm in self.engines:
                self._clear(job)
        for job in self.store.open_jobs():
            engine = self.engines.get(job.lm)
            if engine is None:
                raise DataError(f"{self.store.folder}: has a batch job of {job.lm}, which is not asked for; name it")
            if job.name is None:
                self._find_or_give_up(job, engine)
        for job in self.store.open_jobs():
            self._unclaimed.update(job.keys)

    def ask(self, lacking: Lacking) -> None:
        """Have a request sent, unless it is on its way since an earlier call."""
        if self._unclaimed[lacking.key] > 0:
            self._unclaimed[lacking.key] -= 1
            return
        queue, service = self._queues[lacking.lm], self.engines[lacking.lm].service
        queue.waiting.append(lacking)
        queue.size += lacking.size
        if queue.size >= service.most_bytes or len(queue.waiting) >= service.most_requests:
            self._send(lacking.lm)  # not later: few prompts are held in memory

    def send(self) -> None:
        """Submit what is asked for, as far as the budget lets; `stopped` is set where it never will."""
        for lm, queue in list(self._queues.items()):
            queue.full = False
            self._send(lm)

    def next_ended(self) -> Iterator[str]:
        """Wait until a job ends, or more; the keys of its requests, answered or not. Raises Interrupted."""
        waited = FIRST_WAIT
        running = self.store.open_jobs()
        self.tell(f"waiting for {in_words(running)}; Ctrl-C leaves it there, and the same command takes it up again")
        while True:
            ended = [(job, view) for job in running if (view := self._look(job)).ended]
            if ended:
                break
            self._pause(waited)
            waited = min(waited * SLOWER, LONGEST_WAIT)
        for job, view in ended:
            self._fetch(job, view)
        for job, view in ended:
            if view.state == CANCELLED and not job.cancelled:
                self.tell(f"batch job {job.name} was cancelled at the provider")
                raise Interrupted
        for job, _ in ended:
            yield from job.keys

    def _send(self, lm: str) -> None:
        """What is queued for an LM and fits the budget now, in as many jobs as the provider's limits make it."""
        while going := self._fitting(lm):
            stages = Counter(lacking.stage for lacking in going)
            job = self.store.intend(lm, [lacking.key for lacking in going], stages)
            budget = self.engines[lm].of_run
            self._held[job.id] = [(budget, lacking.need) for lacking in going] if budget is not None else []
            self._create(job, going, self.engines[lm])

    def _fitting(self, lm: str) -> list[Lacking]:
        """The next job, its requests set aside in the budget."""
        queue, engine = self._queues[lm], self.engines[lm]
        going: list[Lacking] = []
        size = 0
        while queue.waiting and not queue.full and len(going) < engine.service.most_requests:
            size += queue.waiting[0].size
            if going and size > engine.service.most_bytes:
                break
            if not self._set_aside(engine.of_run, queue.waiting[0].need):
                queue.full = True
                break
            going.append(queue.waiting.popleft())
            queue.size -= going[-1].size
        return going

    def _set_aside(self, budget: Budget | None, need: Need) -> bool:
        """Whether a request may go now."""
        try:
            return budget is None or budget.sets_aside(need)
        except BudgetExceeded as stop:
            self.stopped = stop
            return False

    def _create(self, job: BatchJob, going: list[Lacking], engine: BatchEngine) -> None:
        """Create the job, and look for it before that is tried again: its creation may have been all but told."""
        bodies = dict(zip(job.places(), (lacking.body for lacking in going), strict=True))

        def create(attempt: int) -> str:
            known = engine.service.find(job.id) if attempt else None
            return known or engine.service.create(job.id, bodies)

        try:
            tries = 1 + (engine.real.asked.num_retries if engine.real.asked else TRIES)
            quoted = "\n".join(text for lacking in going for text in lacking.texts())
            self.store.created(job, self._steadily(engine, create, tries, quoted=quoted))
        except UNUSABLE:
            self._never_created(job, "REFUSED")
            raise
        except LMGone as gone:
            others = [one for one in self.store.open_jobs() if one.name is not None]
            if not isinstance(gone.__cause__, lm15.RateLimitError) or not others:
                raise
            self.tell("the provider takes no more batch jobs now; the next one goes when one of those there has ended")
            self._take_back(job, going)

    def _take_back(self, job: BatchJob, going: list[Lacking]) -> None:
        """The provider has not taken a job: its requests are the first to go the next time."""
        self._never_created(job, "REFUSED")
        for budget, need in self._held.pop(job.id):
            budget.release(need)
        queue = self._queues[job.lm]
        queue.waiting.extendleft(reversed(going))
        queue.size += sum(lacking.size for lacking in going)
        queue.full = True

    def _find_or_give_up(self, job: BatchJob, engine: BatchEngine) -> None:
        """A job that was on its way to the provider when an earlier call ended: there, or never to be."""
        name = self._steadily(engine, lambda _: engine.service.find(job.id))
        if name is not None:
            self.store.created(job, name)
        else:
            self._never_created(job, "NOT_CREATED")

    def _never_created(self, job: BatchJob, state: str) -> None:
        with suppress(lm15.LM15Error):
            self.engines[job.lm].service.forget(job.id)
        self.store.end(job, state)

    def _look(self, job: BatchJob) -> JobView:
        engine = self.engines[job.lm]
        try:
            return self._steadily(engine, lambda _: engine.service.look(str(job.name)), unknown=True)
        except (lm15.UnsupportedModelError, lm15.UnsupportedFeatureError):
            raise DataError(
                f"{self.store.folder}: the provider does not know the batch job {job.name}; use the key it was sent "
                "with, or give it up with --batch-cancel"
            ) from None

    def _fetch(self, job: BatchJob, view: JobView) -> None:
        """Keep what a job has, and let go of what it had set aside."""
        engine, places = self.engines[job.lm], job.places()
        raws = self._steadily(engine, lambda _: engine.service.answers(str(job.name), list(places)))
        lasting = {place: raw for place, raw in raws.items() if _is_reply(engine, raw)}
        self.store.keep(job, lasting)
        for place in places.keys() - lasting.keys():
            if place in raws:
                self.store.keep_error(places[place], raws[place])
            else:
                self.store.lost[places[place]] += 1
        self._settle(job, engine, raws)
        self.store.end(job, view.state)
        self._clear(job)
        if missing := len(places) - len(raws):
            why = f" ({view.why})" if view.why else ""
            state = f" as {view.state}" if view.state != SUCCEEDED else ""
            self.tell(f"batch job {job.name} ended{state}{why}; {missing} of {len(places)} requests have no answer and "
                      "are asked again")  # fmt: skip

    def _clear(self, job: BatchJob) -> None:
        """Remove a job from the provider. Where that fails, the next call of the command tries again."""
        with suppress(lm15.LM15Error):
            with suppress(lm15.UnsupportedModelError, lm15.UnsupportedFeatureError):  # not there any more
                self.engines[job.lm].service.clear(str(job.name))
            self.store.cleared(job)

    def _settle(self, job: BatchJob, engine: BatchEngine, raws: Mapping[str, Raw]) -> None:
        for place, (budget, need) in zip(job.places(), self._held.pop(job.id, ()), strict=False):
            used: Tokens | None = Tokens()
            if place in raws:
                used = _used(engine, raws[place])
            price = engine.backend.price
            cost = price.cost(used) if price is not None and used is not None else 0.0
            # Without reported usage the estimate is what the limits go by.
            budget.settle(need, *((need.tokens, need.cost) if used is None else (used.total, cost)))

    def _steadily(
        self,
        engine: BatchEngine,
        call: Callable[[int], T],
        tries: int = TRIES,
        *,
        quoted: str = "",
        unknown: bool = False,
    ) -> T:
        """What a call of the service gives, tried again while it is not reached. `call` gets the number of the attempt;
        `quoted` is what was sent, and no message may show.

        Raises LMGone where it stays so, the LM's error where it will not pass, Interrupted.
        """
        for attempt in range(tries):
            try:
                return call(attempt)
            except lm15.LM15Error as error:
                if unknown and isinstance(error, (lm15.UnsupportedModelError, lm15.UnsupportedFeatureError)):
                    raise
                fault = told(error, attempt, quoted, engine.real._secrets, engine.backend.endpoint)
                if not isinstance(fault, TRANSIENT):
                    raise _stopping(fault, engine) from error
                if attempt == tries - 1:
                    raise LMGone(f"the batch service: {in_a_line(fault)}") from error
                if attempt == 1:
                    self.tell(f"the batch service: {in_a_line(fault)}; trying again")
                self._pause(min(2.0**attempt / 2, LONGEST_WAIT))
        raise AssertionError

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.interrupt.wait(min(left, 0.5)):
                raise Interrupted
        if self.interrupt.is_set():
            raise Interrupted


def _stopping(error: Exception, engine: BatchEngine) -> Exception:
    """As one of the errors that a run stops on: what the service refuses is no fault of a single request."""
    stop = wrap_error(error, model=engine.real.asked.name if engine.real.asked else "")
    if isinstance(stop, UNUSABLE):
        return stop
    return dspy.LMConfigurationError(f"the batch service refuses the job: {stop}")


def _is_reply(engine: BatchEngine, raw: Raw) -> bool:
    """Whether an answer is one for good: no error, and not of another model, which ends the run."""
    try:
        usable(engine.service.reply(_ANY, raw), _ANY, engine.backend, lambda _: None)
    except lm15.UnsupportedModelError:
        return False
    except lm15.LM15Error as error:
        return error.provider_code == REFUSED  # it is paid for, whatever is wrong with it
    except Exception:  # of the providers' clients, which can make nothing of it
        return False
    return True


def _used(engine: BatchEngine, raw: Raw) -> Tokens | None:
    try:
        return tokens_of(engine.service.reply(_ANY, raw), engine.backend.provider)
    except Exception:
        return Tokens()
