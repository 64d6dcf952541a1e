"""A scripted LM server on 127.0.0.1 that speaks OpenAI's chat format and Gemini's generateContent."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GEMINI_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}


@dataclass(frozen=True)
class Received:
    """One request: `prompt` is all of its text, `ask` its last message."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    prompt: str
    ask: str


@dataclass
class Reply:
    """What to answer. `status` other than 200 sends an error, with `error` in its body; `reasoning` is (field, text)
    that stands beside a content of null; `body` replaces the built body altogether."""

    text: str = ""
    status: int = 200
    message: str = "scripted error"
    error: dict[str, Any] = field(default_factory=dict)
    reasoning: tuple[str, str] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    finish: str = "stop"
    model: str | None = None
    tokens_in: int = 100
    tokens_out: int = 20
    thinking: int = 0
    cached: int = 0
    body: dict[str, Any] | None = None


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that was killed
            super().handle_error(request, client_address)


class StubServer:
    """`with StubServer() as server:` and then `server.openai` or `server.gemini` as the api_base.

    `script` holds replies to give first, in order; then `reply(received)` answers (a str or a Reply), by default
    every stage of the pipeline sensibly. `received` logs the requests, `served` sums the usage it reported.
    """

    def __init__(self, reply: Callable[[Received], str | Reply] | None = None, script: list[Reply] | None = None):
        self.reply = reply or (lambda received: answer_stage(received.ask))
        self.script = list(script or [])
        self.received: list[Received] = []
        self.served = {"tokens_in": 0, "tokens_out": 0, "tokens_thinking": 0, "tokens_cached": 0}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.openai = f"{self.url}/v1"
        self.gemini = self.url

    def __enter__(self) -> StubServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, received: Received) -> Reply:
        with self._lock:
            self.received.append(received)
            if self.script:
                return self.script.pop(0)
        reply = self.reply(received)
        return Reply(reply) if isinstance(reply, str) else reply

    def _count(self, payload: dict[str, Any]) -> None:
        """Add a reply's usage to `served`, with thinking in tokens_out as it is billed."""
        gemini, openai = payload.get("usageMetadata") or {}, payload.get("usage") or {}
        thinking = gemini.get("thoughtsTokenCount", 0)
        thinking_too = (openai.get("completion_tokens_details") or {}).get("reasoning_tokens", 0)
        cached = (openai.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        with self._lock:
            self.served["tokens_in"] += gemini.get("promptTokenCount", 0) + openai.get("prompt_tokens", 0)
            self.served["tokens_out"] += gemini.get("candidatesTokenCount", 0) + thinking
            self.served["tokens_out"] += openai.get("completion_tokens", 0)
            self.served["tokens_thinking"] += thinking + thinking_too
            self.served["tokens_cached"] += gemini.get("cachedContentTokenCount", 0) + cached

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are written apart; without this each reply waits for a delayed ACK.
            disable_nagle_algorithm = True

            def log_message(self, *args: object) -> None:
                pass

            def do_POST(self) -> None:
                sent = self.rfile.read(length := int(self.headers.get("content-length", 0)))
                if len(sent) < length:  # who asked was killed on the way
                    return
                body = json.loads(sent or b"{}")
                received = _received(self.path, dict(self.headers), body)
                reply = stub._answer(received)
                time.sleep(reply.delay)
                payload = reply.body if reply.body is not None else _body(received, reply)
                stub._count(payload)
                raw = json.dumps(payload).encode()
                try:
                    self.send_response(reply.status)
                    for name, value in {"content-type": "application/json", **reply.headers}.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client gave up waiting

        return Handler


def _received(path: str, headers: dict[str, str], body: dict[str, Any]) -> Received:
    if "contents" in body:
        system = [p["text"] for p in (body.get("systemInstruction") or {}).get("parts", [])]
        texts = ["".join(p.get("text", "") for p in c["parts"]) for c in body["contents"]]
    else:
        system, texts = [], [_text(m["content"]) for m in body.get("messages", [])]
    headers = {name.lower(): value for name, value in headers.items()}
    return Received(path, headers, body, "\n\n".join(system + texts), texts[-1] if texts else "")


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _body(received: Received, reply: Reply) -> dict[str, Any]:
    gemini = ":generateContent" in received.path
    if reply.status != 200:
        error = {"code": reply.status, "message": reply.message}
        own = {"status": "STUB", "details": []} if gemini else {"type": "stub"}
        return {"error": {**error, **own, **reply.error}}
    if gemini:
        return _gemini_body(received, reply)
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.reasoning is not None:
        message |= {"content": reply.text or None, reply.reasoning[0]: reply.reasoning[1]}
    return {
        "id": "stub-1",
        "object": "chat.completion",
        "model": reply.model or received.body.get("model", ""),
        "choices": [{"index": 0, "finish_reason": reply.finish, "message": message}],
        "usage": {
            "prompt_tokens": reply.tokens_in,
            "completion_tokens": reply.tokens_out + reply.thinking,
            "total_tokens": reply.tokens_in + reply.tokens_out + reply.thinking,
            "prompt_tokens_details": {"cached_tokens": reply.cached},
            "completion_tokens_details": {"reasoning_tokens": reply.thinking},
        },
    }


def _gemini_body(received: Received, reply: Reply) -> dict[str, Any]:
    thought = [{"text": "a thought", "thought": True}] if reply.thinking else []
    model = re.search(r"models/([^:]+):", received.path)
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": [*thought, {"text": reply.text}]},
                "finishReason": GEMINI_FINISH.get(reply.finish, reply.finish),
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": reply.tokens_in,
            "candidatesTokenCount": reply.tokens_out,
            "thoughtsTokenCount": reply.thinking,
            "cachedContentTokenCount": reply.cached,
            "totalTokenCount": reply.tokens_in + reply.tokens_out + reply.thinking,
        },
        "modelVersion": reply.model or (model.group(1) if model else ""),
        "responseId": "stub-1",
    }


def answer_stage(ask: str) -> str:
    """A sensible JSON reply to any of the four stages, made from the prompt's last message alone: sentences that
    share a word of five letters with the question score 5 and support the answer."""
    wanted = re.findall(r"`(\w+)`", ask.rsplit("Respond with a JSON object", 1)[-1])
    fields = _fields(ask)
    question = set(re.findall(r"[a-z]{5,}", fields.get("question", "").lower()))
    notes = _sentences(fields.get("evidence") or fields.get("sentences", ""))
    related = [i for i, text in notes if question & set(re.findall(r"[a-z]{5,}", text.lower()))]
    if "question" in wanted:
        words = re.findall(r"\w+", fields.get("narrative", ""))[:12]
        return json.dumps({"question": " ".join(["What", "about", *words]) + "?"})
    if "scores" in wanted:
        return json.dumps({"scores": [{"id": i, "score": 5 if i in related else 2} for i, _ in notes]})
    if "answer_sentences" in wanted:
        return json.dumps({"answer_sentences": [text for _, text in notes[:2]]})
    if "links" in wanted:
        answers = _sentences(fields.get("answer_sentences", ""))
        return json.dumps({"links": [{"answer_id": i, "evidence_ids": related[:2]} for i, _ in answers]})
    return json.dumps(dict.fromkeys(wanted, ""))


def _fields(ask: str) -> dict[str, str]:
    parts = re.split(r"\[\[ ## (\w+) ## \]\]\n", ask.rsplit("Respond with a JSON object", 1)[0])
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _sentences(block: str) -> list[tuple[str, str]]:
    return re.findall(r"^\[(\S+)\] (.*)$", block, re.MULTILINE)
