"""OpenAI's batches through its own client: a file of requests, a job, a file of replies and one of errors.

Requests are written and replies are read by the engine of direct calls, over paper instead of a network: the same
body goes out, and the same answer or error comes of it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from dspy import lm15

from archehr.program.lm._dspy import PaperReply
from archehr.program.lm.batch_service import CANCELLED, SUCCEEDED, Body, JobView, Raw
from archehr.program.lm.batches.lines import rows_of, text_at

if TYPE_CHECKING:
    import openai

    from archehr.program.lm.backend import Engine

ENDPOINT: Final = "/v1/chat/completions"
MARK = "archehr"  # the key of our name in a job's metadata
ENDED = {"completed": SUCCEEDED, "cancelled": CANCELLED, "failed": "FAILED", "expired": "EXPIRED"}
NOT_ASKED = frozenset({"batch_expired", "batch_cancelled"})


class OpenAIBatches:
    """`make_engine` gives the engine of direct calls over another transport, `make_client` OpenAI's client."""

    most_requests = 50_000
    most_bytes = 190_000_000  # of the 200 MB that a file may have

    def __init__(self, make_engine: Callable[[Any], Engine], make_client: Callable[[], openai.OpenAI]) -> None:
        self._paper = _Paper()
        self._engine = make_engine(self._paper)
        self._make_client = make_client
        self._client: openai.OpenAI | None = None

    def body(self, request: lm15.Request) -> Body:
        self._paper.answer(500, b"{}")
        with suppress(lm15.ServerError):
            self._engine.complete(request)
        body: Body = json.loads(self._paper.sent())
        return body

    def create(self, name: str, bodies: Mapping[str, Body]) -> str:
        lines = [
            json.dumps({"custom_id": key, "method": "POST", "url": ENDPOINT, "body": body}, ensure_ascii=False)
            for key, body in bodies.items()
        ]
        with self._lm15_errors():
            upload = self._its_client().files.create(
                file=(f"{name}.jsonl", ("\n".join(lines) + "\n").encode()), purpose="batch"
            )
            job = self._its_client().batches.create(
                input_file_id=upload.id, endpoint=ENDPOINT, completion_window="24h", metadata={MARK: name}
            )
        return job.id

    def find(self, name: str) -> str | None:
        with self._lm15_errors():
            jobs = self._its_client().batches.list(limit=100)
            return next((job.id for job in jobs if (job.metadata or {}).get(MARK) == name), None)

    def look(self, job: str) -> JobView:
        with self._lm15_errors():
            its = self._its_client().batches.retrieve(job)
        faults = (its.errors.data if its.errors else None) or []
        why = ", ".join(dict.fromkeys(str(fault.code) for fault in faults))  # their messages may quote a prompt
        return JobView(ENDED.get(its.status, its.status), its.status in ENDED, why)

    def answers(self, job: str, ids: list[str]) -> dict[str, Raw]:
        with self._lm15_errors():
            its = self._its_client().batches.retrieve(job)
            files = [name for name in (its.output_file_id, its.error_file_id) if name]
            contents = [self._its_client().files.content(name).content for name in files]
        rows = [row for content in contents for row in rows_of(content.split(b"\n"))]
        wanted = set(ids)
        raws = {key: _raw(row) for row in rows if (key := text_at(row, "custom_id")) in wanted}
        return {key: raw for key, raw in raws.items() if key is not None and raw is not None}

    def reply(self, request: lm15.Request, raw: Raw) -> lm15.Response:
        self._paper.answer(raw["status"], json.dumps(raw["body"]).encode())
        return self._engine.complete(request)

    def cancel(self, job: str) -> None:
        with self._lm15_errors():
            self._its_client().batches.cancel(job)

    def clear(self, job: str) -> None:
        """Its files, which OpenAI would keep for weeks."""
        import openai

        with self._lm15_errors():
            its = self._its_client().batches.retrieve(job)
            for name in filter(None, (its.input_file_id, its.output_file_id, its.error_file_id)):
                with suppress(openai.NotFoundError):  # an earlier call got so far
                    self._its_client().files.delete(name)

    def forget(self, name: str) -> None:
        with self._lm15_errors():
            for file in self._its_client().files.list(purpose="batch", limit=1000):
                if file.filename == f"{name}.jsonl":
                    self._its_client().files.delete(file.id)

    def _its_client(self) -> openai.OpenAI:
        self._client = self._client or self._make_client()
        return self._client

    @contextmanager
    def _lm15_errors(self) -> Iterator[None]:
        """What OpenAI's client raises inside, as a direct call would have it."""
        import openai

        try:
            yield
        except openai.APIStatusError as exc:
            if exc.status_code in (404, 405):
                where = f"HTTP {exc.status_code} at {exc.request.url.path}"
                raise lm15.UnsupportedFeatureError(f"no such file, job or batch service there ({where})") from exc
            self._paper.answer(exc.status_code, exc.response.content, exc.response.headers.get("retry-after"))
            self._engine.complete(_ANY)
            raise lm15.ServerError(f"HTTP {exc.status_code}", status=exc.status_code) from exc
        except openai.APITimeoutError as exc:
            raise lm15.TimeoutError("the batch service did not answer in time") from exc
        except openai.APIConnectionError as exc:
            raise lm15.TransportError(f"the batch service cannot be reached ({type(exc.__cause__).__name__})") from exc


class _Paper:
    """A transport that keeps what is sent and answers what it was given, a thread by itself."""

    def __init__(self) -> None:
        self._own = threading.local()

    def answer(self, status: int, body: bytes, retry_after: str | None = None) -> None:
        """What the next request of this thread gets."""
        headers = [("content-type", "application/json")]
        if retry_after is not None:
            headers.append(("retry-after", retry_after))
        self._own.answer = PaperReply(status=status, body=body, headers=headers)

    def sent(self) -> bytes:
        """The body of this thread's last request."""
        return bytes(self._own.sent)

    def stream(self, request: Any) -> PaperReply:
        """What lm15 calls to send a request."""
        self._own.sent = request.body
        reply: PaperReply = self._own.answer
        return reply


# For an error alone: nothing of the request is looked at.
_ANY = lm15.Request(model="-", messages=(lm15.Message.user("-"),))


def _raw(row: Mapping[str, Any]) -> Raw | None:
    """A row of a file of replies or errors; None for a request that the job never got to."""
    if isinstance(response := row.get("response"), dict):
        status = response.get("status_code")
        return {"status": status if isinstance(status, int) else 500, "body": response.get("body")}
    if text_at(row, "error", "code") in NOT_ASKED:
        return None
    return {"status": 500, "body": {"error": row.get("error") or {}}}
