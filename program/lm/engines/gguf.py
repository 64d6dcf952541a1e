"""`gguf:PATH`: an open-weight model inside this process, through xllamacpp (llama.cpp's own server code)."""

from __future__ import annotations

import atexit
import os
import secrets
import sys
import threading
from pathlib import Path
from typing import Any

from dspy import lm15

from archehr.program.lm.backend import Backend, in_process, prompt_parts
from archehr.program.lm.policy import LMConfigError
from archehr.program.lm.settings import LMSettings

# Holds a window of 24,000 characters, the instructions and a few demos; a model's own maximum can be more than the
# machine's memory.
CONTEXT = 16384
# Scores for such a window fit. llama.cpp itself sets no limit, and a small model that repeats itself fills the context.
REPLY = 4096


def backend(settings: LMSettings) -> Backend:
    """The engine for the model file named, with `context` tokens and `threads`; it is loaded at the first call."""
    path, context = Path(settings.name.removeprefix("gguf:")), settings.context or CONTEXT
    try:
        with path.open("rb") as file:
            magic, size, mtime = file.read(4), path.stat().st_size, path.stat().st_mtime_ns
    except OSError as exc:
        raise LMConfigError(f"gguf:{path}: cannot be read ({exc.strerror}); give the path of a .gguf file") from None
    if magic != b"GGUF":
        raise LMConfigError(f"gguf:{path}: is not a GGUF file; convert the model, or download its .gguf")
    try:
        import xllamacpp  # noqa: F401
    except ImportError:
        raise LMConfigError("gguf: needs xllamacpp; pip install '.[gguf]' in the clone") from None
    return in_process(
        GgufEngine(path, context, settings.threads),
        reasoning=True,
        settings={"context": str(context), "file": f"{size}-{mtime}"},
    )


class GgufEngine:
    """One reply at a time: the cores are shared anyway, and every slot more would split the context."""

    supports_response_schema = True
    supported_params = frozenset({"temperature", "max_tokens", "seed", "response_format", "reasoning_effort"})

    def __init__(self, path: Path, context: int, threads: int | None) -> None:
        self._path = path
        self._context = context
        self._threads = threads
        self._server: Any = None
        self._lock = threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Generate one reply; a JSON schema in the request is enforced by llama.cpp's grammar."""
        with self._lock:
            self._server = self._server or self._load()
            try:
                raw = self._server.handle_chat_completions(_body(request))
            except (ValueError, RuntimeError) as exc:
                raise lm15.InvalidRequestError(f"llama.cpp: {exc}") from exc
        if "error" in raw:
            raise _error(raw["error"])
        return _response(raw, request.model)

    def _load(self) -> Any:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = self._context
        params.n_parallel = 1
        params.verbosity = -1  # llama.cpp's log would go to stderr
        params.warmup = False
        # xllamacpp also opens a port on 127.0.0.1, and other users of the machine are not to have it.
        params.api_keys = [secrets.token_hex(32)]
        if self._threads is not None:
            params.cpuparams.n_threads = self._threads
        atexit.register(self._leave)
        try:
            return xllamacpp.Server(params)
        except RuntimeError as exc:
            raise lm15.ConfigurationError(
                f"gguf:{self._path}: llama.cpp cannot load it; is the file whole, and is there memory for it and a "
                f"context of {self._context} tokens?"
            ) from exc

    def _leave(self) -> None:
        """An interrupted reply cannot be stopped, and llama.cpp crashes when the interpreter ends around it."""
        if self._lock.locked():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(130)


def _body(request: lm15.Request) -> dict[str, Any]:
    config = request.config
    body: dict[str, Any] = {
        "messages": [{"role": role, "content": text} for role, text in prompt_parts(request)],
        "max_tokens": config.max_tokens or REPLY,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "seed": config.seed,
    }
    if config.response_format:
        schema = config.response_format.get("schema")
        body["response_format"] = {"type": "json_object", "schema": schema} if schema else {"type": "json_object"}
    if config.reasoning is not None:
        # Chat templates know on and off; levels are beyond most of them.
        body["chat_template_kwargs"] = {"enable_thinking": config.reasoning.effort != "off"}
    return {key: value for key, value in body.items() if value is not None}


def _response(raw: dict[str, Any], model: str) -> lm15.Response:
    choice, usage = raw["choices"][0], raw.get("usage") or {}
    details = usage.get("prompt_tokens_details") or {}
    return lm15.Response(
        id=raw.get("id"),
        model=model,
        message=lm15.Message.assistant([lm15.TextPart(choice["message"].get("content") or "")]),
        finish_reason="length" if choice["finish_reason"] == "length" else "stop",
        usage=lm15.Usage(
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=usage.get("completion_tokens"),
            cache_read_tokens=details.get("cached_tokens"),
        ),
    )


def _error(error: dict[str, Any]) -> lm15.LM15Error:
    message = str(error.get("message", "unknown error"))
    if error.get("type") == "exceed_context_size_error":
        return lm15.ContextLengthError(f"{message} (--context)")
    return lm15.InvalidRequestError(f"llama.cpp: {message}")
