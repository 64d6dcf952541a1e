"""What a run would take, before anything is sent: the prompts are made and counted, and a stand-in answers them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import dspy
from dspy import lm15

from archehr.data.case import Case
from archehr.data.case_file import filter_cases
from archehr.program.batch import in_threads
from archehr.program.lm import Backend, metered_lm, prompt_parts
from archehr.program.lm.ledger import Price, Tokens, booked_apart
from archehr.program.lm.prices import batch_price
from archehr.program.run.folder import MANIFEST, read_run_folder
from archehr.program.run.job import Job
from archehr.program.stage_lms import stage_lms, with_lms

CHARACTERS = 4  # to a token, in English
LEAST_PREFIX = 1024  # tokens that prompts must share for a provider's cache, where the price does not say


@dataclass(frozen=True)
class StageEstimate:
    """Calls and tokens of one stage; `shared` of the tokens in a provider's prefix cache can have seen before. `cost`
    is in US dollars without that cache, `saved` what it takes off; None where no price is known."""

    lm: str
    calls: int
    tokens_in: int
    shared: int
    tokens_out: int
    cost: float | None = None
    saved: float | None = None

    def of_calls(self, calls: int) -> StageEstimate:
        """The same for another number of calls like these."""
        by = calls / self.calls
        costs = (None if one is None else one * by for one in (self.cost, self.saved))
        tokens = (round(n * by) for n in (self.tokens_in, self.shared, self.tokens_out))
        return StageEstimate(self.lm, calls, *tokens, *costs)


def sum_of(estimates: Iterable[StageEstimate]) -> StageEstimate:
    """All together; the cost is None once one of them has none."""
    items = list(estimates)
    counts = (sum(getattr(its, n) for its in items) for n in ("calls", "tokens_in", "shared", "tokens_out"))
    costs = ([getattr(its, n) for its in items] for n in ("cost", "saved"))
    return StageEstimate("", *counts, *(None if None in each else sum(each) for each in costs))


def left_of(cases: Sequence[Case], folder: Path | None) -> Sequence[Case]:
    """The cases that a run in `folder` would answer: not done there, or without an LM that was not reached."""
    if folder is None or not (folder / MANIFEST).exists():
        return cases
    _, done = read_run_folder(folder)
    return filter_cases(cases, lambda case_id: not done.is_done(case_id))


def estimate(job: Job, cases: Sequence[Case], workers: int = 4, *, batch: bool = False) -> dict[str, StageEstimate]:
    """By stage what answering `cases` would take, with `batch` at the prices of batches. Thinking, retries and faulty
    replies come on top. Raises DataError as a run would."""
    job.check(cases)
    lms = {stage: lm for stage, lm in stage_lms(job.program, job.lm).items() if lm is not None}
    program, _ = with_lms(job.program, {stage: _stand_in(price_of(lm)) for stage, lm in lms.items()})
    with booked_apart() as ledger:
        for _ in in_threads(cases, replace(job, program=program, lm=None, ledger=ledger).answer, workers):
            pass
    return {
        stage: _of(
            lms[stage],
            Tokens(int(used["tokens_in"] or 0), int(used["tokens_out"] or 0), 0, int(used["tokens_cached"] or 0)),
            int(used["calls"] or 0),
            batch=batch,
        )
        for stage, used in ledger.by_stage().items()
        if stage in lms
    }


def price_of(lm: dspy.BaseLM, *, batch: bool = False) -> Price | None:
    """What the LM charges today, or None where that is unknown."""
    backend = getattr(getattr(lm, "engine", None), "backend", None)
    if backend is None:
        return None
    return batch_price(backend.price, backend.provider) if batch else backend.price


def _of(lm: dspy.BaseLM, used: Tokens, calls: int, *, batch: bool) -> StageEstimate:
    price = price_of(lm, batch=batch)
    made = StageEstimate(lm.model, calls, used.input, used.cached, used.output)
    if price is None:
        return made
    whole = price.cost(replace(used, cached=0))
    return replace(made, cost=whole, saved=whole - price.cost(used))


def _stand_in(price: Price | None) -> dspy.LM:
    engine = _StandIn(price.cached_from if price and price.cached_from else LEAST_PREFIX)
    params = frozenset({"temperature", "max_tokens", "seed", "response_format"})
    return metered_lm("stand-in", Backend(engine, None, response_schema=True, params=params), cache=False)


class _StandIn:
    """Answers as `--lm knn` does, and counts as cached what an earlier prompt began with."""

    def __init__(self, least: int) -> None:
        from archehr.program.lm.engines.knn import KnnEngine

        self._engine, self._least = KnnEngine(), least
        self._seen: set[int] = set()  # hashes, as what is seen may be long
        self._lock = threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        response = self._engine.complete(request)
        shared = "".join(text for _, text in prompt_parts(request)[:-1])
        with self._lock:
            known = hash(shared) in self._seen
            self._seen.add(hash(shared))
        tokens = len(shared) // CHARACTERS
        cached = tokens if known and tokens >= self._least else 0
        return replace(response, usage=replace(response.usage, cache_read_tokens=cached))
