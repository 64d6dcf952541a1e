"""Recordings: `--record FILE` writes what an LM was asked and answered, `replay:FILE` answers from it alone."""

from __future__ import annotations

import hashlib
import json
import threading
from itertools import takewhile
from pathlib import Path
from typing import Any

from dspy import lm15

from archehr.program.lm.backend import Backend, in_process, prompt_parts
from archehr.program.lm.ledger import where
from archehr.program.lm.policy import LMConfigError
from archehr.program.lm.settings import LMSettings

Parts = tuple[tuple[str, str], ...]  # (role, text) of every message: what a reply is found by


class Recorder:
    """Appends one JSON line per usable reply. The file holds note text, so only its owner may read it (0600)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
            path.chmod(0o600)
            self._write(b"")
        except OSError as exc:
            raise LMConfigError(f"--record {path}: cannot be written ({exc.strerror}); name another file") from None

    def append(self, request: lm15.Request, response: lm15.Response) -> None:
        """Write one pair, booked on the caller's case and stage. Raises lm15.ConfigurationError, which stops a run."""
        case, stage = where.get()
        config, usage = request.config, response.usage
        line = {
            "case": case,
            "stage": stage,
            "request": {
                "messages": prompt_parts(request),
                "temperature": config.temperature,
                "max_tokens": config.max_tokens,
                "seed": config.seed,
            },
            "reply": response.message.text,
            "model": response.model,
            "usage": [usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cache_read_tokens],
        }
        try:
            with self._lock:
                self._write((json.dumps(line, ensure_ascii=False) + "\n").encode())
        except OSError as exc:
            raise lm15.ConfigurationError(f"--record {self._path}: cannot be written ({exc.strerror})") from exc

    def _write(self, line: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(line)


def backend(settings: LMSettings) -> Backend:
    """The engine that answers from the recording named."""
    path = Path(settings.name.removeprefix("replay:"))
    engine = ReplayEngine(path)
    # In the key of the cache, where another file may have had the same name.
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    return in_process(engine, reasoning=True, settings={"recording": digest})


class ReplayEngine:
    """Answers a prompt it has seen, word for word, as it was answered then; any other prompt is an error that says
    where it departs from the recording. A prompt recorded more than once gets its replies in turn, then the last.
    """

    supports_response_schema = True
    supported_params = frozenset({"temperature", "max_tokens", "seed", "response_format", "reasoning_effort"})

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._replies: dict[Parts, list[dict[str, Any]]] = {}
        self._turns: dict[Parts, int] = {}
        self._prompts: dict[tuple[str | None, str | None], list[Parts]] = {}
        for number, line in enumerate(_lines(path), 1):
            self._read(number, line)

    def complete(self, request: lm15.Request) -> lm15.Response:
        """The recorded reply. Raises lm15.ConfigurationError, which stops a run, for a prompt never seen."""
        parts = tuple(prompt_parts(request))
        with self._lock:
            replies = self._replies.get(parts)
            if replies is None:
                raise lm15.ConfigurationError(self._difference(parts))
            turn = self._turns.get(parts, 0)
            self._turns[parts] = turn + 1
        entry = replies[min(turn, len(replies) - 1)]
        tokens_in, tokens_out, thinking, cached = entry["usage"]
        return lm15.Response(
            id=None,
            model=entry["model"],
            message=lm15.Message.assistant([lm15.TextPart(entry["reply"])]),
            finish_reason="stop",
            usage=lm15.Usage(
                input_tokens=tokens_in, output_tokens=tokens_out, reasoning_tokens=thinking, cache_read_tokens=cached
            ),
        )

    def _read(self, number: int, line: str) -> None:
        try:
            entry = json.loads(line)
            parts: Parts = tuple((str(role), str(text)) for role, text in entry["request"]["messages"])
            _, _, _, _ = entry["usage"]
            if not isinstance(entry["reply"], str) or not isinstance(entry["model"], str):
                raise TypeError
            place = (entry["case"], entry["stage"])
        except (ValueError, KeyError, TypeError):
            raise LMConfigError(
                f"replay:{self._path}: line {number} is no line of a recording; make one with --record"
            ) from None
        self._replies.setdefault(parts, []).append(entry)
        self._prompts.setdefault(place, []).append(parts)

    def _difference(self, parts: Parts) -> str:
        """Where the prompt departs from the recorded one it follows longest; never any of its text."""
        case, stage = where.get()
        place = f"case {case or '-'}, stage {stage or '-'}"
        recorded = self._prompts.get((case, stage))
        if not recorded:
            return f"{place} is not in the recording; record it with --record"
        message, character = max(_common(parts, other) for other in recorded)
        role = parts[message][0] if message < len(parts) else "missing"
        return (
            f"{place}: message {message + 1} ({role}) departs from the recording at character "
            f"{character + 1}; the prompt has changed, so record it again with --record"
        )


def _common(one: Parts, other: Parts) -> tuple[int, int]:
    """(message, character), from 0, at which two different prompts first differ."""
    for number, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            same = takewhile(lambda pair: pair[0] == pair[1], zip(mine[1], theirs[1], strict=False))
            return number, sum(1 for _ in same)
    return min(len(one), len(other)), 0


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise LMConfigError(f"replay:{path}: cannot be read ({why}); make a recording with --record") from None
