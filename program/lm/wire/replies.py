"""Which replies may be used, and what they took."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dspy import lm15

from archehr.program.lm.backend import Backend, prompt_text
from archehr.program.lm.ledger import Tokens
from archehr.program.lm.policy import is_loopback
from archehr.program.lm.wire.model_names import is_version_of, names_no_model

REFUSED = "archehr"  # the provider_code of an error whose text is ours and quotes nothing
# A reported prompt below this is no cut context but a server that counts its prompts in another way: the
# instructions of any stage take more.
LEAST_CONTEXT = 128
Tell = Callable[[str], None]


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


def usable(response: lm15.Response, request: lm15.Request, backend: Backend, tell: Tell) -> lm15.Response:
    """The reply, its text taken from the reasoning where only that holds any (which `tell` is told).

    Raises the lm15 error that fits a reply which must not be used; none of those is ever cached.
    """
    provider = backend.provider or None
    _check_model(response, backend, tell)
    _check_context(response, request, backend)
    if response.finish_reason == "length":
        # The one lm15 error whose `partial` usage DSPy counts; it is neither retried nor parsed.
        told = "the reply was cut at the token limit; raise --max-tokens"
        raise lm15.StreamAssemblyError(told, partial=response, provider_code=REFUSED)
    if response.finish_reason == "content_filter":
        reason = (response.provider_data or {}).get("block_reason", "content filter")
        told = f"the provider blocked the reply: {reason}"
        raise lm15.InvalidRequestError(told, provider=provider, provider_code=REFUSED)
    if response.finish_reason != "error" and (response.message.text or "").strip():
        return response
    elsewhere, place = _text_elsewhere(response)
    found = last_json_object(elsewhere)
    if found is None:
        told = "the reply was empty"
        if elsewhere:
            told += f": {len(elsewhere)} characters stood in {place}, no JSON; --reasoning none, or more --max-tokens"
        raise lm15.ServerError(told, provider=provider, provider_code=REFUSED)
    tell(f"{request.model} puts its reply in {place}; it is read from there")
    return replace(response, message=lm15.Message.assistant([lm15.TextPart(json.dumps(found))]), finish_reason="stop")


def _check_model(response: lm15.Response, backend: Backend, tell: Tell) -> None:
    asked, answered = backend.pinned, response.model
    if not asked or not answered or is_version_of(answered, asked):
        return
    if names_no_model(answered, local=is_loopback(backend.endpoint or "")):
        tell(f"asked for {asked}; the server calls what answered {_shown(answered)}, which names no model to check")
        return
    raise lm15.UnsupportedModelError(
        f"asked for {asked}, answered by {_shown(answered)}; name that model, or pass --accept-model-version",
        provider=backend.provider or None,
        provider_code=REFUSED,
    )


def _check_context(response: lm15.Response, request: lm15.Request, backend: Backend) -> None:
    """A server that reports less than half of the prompt has cut it, as Ollama does without a word."""
    counted = tokens_of(response, backend.provider)
    if backend.endpoint is None or counted is None or counted.input < LEAST_CONTEXT:
        return
    text = prompt_text(request)
    # Two estimates, the lower taken: long rules and tables make few tokens of many characters.
    sent = min(len(text) // 4, int(len(re.findall(r"\w+", text)) * 1.3))
    if counted.input * 2 < sent:
        raise lm15.ConfigurationError(
            f"the server read {counted.input} of about {sent} prompt tokens, so its context is too small and the note "
            "was cut; raise it (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx; llama.cpp: -c; vLLM: --max-model-len)",
            provider_code=REFUSED,
        )


def _text_elsewhere(response: lm15.Response) -> tuple[str, str]:
    """What a reply without content says in another place, and the place."""
    parts = response.message.parts
    if calls := [part.input for part in parts if isinstance(part, lm15.ToolCallPart)]:
        return json.dumps(calls[-1]), "a tool call"
    thought = "\n".join(part.text or "" for part in parts if isinstance(part, lm15.ThinkingPart))
    return thought, f"`{_reasoning_field(response.provider_data)}`"


def _reasoning_field(raw: Any) -> str:
    try:
        message = raw["choices"][0]["message"]
        return next(name for name in ("reasoning_content", "reasoning") if message.get(name))
    except (TypeError, KeyError, IndexError, AttributeError, StopIteration):
        return "the reasoning"


def last_json_object(text: str) -> dict[str, Any] | None:
    """The last whole JSON object in the text that is not part of another, or None."""
    found, at, tries = None, text.find("{"), 0
    while at >= 0 and tries < 1000:
        tries += 1
        try:
            value, end = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found = value
        at = text.find("{", end)
    return found


def _shown(model: str) -> str:
    """A model's name as the server gives it, short enough for a line."""
    name = " ".join(model.split())
    return name if len(name) <= 80 else name[:77] + "..."
