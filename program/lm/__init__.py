"""make_lm: from a model's name to a dspy.LM whose every attempt is counted, paced, budgeted and checked."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from archehr.program.lm.cache import configure_cache, keep_replies_in_memory
from archehr.program.lm.ledger import Budget, BudgetExceeded, Count, Ledger, Price, at, budget_error, where
from archehr.program.lm.policy import (
    LMConfigError,
    check_address,
    check_numbers,
    is_loopback,
    keys_in_reach,
    local_only_asked,
    without_userinfo,
)

# DSPy would otherwise fetch its list of models at first use: prices would change from day to day, and --local-only
# would be broken.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy
from dspy.utils.callback import BaseCallback

from archehr.program.lm.engines.native import native_backend
from archehr.program.lm.metered import FREE, Backend, Engine, MeteredEngine
from archehr.program.lm.prices import refuses_temperature

__all__ = [
    "Backend",
    "Budget",
    "BudgetExceeded",
    "LMConfigError",
    "Ledger",
    "accepts_temperature",
    "at",
    "budget_error",
    "configure_cache",
    "in_process",
    "is_hosted",
    "is_loopback",
    "make_lm",
    "metered_lm",
    "where",
]

REASONING = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

# At DEBUG level this logger prints whole requests.
logging.getLogger("dspy.clients.cache").setLevel(logging.INFO)


class _CountCacheHits(BaseCallback):
    """Books a call that came back without reaching the engine: DSPy's cache answered it."""

    def __init__(self, engine: MeteredEngine) -> None:
        self.engine = engine

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.engine.reached()

    def on_lm_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
        if exception is None and not self.engine.reached():
            self.engine.ledger.add(Count(cache_hits=1))


def make_lm(
    name: str,
    *,
    api_base: str | None = None,
    api_key: str | None = None,
    timeout: float = 120,
    num_retries: int = 3,
    max_tokens: int | None = None,
    seed: int | None = None,
    reasoning: str | None = None,
    context: int | None = None,
    threads: int | None = None,
    local_only: bool | None = None,
    accept_model_version: bool = False,
    safety: str = "BLOCK_NONE",
    record: str | Path | None = None,
    ledger: Ledger | None = None,
    budget: Budget | None = None,
    cache: bool = True,
) -> dspy.LM:
    """The LM called `name`, as `lm.ledger` counts it. Nothing is sent before its first call.

    `gemini/MODEL` and `vertex_ai/gemini-MODEL` go through google-genai, `gguf:PATH` runs in this process (`context`
    tokens, `threads`), `replay:FILE` answers from a recording, `knn` learns from its prompt alone; every other name
    goes through DSPy's own engines, or through litellm where they do not know it. `timeout` is in seconds, for one
    attempt (`gguf:` cannot keep it: there `max_tokens` is the limit); `record` appends every reply to a file.
    `lm.notes` holds what the user should be told, a line each.

    Raises LMConfigError, before anything is sent, for a name, key, extra or endpoint that will not do. Replies are
    cached in memory alone until `configure_cache` names a folder.
    """
    keep_replies_in_memory()
    if reasoning is not None and reasoning not in REASONING:
        raise LMConfigError(f"--reasoning {reasoning}: give one of {', '.join(REASONING)}")
    check_numbers(zero=False, timeout=timeout, max_tokens=max_tokens, context=context, threads=threads)
    check_numbers(zero=True, retries=num_retries)
    backend = _backend(
        name,
        api_base=api_base,
        api_key=api_key,
        timeout=timeout,
        context=context,
        threads=threads,
        local_only=local_only_asked(local_only),
        accept_model_version=accept_model_version,
        safety=safety,
    )
    if api_base is not None:
        check_address(api_base)
    if budget is not None:
        backend = _priced(name, backend, budget)
    notes = [*backend.notes]
    if reasoning is not None and not backend.reasoning:
        notes.append(f"{name} is not known to take --reasoning; it is left out")
        reasoning = None
    if seed is not None and "seed" not in backend.params:
        notes.append(f"{name} takes no seed; it is left out")
        seed = None
    if record is not None:
        notes.append(f"recording to {record}: DSPy's cache is off, so that no reply is missing from it")
    settings = {"max_tokens": max_tokens, "seed": seed, "reasoning_effort": reasoning}
    return metered_lm(
        name,
        backend,
        ledger=ledger,
        budget=budget,
        record=record,
        notes=notes,
        secrets=keys_in_reach(api_key),
        num_retries=num_retries,
        cache=cache and record is None,
        **{key: value for key, value in settings.items() if value is not None},
    )


def metered_lm(
    name: str,
    backend: Backend,
    *,
    ledger: Ledger | None = None,
    budget: Budget | None = None,
    record: str | Path | None = None,
    notes: list[str] | None = None,
    secrets: Sequence[str] = (),
    **settings: Any,
) -> dspy.LM:
    """A dspy.LM over any backend, wrapped as every LM of this program is; `settings` are dspy.LM's own."""
    on_reply = None
    if record is not None:
        from archehr.program.lm.engines.replay import Recorder

        on_reply = Recorder(Path(record)).append
    engine = MeteredEngine(backend, Ledger() if ledger is None else ledger, budget, on_reply, secrets)
    # DSPy's cache key leaves out the engine and its endpoint. `metadata` is in the key and the engine takes it out
    # of the request, so two servers under one model name never share an answer.
    endpoint = without_userinfo(backend.endpoint) if backend.endpoint else "this process"
    where_it_runs = {"endpoint": endpoint, **backend.settings}
    try:
        lm = dspy.LM(name, engine=engine, callbacks=[_CountCacheHits(engine)], metadata=where_it_runs, **settings)
    except (ValueError, dspy.LMConfigurationError) as exc:
        raise LMConfigError(f"{name}: {exc}") from None
    lm.ledger = engine.ledger
    lm.notes = notes or []
    return lm


def is_hosted(lm: dspy.BaseLM) -> bool:
    """Whether prompts leave this machine; taken to be so for an LM that make_lm did not make."""
    backend = _backend_of(lm)
    endpoint = "" if backend is None else backend.endpoint
    return endpoint is not None and not is_loopback(endpoint)


def accepts_temperature(lm: dspy.BaseLM) -> bool:
    """Whether a temperature may be sent at all (OpenAI's reasoning models and others answer it with an error)."""
    backend = _backend_of(lm)
    if backend is None:  # not made here: by its name alone
        provider, _, model = lm.model.rpartition("/")
        return not refuses_temperature(provider or "openai", model)
    return bool(backend.temperature)


def _backend_of(lm: dspy.BaseLM) -> Backend | None:
    """None for an LM that make_lm did not make; some, such as DSPy's DummyLM, have no engine at all."""
    return getattr(getattr(lm, "engine", None), "backend", None)


def _backend(
    name: str,
    *,
    api_base: str | None,
    api_key: str | None,
    timeout: float,
    context: int | None,
    threads: int | None,
    local_only: bool,
    accept_model_version: bool,
    safety: str,
) -> Backend:
    """The engine that the name asks for; with local_only, refused unless it stays on this machine."""
    kind, _, path = name.partition(":")
    if kind == "gguf" and path:
        from archehr.program.lm.engines.gguf import gguf_backend

        return gguf_backend(Path(path), context, threads)
    if kind == "replay" and path:
        from archehr.program.lm.engines.replay import replay_backend

        return replay_backend(Path(path))
    if name == "knn":
        from archehr.program.lm.engines.knn import KnnEngine

        return in_process(KnnEngine())
    if name.startswith(("gemini/", "gemini-", "vertex_ai/gemini-")):
        from archehr.program.lm.engines.gemini import gemini_backend

        return gemini_backend(name, api_base, api_key, timeout, safety, accept_model_version, local_only)
    return native_backend(name, api_base, api_key, timeout, local_only)


def in_process(engine: Engine, **fields: Any) -> Backend:
    """A backend that runs in this process and costs nothing."""
    return Backend(
        engine,
        endpoint=None,
        price=FREE,
        response_schema=bool(getattr(engine, "supports_response_schema", False)),
        params=frozenset(getattr(engine, "supported_params", ())),
        **fields,
    )


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
