"""Gemini through google-genai: `gemini/MODEL` (Developer API) and `vertex_ai/gemini-MODEL` (Google Cloud)."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dspy import lm15

from archehr.program.lm.backend import Backend, prompt_parts
from archehr.program.lm.policy import LMConfigError, is_loopback, refuse_remote
from archehr.program.lm.prices import find_price, retirement_note
from archehr.program.lm.settings import LMSettings
from archehr.program.lm.wire.gemini import lm15_errors, to_response

if TYPE_CHECKING:
    from google import genai

    from archehr.program.lm.batch_service import BatchService

# google-genai 3.0 moved its default from v1beta to v1; what this program sends is written for these.
API_VERSION, CLOUD_API_VERSION = "v1beta", "v1beta1"
KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")  # in google-genai's own order
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
    engine = GeminiEngine(lambda: _client(api_base, api_key, asked.timeout, vertex), model, safety)
    return Backend(
        engine=engine,
        endpoint=api_base or "",
        provider="google-genai",
        price=find_price(provider, model),
        pinned=None if asked.accept_model_version else model,
        response_schema=True,
        reasoning=True,
        params=frozenset({"temperature", "max_tokens", "response_format", "reasoning_effort", "seed"}),
        settings={"safety": safety, "any_version": str(asked.accept_model_version)},
        notes=(note,) if note else (),
        batches=lambda: _batches(engine, asked if vertex else None),
    )


def _batches(engine: GeminiEngine, cloud: LMSettings | None) -> BatchService:
    """The Developer API's, or Google Cloud's. Raises LMConfigError where that lacks a bucket."""
    from archehr.program.lm.batches.gemini import GeminiBatches

    its = (engine.model, engine.client, engine.arguments)
    if cloud is None:
        return GeminiBatches(*its)
    from archehr.program.lm.batches.bucket import Bucket, check_place
    from archehr.program.lm.batches.vertex import VertexBatches

    url = check_place(cloud.batch_bucket, cloud.name)
    return VertexBatches(*its, bucket=Bucket(os.environ["GOOGLE_CLOUD_PROJECT"], cloud.timeout), url=url)


class GeminiEngine:
    """One google-genai attempt per call; DSPy retries."""

    def __init__(self, make_client: Callable[[], genai.Client], model: str, safety: str) -> None:
        self.model = model
        self._make_client = make_client
        self._safety = safety
        self._client: genai.Client | None = None
        self._lock = threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send one request. A cut, blocked or empty reply is a Response whose finish_reason says so."""
        with lm15_errors():
            raw = self.client().models.generate_content(**self.arguments(request))
        return to_response(raw, self.model)

    def client(self) -> genai.Client:
        """The client, made at first need."""
        with self._lock:
            self._client = self._client or self._make_client()
        return self._client

    def arguments(self, request: lm15.Request) -> dict[str, Any]:
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
            "thinking_config": thinking(self.model, asked.reasoning.effort) if asked.reasoning else None,
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
        return {"model": self.model, "contents": contents, "config": types.GenerateContentConfig(**given)}


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
