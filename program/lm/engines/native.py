"""Engines for hosted providers and OpenAI-compatible servers: DSPy's native ones, litellm only where they end."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import dspy
from dspy import lm15

from archehr.program.lm._dspy import LiteLLMEngine, LM15Engine, StdlibTransport, lookup
from archehr.program.lm.backend import Backend, Engine
from archehr.program.lm.batch_service import BatchService
from archehr.program.lm.policy import LMConfigError, is_loopback, refuse_remote, without_userinfo
from archehr.program.lm.prices import find_price, refuses_temperature, retirement_note
from archehr.program.lm.settings import LMSettings

# Servers that take a JSON schema with every model, which the snapshot of models cannot know.
SCHEMA_SERVERS = {"ollama", "vllm", "sglang"}
# Where the name asked for is one that the user gave, so that any model may stand behind it.
BY_DEPLOYMENT = {"azure", "azure-openai", "azure_ai", "sagemaker", "watsonx"}
COMPATIBLE = "openai-compatible"  # our lm15 provider for whatever --api-base points at


@dataclass(frozen=True)
class _Renamed:
    """Sends the request under the model name that the engine's router expects."""

    engine: Engine
    model: str

    def complete(self, request: lm15.Request) -> lm15.Response:
        return self.engine.complete(replace(request, model=self.model))


class _Compatible(_Renamed):
    """A server of which only the address is known."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        try:
            return super().complete(request)
        except lm15.InvalidRequestError as exc:
            if exc.status != 404:
                raise
            # No later call will fare better, and the run is to stop on it.
            raise lm15.UnsupportedModelError(
                f"{exc.message} (HTTP 404: is the model served there, and does --api-base end in /v1?)",
                provider=COMPATIBLE,
                status=404,
            ) from exc


def backend(asked: LMSettings) -> Backend:
    """A provider DSPy knows, else the OpenAI-compatible server at `api_base`, else litellm."""
    name = asked.name
    try:
        route = LM15Engine(lm15.RouterConfig(env={})).resolve(name)
    except (lm15.UnknownModelError, lm15.UnsupportedFeatureError, lm15.AmbiguousModelError):
        route = None
    provider = route.provider.removesuffix("-chat") if route is not None else ""
    api_base = asked.api_base or _environment_base(name.partition("/")[0], provider)
    if api_base and (route is None or route.provider == "openai-chat") and not _is_openai(api_base):
        if asked.local_only:
            refuse_remote(name, api_base)
        return _compatible_backend(route.model if route else name, api_base.rstrip("/"), asked)
    if route is None:
        if asked.local_only:
            refuse_remote(name, "")
        return _litellm_backend(asked)
    return _provider_backend(route, api_base, asked)


def _compatible_backend(model: str, api_base: str, asked: LMSettings) -> Backend:
    """vLLM, llama.cpp's server, Ollama, LM Studio, SGLang, a gateway: max_tokens and JSON schema in OpenAI's form."""
    api_key = asked.api_key
    if api_key is None and not is_loopback(api_base):
        api_key = os.environ.get("OPENAI_API_KEY")  # a program on this machine does not get the account's key
    provider = lm15.ProviderDefinition.chat(
        lm15.AccessPolicy(provider=COMPATIBLE, base_url=api_base),
        # Many of these servers know max_tokens only and would ignore OpenAI's newer max_completion_tokens.
        compat=lm15.OpenAIChatCompat(max_tokens_field="max_tokens", thinking_format="reasoning_effort"),
        placeholder_key="none",
    )
    config = lm15.RouterConfig(
        providers=(provider,),
        api_keys={COMPATIBLE: api_key} if api_key else None,
        transport=_transport(api_base, asked.timeout),
    )

    def over(transport: Any) -> Engine:
        return _Compatible(LM15Engine(replace(config, transport=transport)), f"{COMPATIBLE}:{model}")

    return Backend(
        engine=over(config.transport),
        endpoint=api_base,
        provider=COMPATIBLE,
        pinned=None if asked.accept_model_version else model,
        response_schema=True,
        reasoning=True,
        temperature=not refuses_temperature(COMPATIBLE, model),
        params=frozenset({"temperature", "max_tokens", "seed", "response_format", "reasoning_effort"}),
        batches=_batches(over, api_base, api_key, asked) if asked.name.startswith("openai/") else None,
    )


def _provider_backend(route: lm15.Resolution, api_base: str | None, asked: LMSettings) -> Backend:
    name, api_key = asked.name, asked.api_key
    known = lookup(route.provider)
    endpoint = api_base or (known.access.base_url if known and not known.hosted else None) or ""
    if asked.local_only:
        refuse_remote(name, endpoint)
    keys = known.access.env_keys if known and not known.hosted else ()
    if keys and not api_key and not any(os.environ.get(key) for key in keys):
        raise LMConfigError(f"{name} needs a key: set {' or '.join(keys)}")
    config = lm15.RouterConfig(
        api_keys={route.provider: api_key} if api_key else None,
        base_urls={route.provider: endpoint} if api_base else None,
        transport=_transport(endpoint, asked.timeout),
    )

    def over(transport: Any) -> Engine:
        return _Renamed(LM15Engine(replace(config, transport=transport)), f"{route.provider}:{route.model}")

    hints = dspy.LM(name, engine="lm15")  # asked for what the model can do, never called
    params = set(hints.supported_params)
    if route.provider in SCHEMA_SERVERS:
        params.add("response_format")
    return Backend(
        engine=over(config.transport),
        endpoint=endpoint,
        provider=route.provider,
        price=find_price(route.provider, route.model),
        pinned=None if asked.accept_model_version or route.provider in BY_DEPLOYMENT else route.model,
        response_schema=hints.supports_response_schema or route.provider in SCHEMA_SERVERS,
        reasoning=hints.supports_reasoning,
        temperature=not refuses_temperature(route.provider, route.model),
        params=frozenset(params),
        notes=tuple(filter(None, [retirement_note(name, route.provider, route.model)])),
        batches=_batches(over, endpoint, api_key, asked) if route.provider == "openai-chat" else None,
    )


def _batches(
    over: Callable[[Any], Engine], endpoint: str, api_key: str | None, asked: LMSettings
) -> Callable[[], BatchService]:
    """OpenAI's batch service, there or at another address."""

    def make_client() -> Any:
        import openai

        client = openai.DefaultHttpxClient(trust_env=not is_loopback(endpoint), follow_redirects=False)
        return openai.OpenAI(
            api_key=api_key or ("none" if is_loopback(endpoint) else os.environ.get("OPENAI_API_KEY", "none")),
            base_url=endpoint or None,
            timeout=asked.timeout,
            max_retries=0,
            http_client=client,
        )

    def make() -> BatchService:
        from archehr.program.lm.batches.openai import OpenAIBatches

        return OpenAIBatches(over, make_client)

    return make


def _litellm_backend(asked: LMSettings) -> Backend:
    import litellm  # seconds; only for the names that nothing else knows

    name = asked.name
    litellm.suppress_debug_info = True
    try:
        model, provider, _, _ = litellm.get_llm_provider(name)
    except Exception:
        raise LMConfigError(
            f"unknown LM {name!r}: write PROVIDER/MODEL (gemini/gemini-flash-latest, openai/gpt-5, ollama/qwen3), "
            "or give --api-base for an OpenAI-compatible server, or gguf:PATH, replay:FILE, knn"
        ) from None
    options = {"api_key": asked.api_key} if asked.api_key else {}
    return Backend(
        engine=LiteLLMEngine(timeout=asked.timeout, **options),
        endpoint="",
        provider=provider,
        price=find_price(provider, model),
        pinned=None if asked.accept_model_version or provider in BY_DEPLOYMENT else model,
        response_schema=bool(litellm.supports_response_schema(model=model, custom_llm_provider=provider)),
        params=frozenset(litellm.get_supported_openai_params(model=model, custom_llm_provider=provider) or ()),
        notes=(f"{name} is reached through litellm: DSPy has no engine of its own for it",),
    )


def _transport(endpoint: str, timeout: float) -> StdlibTransport:
    # A proxy from the environment would carry what is meant for this machine off it.
    return StdlibTransport(
        read_timeout=timeout, write_timeout=timeout, pool_timeout=timeout, trust_env=not is_loopback(endpoint)
    )


def _is_openai(api_base: str) -> bool:
    return without_userinfo(api_base).startswith("https://api.openai.com/")


def _environment_base(*prefixes: str) -> str | None:
    """A gateway set as PREFIX_BASE_URL or PREFIX_API_BASE, as the providers' own SDKs and litellm read it."""
    names = [f"{prefix.upper()}_{end}" for prefix in prefixes if prefix for end in ("BASE_URL", "API_BASE")]
    return next((os.environ[name] for name in names if os.environ.get(name)), None)
