"""Gemini through google-genai: `gemini/MODEL` (Developer API) and `vertex_ai/gemini-MODEL` (Google Cloud)."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dspy import lm15

from archehr.program.lm._dspy import retry_after_seconds
from archehr.program.lm.backend import Backend, prompt_parts
from archehr.program.lm.policy import LMConfigError, is_loopback, refuse_remote
from archehr.program.lm.prices import find_price, retirement_note
from archehr.program.lm.settings import LMSettings

if TYPE_CHECKING:
    from google import genai

# google-genai 3.0 moved its default from v1beta to v1; what this program sends is written for these.
API_VERSION, CLOUD_API_VERSION = "v1beta", "v1beta1"
KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")  # in google-genai's own order
BLOCKED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR", "IMAGE_SAFETY"}
)
HARMS = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
THRESHOLDS = ("BLOCK_NONE", "OFF", "BLOCK_ONLY_HIGH", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_LOW_AND_ABOVE")
# Thinking tokens of Gemini 2.5 per --reasoning word. 2.5 Pro takes 128 to 32768 and cannot be kept from thinking.
BUDGETS = {"minimal": 128, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 32768, "max": 32768}
SCHEMA_KEYS = ("type", "format", "description", "enum", "required", "minimum", "maximum", "minItems", "maxItems")
LEVELS = {"minimal": "LOW", "low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "HIGH", "max": "HIGH"}


def backend(asked: LMSettings) -> Backend:
    """The google-genai engine for `asked.name`; no client is made and nothing sent before the first call."""
    name, safety, api_key = asked.name, asked.safety, asked.api_key
    if safety not in THRESHOLDS:
        raise LMConfigError(f"--safety {safety}: give one of {', '.join(THRESHOLDS)}")
    vertex = name.startswith("vertex_ai/")
    model = name.rsplit("/", 1)[-1]
    api_base = asked.api_base or os.environ.get("GOOGLE_GEMINI_BASE_URL")
    if asked.local_only:
        refuse_remote(name, api_base or "")
    if vertex:
        _need_project(name)
    else:
        api_key = api_key or next((os.environ[key] for key in KEYS if os.environ.get(key)), None)
        if not api_key:
            raise LMConfigError(f"{name} needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY")
    provider = "vertex" if vertex else "gemini"
    note = retirement_note(name, provider, model)
    return Backend(
        engine=GeminiEngine(lambda: _client(api_base, api_key, asked.timeout, vertex), model, safety),
        endpoint=api_base or "",
        provider="google-genai",
        price=find_price(provider, model),
        pinned=None if asked.accept_model_version else model,
        response_schema=True,
        reasoning=True,
        params=frozenset({"temperature", "max_tokens", "response_format", "reasoning_effort", "seed"}),
        settings={"safety": safety, "any_version": str(asked.accept_model_version)},
        notes=(note,) if note else (),
    )


class GeminiEngine:
    """One google-genai attempt per call; DSPy retries."""

    def __init__(self, make_client: Callable[[], genai.Client], model: str, safety: str) -> None:
        self._make_client = make_client
        self._model = model
        self._safety = safety
        self._client: genai.Client | None = None
        self._lock = threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send one request. A cut, blocked or empty reply is a Response whose finish_reason says so."""
        import httpx2
        from google.auth.exceptions import GoogleAuthError
        from google.genai import errors

        with self._lock:
            self._client = self._client or self._make_client()
        try:
            raw = self._client.models.generate_content(**self._arguments(request))
        except errors.APIError as exc:
            raise _api_error(exc) from exc
        except GoogleAuthError as exc:
            raise lm15.AuthError(f"{exc}; `gcloud auth application-default login`", provider="gemini") from exc
        except httpx2.TimeoutException as exc:
            raise lm15.TimeoutError(type(exc).__name__, provider="gemini") from exc
        except httpx2.TransportError as exc:
            raise lm15.TransportError(str(exc) or type(exc).__name__, provider="gemini") from exc
        return to_response(raw, self._model)

    def _arguments(self, request: lm15.Request) -> dict[str, Any]:
        """lm15.Request -> keyword arguments of generate_content."""
        from google.genai import types

        asked = request.config
        parts = prompt_parts(request)
        config: dict[str, Any] = {
            "system_instruction": "\n\n".join(text for role, text in parts if role == "system") or None,
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "top_k": asked.top_k,
            "max_output_tokens": asked.max_tokens,
            "seed": asked.seed,
            "stop_sequences": list(asked.stop) or None,
            "thinking_config": thinking(self._model, asked.reasoning.effort) if asked.reasoning else None,
            "safety_settings": [
                types.SafetySetting(
                    category=types.HarmCategory(f"HARM_CATEGORY_{harm}"),
                    threshold=types.HarmBlockThreshold(self._safety),
                )
                for harm in HARMS
            ],
        }
        if asked.response_format:
            config["response_mime_type"] = "application/json"
            # Not response_json_schema: endpoints that serve Gemini in batches take it and ignore it. This one refuses
            # the additionalProperties in DSPy's schemas (python-genai #1815), so it gets a plainer one.
            schema = asked.response_format.get("schema")
            config["response_schema"] = plain_schema(schema, schema.get("$defs", {})) if schema else None
        contents = [
            {"role": "model" if role == "assistant" else "user", "parts": [{"text": text}]}
            for role, text in parts
            if role != "system"
        ]
        given = {key: value for key, value in config.items() if value is not None}
        return {"model": self._model, "contents": contents, "config": types.GenerateContentConfig(**given)}


def plain_schema(schema: Any, defs: Mapping[str, Any]) -> Any:
    """A JSON schema in the subset that Gemini's `response_schema` takes: references written out, nothing it refuses."""
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return plain_schema(defs.get(schema["$ref"].rsplit("/", 1)[-1], {}), defs)
    kept = {key: schema[key] for key in SCHEMA_KEYS if key in schema}
    if "properties" in schema:
        kept["properties"] = {name: plain_schema(field, defs) for name, field in schema["properties"].items()}
    if "items" in schema:
        kept["items"] = plain_schema(schema["items"], defs)
    if "anyOf" in schema:
        kept["anyOf"] = [plain_schema(option, defs) for option in schema["anyOf"]]
    return kept


def thinking(model: str, effort: str) -> dict[str, Any]:
    """--reasoning for this model: a token budget up to Gemini 2.5, a level from Gemini 3 on."""
    version = re.match(r"gemini-(\d+)", model)
    if version and int(version.group(1)) < 3:
        if effort in ("off", "none"):
            if "pro" in model:
                raise lm15.UnsupportedFeatureError(f"{model} cannot be kept from thinking; use --reasoning minimal")
            return {"thinking_budget": 0}
        return {"thinking_budget": BUDGETS[effort]}
    if effort in ("off", "none"):
        raise lm15.UnsupportedFeatureError(f"{model} cannot be kept from thinking; use --reasoning minimal")
    return {"thinking_level": LEVELS[effort]}


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


def _client(api_base: str | None, api_key: str | None, timeout: float, vertex: bool) -> genai.Client:
    import httpx2
    from google import genai
    from google.genai import types

    options = types.HttpOptions(
        base_url=api_base,
        api_version=CLOUD_API_VERSION if vertex else API_VERSION,
        timeout=int(timeout * 1000),
        # Neither redirects nor a proxy may carry off the machine what is meant for a server on it.
        httpx_client=httpx2.Client(trust_env=not is_loopback(api_base or ""), follow_redirects=False, timeout=timeout),
    )
    if vertex:
        project, location = os.environ["GOOGLE_CLOUD_PROJECT"], os.environ.get("GOOGLE_CLOUD_LOCATION", "global")
        return genai.Client(vertexai=True, project=project, location=location, http_options=options)
    return genai.Client(vertexai=False, api_key=api_key, http_options=options)


def _need_project(name: str) -> None:
    if not os.environ.get("GOOGLE_CLOUD_PROJECT"):
        raise LMConfigError(
            f"{name} needs a Google Cloud project: set GOOGLE_CLOUD_PROJECT (and GOOGLE_CLOUD_LOCATION), and sign in "
            "with `gcloud auth application-default login`"
        )


def _api_error(exc: Any) -> lm15.LM15Error:
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
