"""MeteredEngine: one attempt at a reply, counted, paced, kept within the budget and checked before DSPy caches it."""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dspy import lm15

from archehr.program.lm.backend import FREE, Backend, prompt_text
from archehr.program.lm.ledger import Budget, Count, Ledger, Need, Tokens

MAX_WAIT = 60.0  # seconds between two attempts, whatever the server asks for
BYTES_PER_TOKEN = 3  # English clinical text has 4 and more, so a prompt counted so is not counted short
REFUSED = "archehr"  # the provider_code of an error whose text is ours and quotes nothing
UNLIMITED_REPLY = 2048  # tokens set aside for a reply without max_tokens, until a longer one has been seen


class MeteredEngine:
    """Wraps every engine. DSPy owns the retry loop and the cache; this decides how long a retry waits and which
    replies are errors (cut, blocked, empty, from another model), so that none of those is ever cached."""

    def __init__(
        self,
        backend: Backend,
        ledger: Ledger,
        budget: Budget | None = None,
        on_reply: Callable[[lm15.Request, lm15.Response], None] | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self.backend = backend
        self.ledger = ledger
        self.budget = budget
        self.supports_response_schema = backend.response_schema
        self.supports_reasoning = backend.reasoning
        self.supports_function_calling = False
        self.supported_params = backend.params
        self._on_reply = on_reply
        self._secrets = secrets
        self._attempts = threading.local()
        self._longest_reply = UNLIMITED_REPLY

    def __deepcopy__(self, memo: dict[int, Any]) -> MeteredEngine:
        return self  # Module.deepcopy would otherwise split one LM, its connections and its ledger into several

    def complete(self, request: lm15.Request) -> lm15.Response:
        """One attempt. Raises lm15 errors, and BudgetExceeded before anything is sent."""
        attempt = self._attempt_number(request)
        sent = replace(request, config=_without_metadata(request.config))
        need = self._need(sent)
        if self.budget is not None:
            self.budget.reserve(need)
        tokens: Tokens | None = Tokens()
        try:
            self._attempts.reached = True
            response = self.backend.engine.complete(sent)
            tokens = tokens_of(response, self.backend.provider)
            self._check(response)
        except Exception as exc:
            partial = getattr(exc, "partial", None)
            if partial is not None:
                tokens = tokens_of(partial, self.backend.provider)
            self._book(need, attempt, tokens, failed=True)
            told = self._told(exc, attempt, prompt_text(sent))
            if told is exc:
                raise
            raise told from exc
        except BaseException:  # interrupted: what was set aside must not stay so
            self._book(need, attempt, tokens, failed=True)
            raise
        self._book(need, attempt, tokens, failed=False, model=response.model)
        self._attempts.request = None
        if self._on_reply is not None:
            self._on_reply(sent, response)
        return response

    def reached(self) -> bool:
        """Whether this thread's call came past DSPy's cache since the last time of asking."""
        reached, self._attempts.reached = getattr(self._attempts, "reached", False), False
        return reached

    def _attempt_number(self, request: lm15.Request) -> int:
        # DSPy repeats one call with the same Request object in the same thread.
        last = getattr(self._attempts, "request", None)
        self._attempts.number = self._attempts.number + 1 if last is request else 0
        self._attempts.request = request
        return int(self._attempts.number)

    def _need(self, request: lm15.Request) -> Need:
        schema = json.dumps(request.config.response_format) if request.config.response_format else ""
        prompt = -(-len((prompt_text(request) + schema).encode()) // BYTES_PER_TOKEN)
        reply = request.config.max_tokens or self._longest_reply
        price = self.backend.price
        return Need(prompt + reply, price.cost(Tokens(prompt, reply)) if price else 0.0)

    def _book(self, need: Need, attempt: int, tokens: Tokens | None, *, failed: bool, model: str | None = None) -> None:
        used = tokens or Tokens()
        price = self.backend.price
        cost = price.cost(used) if price and (tokens or price == FREE) else None
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
            model,
        )
        if self.budget is not None:
            # Without reported usage the estimate is what the limits go by.
            unknown = tokens is None
            self.budget.settle(need, need.tokens if unknown else used.total, need.cost if unknown else cost or 0.0)

    def _check(self, response: lm15.Response) -> None:
        """Turn a reply that must not be used into the lm15 error that fits."""
        provider = self.backend.provider or None
        pinned = self.backend.pinned
        if pinned and not is_version_of(response.model, pinned):
            raise lm15.UnsupportedModelError(
                f"asked for {pinned}, answered by {response.model}; name that model, or pass --accept-model-version",
                provider=provider,
            )
        if response.finish_reason == "length":
            # The one lm15 error whose `partial` usage DSPy counts; it is neither retried nor parsed.
            told = "the reply was cut at the token limit; raise --max-tokens"
            raise lm15.StreamAssemblyError(told, partial=response, provider_code=REFUSED)
        if response.finish_reason == "content_filter":
            reason = (response.provider_data or {}).get("block_reason", "content filter")
            told = f"the provider blocked the reply: {reason}"
            raise lm15.InvalidRequestError(told, provider=provider, provider_code=REFUSED)
        if response.finish_reason == "error" or not (response.message.text or "").strip():
            raise lm15.ServerError("the reply was empty", provider=provider, provider_code=REFUSED)

    def _told(self, exc: Exception, attempt: int, prompt: str) -> Exception:
        """The error to raise: with the time that DSPy is to wait before the next attempt, without prompt or key."""
        if isinstance(exc, ImportError):
            return exc
        if not isinstance(exc, lm15.LM15Error):
            # Anything can be in the text of an error that no engine foresaw; pydantic's quote their input.
            return lm15.LM15Error(f"{type(exc).__name__} in the engine")
        asked = exc.retry_after
        # Full jitter over the upper half: workers refused together do not come back together.
        exc.retry_after = min(asked, MAX_WAIT) if asked is not None else min(2.0**attempt, MAX_WAIT) * _jitter()
        exc.message = safe_message(exc.message, prompt, self._secrets)
        exc.args = (exc.message,)
        return exc


def _jitter() -> float:
    return random.uniform(0.5, 1.0)


def _without_metadata(config: lm15.Config) -> lm15.Config:
    # make_lm puts endpoint and settings there for DSPy's cache key; no server is to see them.
    extensions = {k: v for k, v in (config.extensions or {}).items() if k != "metadata"}
    return replace(config, extensions=extensions or None)


def tokens_of(response: lm15.Response, provider: str) -> Tokens | None:
    """Usage as billed, or None where the server reported none. Providers differ on what their counters include:
    Anthropic's input leaves out cached input; the Gemini and xAI wires' output leaves out thinking."""
    usage = response.usage
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    cached, thinking = usage.cache_read_tokens or 0, usage.reasoning_tokens or 0
    given, made = usage.input_tokens or 0, usage.output_tokens or 0
    if "anthropic" in provider:
        given += cached + (usage.cache_write_tokens or 0)
    if provider in {"gemini", "vertex", "vertex-express", "xai"}:
        made += thinking
    return Tokens(given, made, thinking, cached)


def is_version_of(answered: str, asked: str) -> bool:
    """Whether `answered` is `asked` or a dated or numbered version of it: gemini-2.5-pro-002 is one of
    gemini-2.5-pro, gemini-2.5-pro-lite is not. A `-latest` alias names no model, so any may answer it."""
    answered, asked = answered.rsplit("/", 1)[-1], asked.rsplit("/", 1)[-1]
    if asked.endswith("-latest"):
        return True
    return re.fullmatch(re.escape(asked) + r"(-\d+)*", answered) is not None


def safe_message(message: str, prompt: str, secrets: Sequence[str] = ()) -> str:
    """A server's error text, cut to 300 characters, without keys and withheld where it quotes the prompt."""
    for secret in secrets:
        message = message.replace(secret, "[key]")
    words, told = message.split(), " ".join(prompt.split())
    if any(" ".join(words[i : i + 4]) in told for i in range(len(words) - 3)):
        return "the server's message is withheld because it quotes the prompt"
    return message if len(message) <= 300 else message[:297] + "..."
