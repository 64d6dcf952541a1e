"""A server on 127.0.0.1 that plays the batch services of Gemini, OpenAI and Google Cloud (its part is in cloud_batches)
beside the direct calls of StubServer."""

from __future__ import annotations

import email
import email.policy
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests import cloud_batches
from tests.stub_server import Received, Reply, StubServer, _body, _received

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
OPENAI_STATE = {"PENDING": "in_progress", "SUCCEEDED": "completed", "CANCELLED": "cancelled", "EXPIRED": "expired",
                "FAILED": "failed", "PARTIALLY_SUCCEEDED": "completed"}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What becomes of a job: it ends in `state` at the `looks`th look; requests at the places `skipped` get no answer
    (None: none does), the others are answered in another order than they were sent."""

    looks: int = 1
    state: str = "SUCCEEDED"
    skipped: frozenset[int] | None = frozenset()
    why: str = ""


@dataclass
class Job:
    """One job: our client's name for it, its requests by key, and what they were answered. `service` is gemini, openai
    or vertex."""

    id: str
    name: str
    service: str
    model: str
    requests: dict[str, dict[str, Any]]
    plan: Plan
    by_file: bool = False
    state: str = "PENDING"
    looks: int = 0
    output: list[dict[str, Any]] = field(default_factory=list)
    deleted: bool = False
    config: dict[str, Any] = field(default_factory=dict)


class StatusError(Exception):
    """Raised by `at`: the request gets this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class BatchServer(StubServer):
    """`plan(number)` says what becomes of a job, from 0; `reply(received)` answers one request, as in StubServer, an
    error where its status is not 200. `answered` counts the answers to each request, `at(step)` is called with
    "create", "created", "look", "fetch" before the server goes on, `faults` are statuses that the next requests to
    the services get.

    `keep_metadata=False` leaves the keys out of Gemini's inline answers, which then come in the order of the requests.
    """

    def __init__(
        self,
        reply: Callable[[Received], str | Reply] | None = None,
        plan: Callable[[int], Plan] = lambda _: Plan(),
        *,
        keep_metadata: bool = True,
    ) -> None:
        super().__init__(reply)
        self.plan, self.keep_metadata = plan, keep_metadata
        self.jobs: list[Job] = []
        self.files: dict[str, bytes] = {}
        self.names: dict[str, str] = {}  # of files that were uploaded to OpenAI
        self.objects: dict[str, bytes] = {}  # of Cloud Storage, by BUCKET/NAME
        self.answered: Counter[str] = Counter()
        self.at: Callable[[str], None] = lambda step: None
        self.faults: list[int] = []
        self.cancelled: list[str] = []

    def make_job(self, service: str, name: str, model: str, requests: dict[str, Any], *, by_file: bool = True) -> Job:
        self.at("create")
        kind = {"gemini": "batches/", "openai": "batch_", "vertex": ""}[service]
        job = Job(f"{kind}{len(self.jobs)}", name, service, model, requests, self.plan(len(self.jobs)), by_file)
        self.jobs.append(job)
        self.at("created")
        return job

    def look(self, id: str) -> Job:
        job = next(job for job in self.jobs if job.id == id and not job.deleted)
        self.at("look")
        job.looks += 1
        if job.state == "PENDING" and (job.looks >= job.plan.looks or id in self.cancelled):
            self._run(job, "CANCELLED" if id in self.cancelled else job.plan.state)
        return job

    def _run(self, job: Job, state: str) -> None:
        skipped = job.plan.skipped
        keys = [k for n, k in enumerate(job.requests) if skipped is not None and n not in skipped]
        if self.keep_metadata or job.by_file:
            random.Random(len(self.jobs)).shuffle(keys)
        job.output = [self._answered(job, key) for key in (keys if state != "CANCELLED" else [])]
        job.state = state

    def _answered(self, job: Job, key: str) -> dict[str, Any]:
        """One line of output, as the service has it."""
        body = {name: value for name, value in job.requests[key].items() if name != "labels"}
        direct = f"/v1beta/models/{job.model}:generateContent"
        received = _received("/v1/chat/completions" if job.service == "openai" else direct, {}, body)
        self.answered[json.dumps(body, sort_keys=True)] += 1
        reply = self._answer(received)
        payload = reply.body if reply.body is not None else _body(received, reply)
        self._count(payload)
        if job.service == "openai":
            response = {"status_code": reply.status, "request_id": "r", "body": payload}
            return {"id": f"l-{key}", "custom_id": key, "response": response, "error": None}
        if job.service == "vertex":
            return cloud_batches.line(job.requests[key], reply.status, payload)
        of = {"key": key} if job.by_file else {"metadata": {"key": key}} if self.keep_metadata else {}
        if reply.status != 200:
            rpc = {400: 3, 429: 8, 500: 13, 503: 14}[reply.status]
            return {**of, "error": {"code": rpc, "message": payload["error"]["message"]}}
        return {**of, "response": payload}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server, direct = self, super()._handler()

        class Handler(direct):  # type: ignore[misc, valid-type]
            def do_POST(self) -> None:
                path = urlsplit(self.path).path
                if path.endswith(("/chat/completions", ":generateContent")):
                    super().do_POST()
                else:
                    self._serve("POST", path, self._sent())

            def do_PUT(self) -> None:
                self._serve("PUT", urlsplit(self.path).path, self._sent())

            def do_GET(self) -> None:
                self._serve("GET", urlsplit(self.path).path, b"")

            def do_DELETE(self) -> None:
                self._serve("DELETE", urlsplit(self.path).path, b"")

            def _sent(self) -> bytes:
                return self.rfile.read(int(self.headers.get("content-length", 0)))

            def _serve(self, method: str, path: str, data: bytes) -> None:
                if server.faults:
                    status = server.faults.pop(0)
                    self._send({"error": {"code": status, "message": "scripted fault", "status": "STUB"}}, status)
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                query = dict(parse_qsl(urlsplit(self.path).query))
                try:
                    if (made := cloud_batches.route(server, method, path, query, data, headers)) is None:
                        made = _route(server, method, path, data, headers)
                except StatusError as error:
                    self._send({"error": {"code": error.status, "message": "busy", "status": "STUB"}}, error.status)
                    return
                except StopIteration:
                    self._send({"error": {"code": 404, "message": "not found", "status": "NOT_FOUND"}}, 404)
                    return
                made, *rest = made if isinstance(made, tuple) else (made,)
                self._send(made, rest[1] if len(rest) > 1 else 200, rest[0] if rest else None)

            def _send(self, made: Any, status: int, headers: dict[str, str] | None = None) -> None:
                raw = made if isinstance(made, bytes) else json.dumps(made).encode()
                try:
                    self.send_response(status)
                    for name, value in {"content-type": "application/json", **(headers or {})}.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                except (BrokenPipeError, ConnectionResetError):
                    pass

        return Handler


def _route(server: BatchServer, method: str, path: str, data: bytes, headers: dict[str, str]) -> Any:
    """The answer to one request to the services. Raises StopIteration for what is not there."""
    if path.startswith("/v1/"):
        return _openai(server, method, path.removeprefix("/v1"), data, headers)
    if path == "/upload/v1beta/files":
        return {}, {"x-goog-upload-url": f"{server.url}/upload/put/{len(server.files)}"}
    if path.startswith("/upload/put/"):
        name = f"files/in{len(server.files)}"
        server.files[name] = data
        return {"file": {"name": name, "sizeBytes": str(len(data))}}, {"x-goog-upload-status": "final"}
    return _gemini(server, method, path.removeprefix("/v1beta/"), data)


def _gemini(server: BatchServer, method: str, path: str, data: bytes) -> Any:
    if made := re.fullmatch(r"models/(.+):batchGenerateContent", path):
        batch = json.loads(data)["batch"]
        config = batch["inputConfig"]
        if name := config.get("fileName"):
            lines = [json.loads(line) for line in server.files[name].decode().strip().split("\n")]
            requests = {line["key"]: line["request"] for line in lines}
        else:
            inline = config["requests"]["requests"]
            requests = {one["metadata"]["key"]: one["request"] for one in inline}
        return _operation(server.make_job("gemini", batch["displayName"], made[1], requests, by_file=bool(name)))
    if path == "batches":
        return {
            "operations": [
                _operation(job) for job in reversed(server.jobs) if job.service == "gemini" and not job.deleted
            ]
        }
    if path.startswith("files/") and path.endswith(":download"):
        server.at("fetch")
        return server.files[path.removesuffix(":download")], {"content-type": "application/octet-stream"}
    if path.endswith(":cancel"):
        server.cancelled.append(next(job.id for job in server.jobs if f"{job.id}:cancel" == path and not job.deleted))
        return {}
    if method == "DELETE":
        next(job for job in server.jobs if job.id == path).deleted = True
        return {}
    job = server.look(path)
    if job.by_file and job.output:
        server.files[f"files/out-{job.name}"] = _jsonl(job.output)
    return _operation(job)


def _operation(job: Job) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "model": f"models/{job.model}",
        "displayName": job.name,
        "state": f"BATCH_STATE_{job.state}",
        "createTime": "2026-11-30T10:00:00Z",
        "batchStats": {"requestCount": str(len(job.requests))},
    }
    if job.output:
        by_file = {"responsesFile": f"files/out-{job.name}"}
        metadata["output"] = by_file if job.by_file else {"inlinedResponses": {"inlinedResponses": job.output}}
    elif job.state == "SUCCEEDED":
        metadata["output"] = {"inlinedResponses": {}}
    return {"name": job.id, "metadata": metadata, "done": job.state in ENDED}


def _openai(server: BatchServer, method: str, path: str, data: bytes, headers: dict[str, str]) -> Any:
    parts = path.strip("/").split("/")
    if path == "/files" and method == "GET":
        listed = [{"id": id, "object": "file", "bytes": 1, "created_at": 1, "filename": name, "purpose": "batch",
                   "status": "processed"} for id, name in server.names.items() if id in server.files]  # fmt: skip
        return {"object": "list", "data": listed, "has_more": False}
    if path == "/files":
        id = f"file-{len(server.names)}"
        server.names[id], server.files[id] = _uploaded(data, headers["content-type"])
        return {"id": id, "object": "file", "bytes": 1, "created_at": 1, "filename": "f", "purpose": "batch",
                "status": "processed"}  # fmt: skip
    if path == "/batches" and method == "POST":
        asked = json.loads(data)
        lines = [json.loads(line) for line in server.files[asked["input_file_id"]].decode().strip().split("\n")]
        assert all(line["url"] == asked["endpoint"] == "/v1/chat/completions" for line in lines)
        requests = {line["custom_id"]: line["body"] for line in lines}
        name = asked["metadata"]["archehr"]
        job = server.make_job("openai", name, lines[0]["body"]["model"], requests)
        job.config["input"] = asked["input_file_id"]
        return _batch(server, job)
    if path == "/batches":
        jobs = [_batch(server, job) for job in reversed(server.jobs) if job.service == "openai"]
        return {"object": "list", "data": jobs, "has_more": False}
    if parts[0] == "batches" and parts[-1] == "cancel":
        server.cancelled.append(parts[1])
        return _batch(server, next(job for job in server.jobs if job.id == parts[1]))
    if parts[0] == "batches":
        return _batch(server, server.look(parts[1]))
    if method == "DELETE":
        server.files.pop(parts[1], None)
        return {"id": parts[1], "object": "file", "deleted": True}
    server.at("fetch")
    return server.files[parts[1]], {"content-type": "application/jsonl"}


def _batch(server: BatchServer, job: Job) -> dict[str, Any]:
    good = [line for line in job.output if line["response"]["status_code"] == 200]
    bad = [line for line in job.output if line not in good]
    if job.state == "EXPIRED":
        missing = job.requests.keys() - {line["custom_id"] for line in job.output}
        why = {"code": "batch_expired", "message": "This request could not be executed before the window expired."}
        bad += [{"id": f"l-{key}", "custom_id": key, "response": None, "error": why} for key in sorted(missing)]
    files = {}
    for kind, lines in (("output", good), ("error", bad)):
        if lines and job.state in ENDED:
            files[f"{kind}_file_id"] = f"file-{kind}-{job.id}"
            server.files.setdefault(files[f"{kind}_file_id"], _jsonl(lines))
    failed = {"object": "list", "data": [{"code": "failed", "message": job.plan.why}]}
    said = {"errors": failed} if job.state == "FAILED" else {}
    return {"id": job.id, "object": "batch", "endpoint": "/v1/chat/completions", "input_file_id": job.config["input"],
            "completion_window": "24h", "status": OPENAI_STATE[job.state], "created_at": int(time.time()),
            "metadata": {"archehr": job.name}, **files, **said}  # fmt: skip


def _jsonl(lines: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def _uploaded(data: bytes, content_type: str) -> tuple[str, bytes]:
    """(name, content) of the file in a multipart body."""
    message = email.message_from_bytes(
        b"content-type: " + content_type.encode() + b"\r\n\r\n" + data, policy=email.policy.HTTP
    )
    for part in message.iter_parts():  # type: ignore[attr-defined]
        if name := part.get_filename():
            return name, part.get_payload(decode=True)
    raise AssertionError("no file in the body")
