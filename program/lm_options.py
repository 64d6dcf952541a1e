"""LMOptions: every setting of an LM that a command line offers, with its help text; free of typer and of DSPy."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def _option(default: Any, help: str, env: str | None = None) -> Any:
    return field(default=default, metadata={"help": help, "env": env})


@dataclass
class LMOptions:
    """The options that every command which calls an LM shares; the door makes flags of the fields."""

    lm: str | None = _option(None, "gemini/MODEL, openai/MODEL, gguf:PATH, replay:FILE, knn, …", "ARCHEHR_LM")
    api_base: str | None = _option(None, "address of an OpenAI-compatible server")
    reasoning: str | None = _option(None, "thinking effort: none, minimal, low, medium, high, xhigh, max")
    seed: int | None = _option(None, "sampling seed")
    max_tokens: int | None = _option(None, "most tokens of one reply, thinking included")
    timeout: float = _option(120.0, "seconds for one attempt")
    retries: int = _option(3, "attempts after a transient error")
    max_calls: int | None = _option(None, "stop before more calls than this")
    max_tokens_total: int | None = _option(None, "stop before more tokens than this")
    max_cost: float | None = _option(None, "stop before a higher cost in US dollars")
    price_in: float | None = _option(None, "dollars per million input tokens, where unknown")
    price_out: float | None = _option(None, "dollars per million output tokens, where unknown")
    local_only: bool = _option(False, "refuse every endpoint that is not this machine", "ARCHEHR_LOCAL_ONLY")
    accept_model_version: bool = _option(False, "accept answers from another model than asked for")
    safety: str = _option("BLOCK_NONE", "Gemini safety threshold")
    context: int | None = _option(None, "gguf: context size in tokens")
    threads: int | None = _option(None, "gguf: CPU threads")
    record: Path | None = _option(None, "append every request and reply to this file, for replay:FILE")

    def make(self, name: str | None = None, beside: Any = None) -> Any:
        """The dspy.LM called `name` (else `self.lm`) with these options, or None without a name; `beside` is an LM
        whose ledger and budget it shares. Raises DataError."""
        name = name or self.lm
        if name is None:
            return None
        from program.lm import Budget, make_lm

        budget = (
            beside.engine.budget
            if beside is not None
            else Budget(
                max_calls=self.max_calls,
                max_tokens_total=self.max_tokens_total,
                max_cost=self.max_cost,
                price_in=self.price_in,
                price_out=self.price_out,
            )
        )
        return make_lm(
            name,
            api_base=self.api_base,
            timeout=self.timeout,
            num_retries=self.retries,
            max_tokens=self.max_tokens,
            seed=self.seed,
            reasoning=self.reasoning,
            context=self.context,
            threads=self.threads,
            local_only=self.local_only or None,
            accept_model_version=self.accept_model_version,
            safety=self.safety,
            record=self.record,
            ledger=beside.ledger if beside is not None else None,
            budget=budget,
        )
