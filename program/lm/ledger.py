"""What the LM calls took (calls, tokens, cost; per stage and per case) and the budgets that stop a run in time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any

Place = tuple[str | None, str | None]  # (case id, stage)

where: ContextVar[Place] = ContextVar("archehr_where", default=(None, None))
_apart: ContextVar[Ledger | None] = ContextVar("archehr_apart", default=None)


@contextmanager
def at(case_id: str | None = None, stage: str | None = None) -> Iterator[None]:
    """Book the LM calls made inside on this case and stage; what is not given stays as it is outside."""
    case, outer_stage = where.get()
    token = where.set((case_id if case_id is not None else case, stage if stage is not None else outer_stage))
    try:
        yield
    finally:
        where.reset(token)


@contextmanager
def booked_apart(tell: Callable[[str], None] = lambda _: None) -> Iterator[Ledger]:
    """A ledger of the LM calls made inside and no others: an LM and its own ledger may outlive a run. `tell` gets its
    notes as they are made."""
    token = _apart.set(ledger := Ledger(tell))
    try:
        yield ledger
    finally:
        _apart.reset(token)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one reply as billed: `input` includes `cached`, `output` includes `thinking`."""

    input: int = 0
    output: int = 0
    thinking: int = 0
    cached: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `cached` is the price of cached input where it differs, `cached_from` how many
    tokens two prompts must share at least for it; `until` is the last day of the price, where one is known."""

    input: float
    output: float
    cached: float | None = None
    cached_from: int = 0
    until: date | None = None

    def cost(self, tokens: Tokens) -> float:
        cached_price = self.input if self.cached is None else self.cached
        fresh = tokens.input - tokens.cached
        return (fresh * self.input + tokens.cached * cached_price + tokens.output * self.output) / 1e6


@dataclass(slots=True)
class Count:
    """Sums over attempts. `failed` counts attempts that gave no usable reply, `unmetered` replies whose server
    reported no usage; a cost is None once one is unknown. `cache_hits` are replies from DSPy's cache, no attempts, and
    `hit_…` what they took when they were made."""

    calls: int = 0
    retries: int = 0
    failed: int = 0
    cache_hits: int = 0
    unmetered: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_thinking: int = 0
    tokens_cached: int = 0
    cost: float | None = 0.0
    hit_tokens_in: int = 0
    hit_tokens_out: int = 0
    hit_cost: float | None = 0.0

    def add(self, other: Count) -> None:
        for name in self.__slots__:
            ours, more = getattr(self, name), getattr(other, name)
            setattr(self, name, None if ours is None or more is None else ours + more)


class Ledger:
    """Every attempt of every LM that shares it, thread-safe."""

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._stages: dict[str | None, Count] = {}
        self._cases: dict[str, Count] = {}
        self._by_lm: dict[str, Count] = {}
        self._models: dict[str, int] = {}
        self._notes: dict[str, None] = {}
        self.on_entry: Callable[[str | None], None] = lambda _: None  # gets the stage of each entry, on any thread

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self  # a program that carries its LM is copied with it, and is counted with it

    def add(self, entry: Count, *, lm: str, version: str | None = None) -> None:
        """Book `entry` where the caller is (see `at`) and on the LM asked; `version` is the model in the reply."""
        case, stage = where.get()
        *_, nearest = ledgers = self._and_apart()
        for ledger in ledgers:
            with ledger._lock:
                ledger._stages.setdefault(stage, Count()).add(entry)
                if ledger is nearest:  # the run's own, which forgets the cases that are done
                    ledger._cases.setdefault(case or "", Count()).add(entry)
                ledger._by_lm.setdefault(lm, Count()).add(entry)
                if version:
                    ledger._models[version] = ledger._models.get(version, 0) + 1
        self.on_entry(stage)

    def note(self, line: str) -> None:
        """Keep what the user should be told of an LM, once."""
        for ledger in self._and_apart():
            with ledger._lock:
                if line not in ledger._notes:
                    ledger._notes[line] = None
                    ledger._tell(line)

    def _and_apart(self) -> tuple[Ledger, ...]:
        apart = _apart.get()
        return (self,) if apart is None else (self, apart)

    def totals(self) -> dict[str, int | float | None]:
        """Sums over all attempts; `cost` in US dollars, None where unknown."""
        return sum_of(self.by_stage().values())

    def by_stage(self) -> dict[str | None, dict[str, int | float | None]]:
        """`totals` per stage; None stands for calls made outside of a stage."""
        with self._lock:
            return {stage: asdict(count) for stage, count in self._stages.items()}

    def by_lm(self) -> dict[str, dict[str, int | float | None]]:
        """`totals` per LM, by the name it was made with."""
        with self._lock:
            return {lm: asdict(count) for lm, count in self._by_lm.items()}

    def notes(self) -> list[str]:
        """What `note` was told, in order."""
        with self._lock:
            return list(self._notes)

    def of_case(self, case_id: str) -> dict[str, int | float | None]:
        """`totals` of one case, in constant time."""
        with self._lock:
            return asdict(self._cases.get(case_id, Count()))

    def forget_case(self, case_id: str) -> None:
        """Keep no totals of a case that is done; it stays in the sums."""
        with self._lock:
            self._cases.pop(case_id, None)

    def models(self) -> dict[str, int]:
        """How many replies each model version gave, as the replies name it."""
        with self._lock:
            return dict(self._models)

    def taken(self) -> dict[str, Any]:
        """All that is booked, as plain JSON for the `book_taken` of a ledger in another process."""
        return {
            "stages": list(self.by_stage().items()),
            "lms": self.by_lm(),
            "models": self.models(),
            "notes": self.notes(),
        }

    def book_taken(self, taken: dict[str, Any]) -> None:
        """Book what another ledger has `taken`, by stage, LM and model; its cases stay apart, as their records tell."""
        with self._lock:
            for stage, count in taken["stages"]:
                self._stages.setdefault(stage, Count()).add(Count(**count))
            for lm, count in taken["lms"].items():
                self._by_lm.setdefault(lm, Count()).add(Count(**count))
            for version, replies in taken["models"].items():
                self._models[version] = self._models.get(version, 0) + replies
        for line in taken["notes"]:
            self.note(line)


def sum_of(totals: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The sum of what several ledgers gave as their `totals`."""
    total = Count()
    for one in totals:
        total.add(Count(**one))
    return asdict(total)


class BudgetExceeded(RuntimeError):
    """The next call would pass a limit. No byte of it was sent, and no later call under this budget is."""


def budget_error(exc: BaseException | None) -> BudgetExceeded | None:
    """The BudgetExceeded in `exc` or its causes. DSPy wraps whatever an engine raises in an LMUnexpectedError."""
    seen: set[int] = set()
    while exc is not None and id(exc) not in seen:
        if isinstance(exc, BudgetExceeded):
            return exc
        seen.add(id(exc))
        exc = exc.__cause__
    return None


@dataclass(frozen=True, slots=True)
class Need:
    """The most that one call is taken to use, set aside before it is sent."""

    tokens: int
    cost: float


@dataclass
class Budget:
    """Limits shared by all LMs of a run; None is no limit. Prices are US dollars per million tokens and win over
    the snapshot's.

    A call first sets aside the most it can use (see `MeteredEngine`); where that does not fit beside the calls in
    flight it waits for them, and where it does not fit at all the budget is spent and `stopped` says why.
    """

    max_calls: int | None = None
    max_tokens_total: int | None = None
    max_cost: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    stopped: str | None = field(default=None, init=False)
    calls: int = field(default=0, init=False)
    tokens: int = field(default=0, init=False)
    cost: float = field(default=0.0, init=False)
    _held: list[Need] = field(default_factory=list, init=False, repr=False)
    _turn: threading.Condition = field(default_factory=threading.Condition, init=False, repr=False)

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return any(limit is not None for limit in (self.max_calls, self.max_tokens_total, self.max_cost))

    def reserve(self, need: Need) -> None:
        """Set `need` aside, waiting for calls in flight where they may leave room; else raise BudgetExceeded."""
        with self._turn:
            while not self.sets_aside(need):
                self._turn.wait()

    def sets_aside(self, need: Need) -> bool:
        """Set `need` aside where it fits beside the calls in flight, and say whether it did; raise BudgetExceeded
        where it will not fit once they are settled either."""
        with self._turn:
            self.stopped = self.stopped or self._passed(need, [])
            if self.stopped is not None:
                self._turn.notify_all()
                raise BudgetExceeded(self.stopped)
            fits = self._passed(need, self._held) is None
            if fits:
                self._held.append(need)
            return fits

    def release(self, need: Need) -> None:
        """Let go of what was set aside for a call that was not made."""
        with self._turn:
            self._held.remove(need)
            self._turn.notify_all()

    def settle(self, need: Need, tokens: int, cost: float) -> None:
        """Book what the call for which `need` was set aside really used."""
        with self._turn:
            self._held.remove(need)
            self.calls += 1
            self.tokens += tokens
            self.cost += cost
            self._turn.notify_all()

    def _passed(self, need: Need, held: list[Need]) -> str | None:
        """Which limit `need` would pass with `held` in flight, as a sentence, or None."""
        if self.max_calls is not None and self.calls + len(held) + 1 > self.max_calls:
            return f"--max-calls {self.max_calls} is reached"
        tokens = self.tokens + sum(n.tokens for n in held)
        if self.max_tokens_total is not None and tokens + need.tokens > self.max_tokens_total:
            return (
                f"--max-tokens-total {self.max_tokens_total}: {self.tokens} are used and the next call may take "
                f"{need.tokens}"
            )
        cost = self.cost + sum(n.cost for n in held)
        if self.max_cost is not None and cost + need.cost > self.max_cost:
            return f"--max-cost {self.max_cost:g}: {self.cost:.4f} is spent and the next call may take {need.cost:.4f}"
        return None
