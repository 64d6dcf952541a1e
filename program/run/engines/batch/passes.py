"""One pass of a case through the program over the replies that are there; what is missing is asked for in a batch."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import dspy
from dspy import lm15

from archehr.program.lm.batch_service import BatchService, Body
from archehr.program.lm.ledger import Budget, Count, Ledger, Need, Place, at, sum_of, where
from archehr.program.lm.metered import MeteredEngine
from archehr.program.lm.prices import batch_price
from archehr.program.run.engines.batch.store import Store

MOST_LOST = 3  # jobs that may end without a request's answer before that counts as an error of the LM


class Pending(BaseException):
    """The reply is not there yet. No Exception: nothing of the program or of DSPy deals with it as with a fault."""


@dataclass(frozen=True)
class Lacking:
    """A request without a reply: of which stage and LM, and the most that it may use. `size` is in bytes."""

    key: str
    stage: str
    lm: str
    body: Body
    need: Need

    @cached_property
    def size(self) -> int:
        return len(json.dumps(self.body).encode()) + 200  # for what stands around it

    def texts(self) -> Iterator[str]:
        """Every string in the body."""
        queue: list[Any] = [self.body]
        while queue:
            match queue.pop():
                case str() as text:
                    yield text
                case dict() as parts:
                    queue.extend(parts.values())
                case list() as parts:
                    queue.extend(parts)


@dataclass
class Pass:
    """What one pass looked up, lacks, and has to book if it comes to an end; threads of one case share it."""

    lacking: list[Lacking] = field(default_factory=list)
    entries: list[tuple[Ledger, Count, Place, str, str | None]] = field(default_factory=list)
    records: list[tuple[Callable[[], None], Place]] = field(default_factory=list)
    _turns: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def turn(self, key: str) -> int:
        """How often this pass asked the same before."""
        with self._lock:
            self._turns[key] += 1
            return self._turns[key] - 1

    def settle(self) -> None:
        """The case is finished: book its calls where they belong. A pass that ends in Pending books nothing, for the
        next one makes the same calls."""
        for ledger, entry, place, lm, version in self.entries:
            with at(*place):
                ledger.add(entry, lm=lm, version=version)
        for record, place in self.records:
            with at(*place):
                record()


_pass: ContextVar[Pass] = ContextVar("archehr_batch_pass")


@contextmanager
def passing() -> Iterator[Pass]:
    """Calls made inside are looked up for this pass."""
    token = _pass.set(ours := Pass())
    try:
        yield ours
    finally:
        _pass.reset(token)


class PassLedger(Ledger):
    """Keeps what is booked with the pass instead of with `real`, which gets it when the case is finished."""

    def __init__(self, real: Ledger) -> None:
        super().__init__()
        self.real = real

    def add(self, entry: Count, *, lm: str, version: str | None = None) -> None:
        _pass.get().entries.append((self.real, entry, where.get(), lm, version))

    def note(self, line: str) -> None:
        self.real.note(line)

    def of_case(self, case_id: str) -> dict[str, Any]:
        """Of the case of this pass, with the calls whose replies an earlier call of the command fetched."""
        return sum_of(asdict(entry) for _, entry, *_ in _pass.get().entries)


class StoredEngine:
    """Answers from the store; a request without a reply is put on the pass's list."""

    def __init__(self, lm: str, service: BatchService, store: Store, need: Callable[[lm15.Request], Need]) -> None:
        self._lm, self._service, self._store, self._need = lm, service, store, need

    def complete(self, request: lm15.Request) -> lm15.Response:
        body = self._service.body(request)
        key = _key(self._lm, body)
        ours = _pass.get()
        raw = self._store.answer(key, ours.turn(key))
        if raw is not None:
            return self._service.reply(request, raw)
        if self._store.lost[key] > MOST_LOST:
            raise lm15.ServerError(f"{self._store.lost[key]} batch jobs ended without an answer to it")
        ours.lacking.append(Lacking(key, where.get()[1] or "other", self._lm, body, self._need(request)))
        raise Pending


class BatchEngine(MeteredEngine):
    """The metered engine of an LM over the store: the same checks and books as for direct calls, at batch prices. The
    budget is kept where jobs are sent, and what failed is asked for again at once: waiting is what a batch is."""

    def __init__(self, real: MeteredEngine, name: str, service: BatchService, store: Store) -> None:
        backend = real.backend
        price = batch_price(backend.price, backend.provider)
        stored = StoredEngine(name, service, store, self.need)
        super().__init__(
            replace(backend, engine=stored, price=price),
            PassLedger(real.ledger),
            secrets=real._secrets,
            asked=real.asked,
            on_reply=self._remember if real._on_reply else None,
        )
        self.real, self.service, self.concessions = real, service, real.concessions

    @property
    def of_run(self) -> Budget | None:
        """The budget that its jobs are kept within."""
        return self.real.budget

    def complete(self, request: lm15.Request) -> lm15.Response:
        try:
            return super().complete(request)
        except lm15.LM15Error as error:
            error.retry_after = 0.0
            raise

    def _remember(self, request: lm15.Request, response: lm15.Response) -> None:
        """For a recording: once, when the case is finished."""
        record = self.real._on_reply
        assert record is not None
        _pass.get().records.append((lambda: record(request, response), where.get()))


def over_store(lm: dspy.LM, name: str, service: BatchService, store: Store) -> dspy.LM:
    """The LM with its settings, over the store. DSPy's cache is off: the replies are in the run folder. Its callbacks
    are those of the LM, which tell where a call begins."""
    engine = BatchEngine(lm.engine, name, service, store)
    return dspy.LM(
        lm.model, engine=engine, cache=False, num_retries=lm.num_retries, callbacks=lm.callbacks, **lm.kwargs
    )


def _key(lm: str, body: Body) -> str:
    """What a request is known by: the case and stage it is of, the LM, and all that is sent."""
    identity = json.dumps([*where.get(), lm, body], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(identity.encode()).hexdigest()[:32]
