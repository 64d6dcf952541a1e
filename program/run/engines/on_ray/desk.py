"""Desk: the one actor that all others of a run ask, for work, for leave to begin a block, and for room in a budget."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import ray
from pydantic import BaseModel, ConfigDict

from archehr.program.lm.ledger import Budget, BudgetExceeded, Need

ATTEMPTS = 3  # a block whose worker dies goes to another one, this often in all

GO, STOPPED, FATAL = "go", "stopped", "fatal"  # what `begin` says


class Opening(BaseModel):
    """What a worker answers by. `keys` never stand in the arguments of Ray Data's operators, which it exports."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    order: str
    keys: dict[str, str]
    keep_replies: bool


class BudgetState(BaseModel):
    """A Budget as it crosses: limits, and what counts against them."""

    max_calls: int | None
    max_tokens_total: int | None
    max_cost: float | None
    price_in: float | None
    price_out: float | None
    stopped: str | None
    calls: int
    tokens: int
    cost: float

    @classmethod
    def of(cls, budget: Budget) -> BudgetState:
        """The state of a budget."""
        return cls(**{name: getattr(budget, name) for name in cls.model_fields})

    def onto(self, budget: Budget) -> Budget:
        """`budget`, with this state."""
        for name in type(self).model_fields:
            setattr(budget, name, getattr(self, name))
        return budget


class Desk:
    """In an actor on the driver's node. Everything runs on one event loop, so nothing needs a lock."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._blocks: dict[int, str] = {}
        self._last = -1  # block put
        self._begun: Counter[int] = Counter()
        self._ended = self._stopped = False
        self._opening: dict[str, Any] | None = None
        self._budgets: list[Budget] = []
        self._held: dict[str, list[tuple[int, Need]]] = defaultdict(list)  # by life of a worker
        self._lives: dict[str, str] = {}  # the present one by worker

    async def open(self, opening: dict[str, Any], budgets: Sequence[dict[str, Any]]) -> None:
        """What the workers answer by, and the budgets that they share."""
        self._opening = opening
        self._budgets = [BudgetState(**state).onto(Budget()) for state in budgets]
        await self._tell()

    async def hello(self, worker: str, life: str) -> dict[str, Any]:
        """What to answer by. A worker that comes again has died: what it had set aside may have been spent."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._opening is not None)
        assert self._opening is not None
        for place, need in self._held.pop(self._lives.get(worker, ""), []):
            self._budgets[place].settle(need, need.tokens, need.cost)
        self._lives[worker] = life
        await self._tell()
        return self._opening

    async def put(self, number: int, cases: str) -> None:
        """Block `number` of the source."""
        self._blocks[number], self._last = cases, number
        await self._tell()

    async def end(self) -> None:
        """There are no more blocks than those put."""
        self._ended = True
        await self._tell()

    async def stop(self) -> None:
        """Begin nothing more."""
        self._stopped = True
        await self._tell()

    async def block(self, number: int) -> str | None:
        """Block `number`, when it is there; None behind the last. By number, so that a reader that Ray starts again
        reads what the first one read; what is done is empty then."""
        async with self._changed:
            await self._changed.wait_for(lambda: number <= self._last or self._ended or self._stopped)
        return None if self._stopped or number > self._last else self._blocks.get(number, "")

    async def begin(self, number: int) -> str:
        """Whether a worker may answer block `number`: GO, STOPPED, or FATAL where too many workers died of it."""
        if self._stopped:
            return STOPPED
        self._begun[number] += 1
        return FATAL if self._begun[number] > ATTEMPTS else GO

    async def done(self, number: int) -> None:
        """The driver has block `number`'s replies."""
        self._blocks.pop(number, None)
        self._begun.pop(number, None)

    async def reserve(self, worker: str, life: str, place: int, tokens: int, cost: float) -> str | None:
        """As Budget.reserve; what it raises is returned."""
        need, budget = Need(tokens, cost), self._budgets[place]

        def gone() -> bool:
            return self._lives.get(worker) != life

        async with self._changed:
            try:
                await self._changed.wait_for(lambda: gone() or budget.sets_aside(need))
            except BudgetExceeded as error:
                self._changed.notify_all()
                return str(error)
        if not gone():
            self._held[life].append((place, need))
        return None

    async def settle(self, life: str, place: int, need: tuple[int, float], tokens: int, cost: float) -> None:
        """As Budget.settle; nothing where the worker was taken for dead, for all of it was booked then."""
        held = place, Need(*need)
        if held in self._held[life]:
            self._held[life].remove(held)
            self._budgets[place].settle(held[1], tokens, cost)
            await self._tell()

    async def budgets(self) -> list[dict[str, Any]]:
        """The budgets as they are now."""
        return [BudgetState.of(budget).model_dump() for budget in self._budgets]

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class SharedBudget(Budget):
    """A worker's side of a budget at the desk."""

    def __init__(self, desk: Any, worker: str, life: str, place: int, state: BudgetState) -> None:
        super().__init__()
        state.onto(self)
        self._desk, self._worker, self._life, self._place = desk, worker, life, place

    def reserve(self, need: Need) -> None:
        """As Budget.reserve, of all workers together."""
        why = ray.get(self._desk.reserve.remote(self._worker, self._life, self._place, need.tokens, need.cost))
        if why is not None:
            raise BudgetExceeded(why)

    def settle(self, need: Need, tokens: int, cost: float) -> None:
        """As Budget.settle, of all workers together."""
        ray.get(self._desk.settle.remote(self._life, self._place, (need.tokens, need.cost), tokens, cost))
