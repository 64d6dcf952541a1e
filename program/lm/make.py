"""make_lm: from a model's name to a dspy.LM whose every attempt is counted, paced, budgeted and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy

from archehr.program.lm._dspy import BaseCallback
from archehr.program.lm.backend import Backend
from archehr.program.lm.cache import keep_replies_in_memory
from archehr.program.lm.ledger import Budget, Ledger, Price
from archehr.program.lm.metered import AsyncEngine, MeteredEngine
from archehr.program.lm.policy import LMConfigError, keys_in_reach, without_userinfo
from archehr.program.lm.registry import find_backend
from archehr.program.lm.settings import LMSettings, check_numbers


def make_lm(name: str, *, ledger: Ledger | None = None, budget: Budget | None = None, **settings: Any) -> dspy.LM:
    """The LM called `name`, as `lm.ledger` counts it; `settings` are the fields of LMSettings. Nothing is sent yet.

    `gemini/MODEL` and `vertex_ai/gemini-MODEL` go through google-genai, `gguf:PATH` runs in this process (`context`
    tokens, `threads`), `replay:FILE` answers from a recording, `knn` learns from its prompt alone, other packages
    may add names (see archehr.program.lm.registry); every other name goes through DSPy's own engines, or through
    litellm where they do not know it. `lm.notes` holds what the user should be told, a line each.

    Raises LMConfigError for a setting, name, key, extra or endpoint that will not do. Replies are cached in memory
    alone until `configure_cache` names a folder.

    Example:
        >>> lm = make_lm("knn")  # a toy that runs in this process
        >>> lm.ledger.totals()["calls"]
        0
        >>> make_lm("gguf:nothing.gguf")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        archehr.program.lm.policy.LMConfigError: nothing.gguf: no such file
    """
    keep_replies_in_memory()
    asked = LMSettings.of(name, **settings)
    backend = find_backend(asked)
    if budget is not None:
        backend = _priced(name, backend, budget)
    taken, left_out = _taken(asked, backend)
    return metered_lm(
        name,
        replace(backend, notes=(*backend.notes, *left_out)),
        ledger=ledger,
        budget=budget,
        record=asked.record,
        secrets=keys_in_reach(asked.api_key),
        asked=asked,
        **taken,
    )


def metered_lm(
    name: str,
    backend: Backend,
    *,
    ledger: Ledger | None = None,
    budget: Budget | None = None,
    record: str | Path | None = None,
    secrets: Sequence[str] = (),
    asked: LMSettings | None = None,
    **settings: Any,
) -> dspy.LM:
    """A dspy.LM over any backend, wrapped as every LM of this program is; `settings` are dspy.LM's own."""
    on_reply = None
    if record is not None:
        from archehr.program.lm.engines.replay import Recorder

        on_reply = Recorder(Path(record)).append
    schema = asked.schema_mode if asked is not None else "auto"
    engine = MeteredEngine(backend, Ledger() if ledger is None else ledger, budget, on_reply, secrets, schema, asked)
    # DSPy's cache key leaves out the engine and its endpoint. `metadata` is in the key and the engine takes it out
    # of the request, so two servers under one model name never share an answer.
    endpoint = without_userinfo(backend.endpoint) if backend.endpoint else "this process"
    where_it_runs = {"endpoint": endpoint, **backend.settings} | ({"schema": schema} if schema != "auto" else {})
    try:
        lm = dspy.LM(
            name,
            engine=engine,
            async_engine=AsyncEngine(engine),
            callbacks=[_CallsTold(name, engine)],
            metadata=where_it_runs,
            **settings,
        )
    except (ValueError, dspy.LMConfigurationError) as exc:
        raise LMConfigError(f"{name}: {exc}") from None
    lm.ledger = engine.ledger
    lm.notes = list(backend.notes)
    return lm


class _CallsTold(BaseCallback):
    """Tells the engine where a call begins and ends: one that comes back without reaching it was answered by DSPy's
    cache."""

    def __init__(self, name: str, engine: MeteredEngine) -> None:
        self.name, self.engine = name, engine

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        asked = {"model": instance.model, "settings": instance.kwargs, **inputs}
        self.engine.call_begins(asked if inputs["kwargs"].get("cache", instance.cache) else None)

    def on_lm_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
        if exception is None:
            self.engine.call_was_answered(self.name)


def _taken(asked: LMSettings, backend: Backend) -> tuple[dict[str, Any], list[str]]:
    """dspy.LM's keyword arguments as far as the backend takes them, and a line on each setting left out."""
    cached = asked.cache and asked.record is None
    taken: dict[str, Any] = {"num_retries": asked.num_retries, "cache": cached, "max_tokens": asked.max_tokens}
    notes = []
    if backend.reasoning:
        taken["reasoning_effort"] = asked.reasoning
    elif asked.reasoning is not None:
        notes.append(f"{asked.name} is not known to take --reasoning; it is left out")
    if "seed" in backend.params:
        taken["seed"] = asked.seed
    elif asked.seed is not None:
        notes.append(f"{asked.name} takes no seed; it is left out")
    if asked.record is not None:
        notes.append(f"recording to {asked.record}: DSPy's cache is off, so that no reply is missing from it")
    return {key: value for key, value in taken.items() if value is not None}, notes


def _priced(name: str, backend: Backend, budget: Budget) -> Backend:
    """With the prices that the user gave; refused where a cost limit could not be kept."""
    check_numbers(zero=True, max_calls=budget.max_calls, max_tokens_total=budget.max_tokens_total)
    check_numbers(zero=True, max_cost=budget.max_cost, price_in=budget.price_in, price_out=budget.price_out)
    if (budget.price_in is None) != (budget.price_out is None):
        raise LMConfigError("--price-in and --price-out: give both or neither")
    if budget.price_in is not None and budget.price_out is not None and backend.endpoint is not None:
        return replace(backend, price=Price(budget.price_in, budget.price_out))
    if budget.max_cost is not None and backend.price is None:
        raise LMConfigError(f"--max-cost: no price is known for {name}; give --price-in and --price-out per million")
    return backend
