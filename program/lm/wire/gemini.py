"""What Gemini answers, in the words of lm15: replies, blocked replies and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dspy import lm15

from archehr.program.lm._dspy import retry_after_seconds

BLOCKED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR", "IMAGE_SAFETY"}
)


@contextmanager
def lm15_errors() -> Iterator[None]:
    """What google-genai raises inside, as the lm15 error of the same meaning."""
    import httpx2
    from google.auth.exceptions import GoogleAuthError
    from google.genai import errors

    try:
        yield
    except errors.APIError as exc:
        raise api_error(exc) from exc
    except GoogleAuthError as exc:
        raise lm15.AuthError(f"{exc}; `gcloud auth application-default login`", provider="gemini") from exc
    except httpx2.TimeoutException as exc:
        raise lm15.TimeoutError(type(exc).__name__, provider="gemini") from exc
    except httpx2.TransportError as exc:
        raise lm15.TransportError(str(exc) or type(exc).__name__, provider="gemini") from exc


def to_response(raw: Any, model: str) -> lm15.Response:
    """A GenerateContentResponse as lm15 has it, thoughts left out, usage as billed (output includes thinking)."""
    usage = raw.usage_metadata
    thoughts = (usage.thoughts_token_count or 0) if usage else 0
    counted = lm15.Usage()
    if usage is not None:
        counted = lm15.Usage(
            input_tokens=usage.prompt_token_count,
            output_tokens=(usage.candidates_token_count or 0) + thoughts,
            total_tokens=usage.total_token_count,
            cache_read_tokens=usage.cached_content_token_count,
            reasoning_tokens=thoughts,
        )
    text, finish, reason = _outcome(raw)
    return lm15.Response(
        id=raw.response_id,
        model=raw.model_version or model,
        message=lm15.Message.assistant([lm15.TextPart(text)]),
        finish_reason=finish,
        usage=counted,
        provider_data={"block_reason": reason} if reason else None,
    )


def _outcome(raw: Any) -> tuple[str, str, str | None]:
    """(text, finish reason in lm15's words, Gemini's reason where that is not STOP)."""
    if not raw.candidates:
        feedback = raw.prompt_feedback
        blocked = feedback.block_reason if feedback else None
        return ("", "content_filter", f"prompt, {blocked.value}") if blocked else ("", "error", "no candidates")
    candidate = raw.candidates[0]
    parts = (candidate.content.parts if candidate.content else None) or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    finish = candidate.finish_reason.value if candidate.finish_reason else "STOP"
    if finish == "STOP":
        return text, "stop", None
    if finish == "MAX_TOKENS":
        return text, "length", finish
    return text, "content_filter" if finish in BLOCKED else "error", finish


def api_error(exc: Any) -> lm15.LM15Error:
    """google-genai's error as the lm15 error with the same meaning, which decides whether DSPy tries again."""
    text = exc.message or str(exc.status)
    if exc.code == 429 and (quota := _quota_of_the_day(exc)):
        text = f"{text} ({quota})"
    told = {"provider": "gemini", "provider_code": exc.status, "status": exc.code, "retry_after": _retry_after(exc)}
    if exc.code == 429:
        return lm15.RateLimitError(text, **told)
    if exc.code in (401, 403) or (exc.code == 400 and "API key" in text):
        return lm15.AuthError(text, **told)
    if exc.code == 404:
        return lm15.UnsupportedModelError(text, **told)
    if exc.code == 400 and "token count" in text:
        return lm15.ContextLengthError(text, **told)
    if exc.code in (408, 504):
        return lm15.TimeoutError(text, **told)
    if exc.code >= 500:
        return lm15.ServerError(text, **told)
    return lm15.InvalidRequestError(text, **told)


def _retry_after(exc: Any) -> float | None:
    """Seconds from the Retry-After header, or from the RetryInfo in the error's body."""
    header = retry_after_seconds((getattr(exc.response, "headers", None) or {}).get("retry-after"))
    if header is not None:
        return float(header)
    for item in _details(exc):
        delay = str(item.get("retryDelay", ""))
        if re.fullmatch(r"\d+(\.\d+)?s", delay):
            return float(delay[:-1])
    return None


def _quota_of_the_day(exc: Any) -> str | None:
    """The quota of a day that is spent; the error's own words are the same as for that of a minute."""
    violated = [str(v.get("quotaId", "")) for item in _details(exc) for v in item.get("violations") or ()]
    return next((quota for quota in violated if "PerDay" in quota), None)


def _details(exc: Any) -> list[dict[str, Any]]:
    details = exc.details if isinstance(exc.details, dict) else {}
    return [item for item in (details.get("error") or {}).get("details") or () if isinstance(item, dict)]
