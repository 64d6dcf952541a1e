"""MeteredEngine: one attempt at a reply, counted, paced, kept within the budget and checked before DSPy caches it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from dspy import lm15

from archehr.program.lm.backend import FREE, Backend, prompt_text
from archehr.program.lm.cache import keep_tokens, kept_tokens
from archehr.program.lm.ledger import Budget, BudgetExceeded, Count, Ledger, Need, Tokens
from archehr.program.lm.policy import keys_in_reach
from archehr.program.lm.registry import find_backend
from archehr.program.lm.settings import LMSettings
from archehr.program.lm.wire.concessions import Form, SchemaMode, concessions
from archehr.program.lm.wire.errors import told
from archehr.program.lm.wire.replies import tokens_of, usable

BYTES_PER_TOKEN = 3  # English clinical text has 4 and more, so a prompt counted so is not counted short
UNLIMITED_REPLY = 2048  # tokens set aside for a reply without max_tokens, until a longer one has been seen


@dataclass
class _Call:
    """One call of an LM: DSPy asks for it again with the same request, and not at all where its cache answers. `asked`
    is what DSPy was asked with, None where it caches nothing; `took` what the reply took."""

    asked: dict[str, Any] | None = None
    request: lm15.Request | None = None
    attempts: int = 0
    took: Tokens | None = None


# Held by an object that attempts change, since those of an async call are made on a thread with a copy of the context.
_call: ContextVar[_Call | None] = ContextVar("archehr_call", default=None)


class MeteredEngine:
    """Wraps every engine. DSPy owns the retry loop and the cache; this decides how long a retry waits, what is left out
    for a server that refuses it, and which replies are errors (cut, blocked, empty, from another model), so that none
    of those is ever cached."""

    def __init__(
        self,
        backend: Backend,
        ledger: Ledger,
        budget: Budget | None = None,
        on_reply: Callable[[lm15.Request, lm15.Response], None] | None = None,
        secrets: Sequence[str] = (),
        schema: SchemaMode = "auto",
        asked: LMSettings | None = None,
    ) -> None:
        self.backend = backend
        self.asked = asked
        self.concessions = concessions(asked.name if asked is not None else None, backend.endpoint, schema)
        self.ledger = ledger
        self.budget = budget
        self.supports_response_schema = backend.response_schema
        self.supports_reasoning = backend.reasoning
        self.supports_function_calling = False
        self.supported_params = backend.params
        self._on_reply = on_reply
        self._secrets = secrets
        self._longest_reply = UNLIMITED_REPLY

    def __deepcopy__(self, memo: dict[int, Any]) -> MeteredEngine:
        return self  # Module.deepcopy would otherwise split one LM, its connections and its ledger into several

    def dump_state(self) -> dict[str, Any]:
        """What makes an engine like this one again, for dspy.Module.save: never a key. Raises TypeError where make_lm
        did not make it."""
        if self.asked is None:
            raise TypeError("only an LM of make_lm can be saved with a program")
        return self.asked.model_dump(mode="json", by_alias=True, exclude={"api_key"}, exclude_defaults=True)

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> MeteredEngine:
        """The engine that `dump_state` describes, with a key from the environment."""
        asked = LMSettings.of(**state)
        return cls(find_backend(asked), Ledger(), secrets=keys_in_reach(None), schema=asked.schema_mode, asked=asked)

    def complete(self, request: lm15.Request) -> lm15.Response:
        """One reply, in the form that the server takes. Raises lm15 errors, and BudgetExceeded before it sends."""
        attempt = self._attempt_number(request)
        whole = replace(request, config=_without_metadata(request.config))
        try:
            response, form = self._in_a_form_it_takes(whole, attempt)
        except BudgetExceeded:
            raise
        except Exception as exc:
            error = told(exc, attempt, prompt_text(whole), self._secrets, self.backend.endpoint)
            if error is exc:
                raise
            raise error from exc
        for line in self.concessions.settle(form):
            self._tell(f"{request.model} {line}")
        if self._on_reply is not None:
            self._on_reply(whole, response)
        return response

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """The same reply in one piece, as dspy.streamify listens to it: none is shown before it is checked."""
        yield from lm15.response_to_events(self.complete(request))

    def _in_a_form_it_takes(self, whole: lm15.Request, attempt: int) -> tuple[lm15.Response, Form]:
        """The reply to the fullest form of the request that is not refused; where none is taken, the first refusal."""
        form, refusal = self.concessions.form, None
        while True:
            sent = form.of(whole)
            try:
                return self._send(sent, attempt), form
            except lm15.LM15Error as exc:
                further = form.after(exc, sent.config)
                if further is None and refusal is not None and isinstance(exc, lm15.InvalidRequestError):
                    raise refusal from None
                if further is None:
                    raise
                refusal = refusal or exc
            form, attempt = further, attempt + 1

    def _send(self, sent: lm15.Request, attempt: int) -> lm15.Response:
        """One attempt, booked however it ends."""
        need = self.need(sent)
        if self.budget is not None:
            self.budget.reserve(need)
        tokens: Tokens | None = Tokens()
        try:
            response = self.backend.engine.complete(sent)
            tokens = tokens_of(response, self.backend.provider)
            response = usable(response, sent, self.backend, self._tell)
        except BaseException as exc:  # interrupted, too: what was set aside must not stay so
            partial = getattr(exc, "partial", None)
            if partial is not None:
                tokens = tokens_of(partial, self.backend.provider)
            self._book(need, attempt, tokens, failed=True, lm=sent.model)
            raise
        self._book(need, attempt, tokens, failed=False, lm=sent.model, version=response.model)
        if (call := _call.get()) is not None:
            call.took = tokens
        return response

    def _tell(self, line: str) -> None:
        self.ledger.note(line)

    def call_begins(self, asked: dict[str, Any] | None) -> None:
        """The next request in this context is the first attempt of a call."""
        _call.set(_Call(asked))

    def call_was_answered(self, lm: str) -> None:
        """Keep what the reply to the call that began in this context took; where DSPy's cache gave it, book that."""
        call = _call.get()
        if call is None or call.asked is None:
            return
        if call.request is not None:
            keep_tokens(call.asked, call.took)
            return
        took = kept_tokens(call.asked)
        used = took or Tokens()
        self.ledger.add(
            Count(cache_hits=1, hit_tokens_in=used.input, hit_tokens_out=used.output, hit_cost=self._cost(took)), lm=lm
        )

    def _attempt_number(self, request: lm15.Request) -> int:
        call = _call.get() or _Call()
        call.attempts = call.attempts + 1 if call.request is request else 0
        call.request = request
        return call.attempts

    def need(self, request: lm15.Request) -> Need:
        """The most that an attempt at this request may use, prompts counted in bytes."""
        schema = json.dumps(request.config.response_format) if request.config.response_format else ""
        prompt = -(-len((prompt_text(request) + schema).encode()) // BYTES_PER_TOKEN)
        reply = request.config.max_tokens or self._longest_reply
        price = self.backend.price
        return Need(prompt + reply, price.cost(Tokens(prompt, reply)) if price else 0.0)

    def _book(
        self, need: Need, attempt: int, tokens: Tokens | None, *, failed: bool, lm: str, version: str | None = None
    ) -> None:
        used, cost = tokens or Tokens(), self._cost(tokens)
        if failed and used == Tokens():
            cost = 0.0  # a refused or lost attempt: nothing is known to be billed
        self._longest_reply = max(self._longest_reply, used.output)
        self.ledger.add(
            Count(
                calls=1,
                retries=int(attempt > 0),
                failed=int(failed),
                unmetered=int(tokens is None),
                tokens_in=used.input,
                tokens_out=used.output,
                tokens_thinking=used.thinking,
                tokens_cached=used.cached,
                cost=cost,
            ),
            lm=lm,
            version=version,
        )
        if self.budget is not None:
            # Without reported usage the estimate is what the limits go by.
            unknown = tokens is None
            self.budget.settle(need, need.tokens if unknown else used.total, need.cost if unknown else cost or 0.0)

    def _cost(self, tokens: Tokens | None) -> float | None:
        """US dollars, None where the tokens or their price are not known."""
        price = self.backend.price
        return price.cost(tokens or Tokens()) if price and (tokens or price == FREE) else None


class AsyncEngine:
    """The same engine for `await lm.acall(…)`: each attempt on a thread of its own."""

    def __init__(self, engine: MeteredEngine) -> None:
        self.engine = engine

    def __deepcopy__(self, memo: dict[int, Any]) -> AsyncEngine:
        return self

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """As MeteredEngine.complete."""
        return await asyncio.to_thread(self.engine.complete, request)

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        """As MeteredEngine.stream."""
        for event in lm15.response_to_events(await self.complete(request)):
            yield event

    def dump_state(self) -> dict[str, Any]:
        """As MeteredEngine.dump_state."""
        return self.engine.dump_state()

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> AsyncEngine:
        """As MeteredEngine.load_state."""
        return cls(MeteredEngine.load_state(state))


def _without_metadata(config: lm15.Config) -> lm15.Config:
    # make_lm puts endpoint and settings there for DSPy's cache key; no server is to see them.
    extensions = {k: v for k, v in (config.extensions or {}).items() if k != "metadata"}
    return replace(config, extensions=extensions or None)
