"""An LM inside the test's process, wrapped as every LM of the program is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import dspy
from dspy import lm15

from archehr.program.lm import in_process, metered_lm


class FakeEngine:
    """Answers with `reply(request)`, or with the replies of a list in turn; an exception among them is raised.
    `requests` holds what was asked. Every reply counts 100 tokens in and 20 out."""

    supports_response_schema = True
    supported_params = frozenset({"temperature", "max_tokens", "seed", "response_format"})

    def __init__(self, reply: Callable[[lm15.Request], str] | Sequence[str | Exception]) -> None:
        self.requests: list[lm15.Request] = []
        self._reply = reply
        self._lock = threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        reply = self._reply(request) if callable(self._reply) else self._reply[number]
        if isinstance(reply, Exception):
            raise reply
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant([lm15.TextPart(reply)]),
            finish_reason="stop",
            usage=lm15.Usage(input_tokens=100, output_tokens=20),
        )


def fake_lm(reply: Callable[[lm15.Request], str] | Sequence[str | Exception], **settings: Any) -> dspy.LM:
    """A scripted LM; `lm.requests` holds what reached it. Uncached unless cache=True; `settings` as metered_lm."""
    engine = FakeEngine(reply)
    lm = metered_lm("fake/lm", in_process(engine), **{"cache": False, "num_retries": 0, **settings})
    lm.requests = engine.requests
    return lm


def asked(request: lm15.Request) -> str:
    """The last message of a request, for replies that depend on it."""
    return request.messages[-1].text or ""
