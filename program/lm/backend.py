"""Backend: an engine and what the program must know of it; what an engine is given and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import dspy
from dspy import lm15

from archehr.program.lm.ledger import Price
from archehr.program.lm.policy import is_loopback
from archehr.program.lm.prices import refuses_temperature

if TYPE_CHECKING:
    from archehr.program.lm.batch_service import BatchService

FREE = Price(0, 0)


class Engine(Protocol):
    """What DSPy asks of a custom engine: one attempt, lm15 errors, no retries."""

    def complete(self, request: lm15.Request) -> lm15.Response: ...


@dataclass(frozen=True)
class Backend:
    """An engine and what make_lm must know of it.

    `endpoint` is None inside this process, "" where only the provider knows it; `provider` is lm15's name for it,
    which decides how its usage is counted. `pinned` is the model that must answer. `batches` makes the provider's
    batch service, where it has one.
    """

    engine: Engine
    endpoint: str | None
    provider: str = ""
    price: Price | None = None
    pinned: str | None = None
    response_schema: bool = False
    reasoning: bool = False
    temperature: bool = True
    params: frozenset[str] = frozenset()
    settings: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    batches: Callable[[], BatchService] | None = None


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


def prompt_text(request: lm15.Request) -> str:
    """System text and messages of a request, a blank line between them."""
    return "\n\n".join(text for _, text in prompt_parts(request))


def prompt_parts(request: lm15.Request) -> list[tuple[str, str]]:
    """(role, text) of the system text, where there is one, and of every message."""
    system = request.system
    if system is not None and not isinstance(system, str):
        system = "".join(getattr(part, "text", "") for part in system)
    parts = [("system", system)] if system else []
    return parts + [(m.role, m.text or "") for m in request.messages]
