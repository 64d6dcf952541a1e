"""Batches on Google Cloud: what goes into the bucket, what may be wrong with it, and what failed rows say."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dspy import lm15
from hypothesis import given
from hypothesis import strategies as st

from archehr.program.lm.batches import vertex
from archehr.program.run.engines.batch import jobs as jobs_module
from tests.batch_server import BatchServer, StatusError
from tests.cloud_batches import BUCKET
from tests.stub_server import Received, Reply, answer_stage

SEND = ["run", "sample/dev", "--cases", "1-3", "--lm", "vertex_ai/gemini-2.5-flash", "--batch", "--retries", "1"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, batch_services: None) -> Iterator[BatchServer]:
    monkeypatch.setattr(jobs_module.Jobs, "_pause", lambda self, seconds: None)
    with BatchServer() as made:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", made.url)
        yield made


def send(command: Callable[..., Any], server: BatchServer, *more: str) -> Any:
    return command(*SEND, "--api-base", server.gemini, "--out", "r", *more)


def test_a_job_is_a_file_of_requests_with_labels_in_a_folder_of_its_own(
    server: BatchServer, command: Callable[..., Any]
) -> None:
    seen: dict[str, bytes] = {}
    server.at = lambda step: seen.update(server.objects) if step == "created" else None
    ran = send(command, server)
    assert ran.code == 0, ran.err
    first = server.jobs[0]
    config, folder = first.config, f"{BUCKET}/{first.name}"
    assert config["inputConfig"] == {"instancesFormat": "jsonl", "gcsSource": {"uris": [f"{folder}/requests.jsonl"]}}
    assert config["outputConfig"]["gcsDestination"]["outputUriPrefix"] == f"{folder}/replies"
    lines = seen[f"{folder.removeprefix('gs://')}/requests.jsonl"].decode().strip().split("\n")
    requests = [json.loads(line)["request"] for line in lines]
    assert [request["labels"] for request in requests] == [{"archehr-request": f"r{n}"} for n in range(len(requests))]
    assert all(
        re.fullmatch(r"[a-z0-9-]{1,63}", word) for one in requests for pair in one["labels"].items() for word in pair
    )
    assert requests[0]["generationConfig"]["temperature"] == 0.0 and requests[0]["safetySettings"]
    assert not server.objects


def test_the_option_names_another_bucket_and_a_job_is_read_where_it_was_sent_from(
    server: BatchServer, command: Callable[..., Any]
) -> None:
    def stop(step: str) -> None:
        if step == "look":
            raise StatusError(403)

    server.at = stop
    assert send(command, server, "--batch-bucket", "gs://other.bucket").code == 2
    assert server.jobs[0].config["inputConfig"]["gcsSource"]["uris"][0].startswith("gs://other.bucket/")
    server.at = lambda step: None
    assert send(command, server).code == 0
    assert not server.objects and len(server.jobs) > 1


def test_a_large_file_goes_up_and_comes_down_in_parts(
    server: BatchServer, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("google.cloud.storage.fileio.DEFAULT_CHUNK_SIZE", 256 * 1024)
    parts: dict[str, int] = {}
    server.at = lambda step: parts.update({step: parts.get(step, 0) + 1})
    server.reply = lambda received: Reply(answer_stage(received.ask) + " " * 100_000)
    ran = command("run", "sample/dev", *SEND[4:], "--api-base", server.gemini, "--out", "r", "--views", "score*5")
    assert ran.code == 0, ran.err
    assert parts["uploaded"] > len(server.jobs) and parts["fetch"] > 4 * len(server.jobs)
    assert set(server.answered.values()) == {1}


@pytest.mark.parametrize(
    "bucket, status, said",
    [
        ("gs://no-such-bucket/x", None, "gs://no-such-bucket: HTTP 404 of Cloud Storage; there is no such bucket"),
        (BUCKET, 403, "gs://a-bucket: HTTP 403 of Cloud Storage; the account needs the role"),
        (BUCKET, 503, "HTTP 503"),
    ],
)
def test_a_bucket_that_will_not_do_is_one_line_and_no_job(
    bucket: str, status: int | None, said: str, server: BatchServer, command: Callable[..., Any]
) -> None:
    server.faults = [status] * 20 if status else []
    ran = send(command, server, "--batch-bucket", bucket)
    server.faults = []
    assert ran.code == (130 if status == 503 else 2) and said in ran.err.splitlines()[-1], ran.err
    assert "Traceback" not in ran.err and not server.jobs and not server.objects
    assert send(command, server).code == 0


def test_without_the_extra_one_line_says_what_to_install(
    server: BatchServer, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.storage", None)
    ran = send(command, server)
    assert ran.code == 2 and 'pip install "archehr-dspy[vertex]"' in ran.err.splitlines()[-1]


def test_replies_that_do_not_say_what_they_answer_end_the_run(
    server: BatchServer, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tests.cloud_batches.line", lambda request, status, payload: {"status": "", "request": {}, "response": payload}
    )
    ran = send(command, server)
    assert ran.code == 2 and "which request they answer" in ran.err and len(server.jobs) == 1


def test_a_row_that_is_cut_off_is_one_without_an_answer(server: BatchServer, command: Callable[..., Any]) -> None:
    cut: set[str] = set()

    def cut_off(step: str) -> None:
        names = [name for name in server.objects if "predictions_" in name and step == "fetch" and not cut]
        for name in names[:1]:
            cut.add(name)
            server.objects[name] = server.objects[name][:-40]

    server.at = cut_off
    ran = send(command, server)
    assert ran.code == 0 and cut, ran.err
    assert "1 of 3 requests have no answer and are asked again" in ran.err
    assert sorted(Counter(server.answered.values())) == [1, 2]


@pytest.mark.parametrize("status", [429, 503])
def test_a_row_that_failed_for_a_while_is_asked_again(
    status: int, server: BatchServer, command: Callable[..., Any]
) -> None:
    failed: set[str] = set()

    def reply(received: Received) -> str | Reply:
        if received.prompt in failed:
            return answer_stage(received.ask)
        failed.add(received.prompt)
        return Reply(status=status, message="try later")

    server.reply = reply
    ran = send(command, server)
    assert ran.code == 0, ran.err
    assert set(server.answered.values()) == {2}


@pytest.mark.parametrize(
    "status, code",
    [
        ('Bad Request: {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}', 429),
        ("Bad Request: the prompt is too long", 400),
        ("INVALID_ARGUMENT", 400),
        ("got HTTP 503 from the model", 503),
        ("Error: Internal error occurred.", 500),
        ("a brace } and another {", 500),
        ('{"error": "a word"}', 500),
    ],
)
def test_the_words_of_a_failed_row_are_an_http_status(status: str, code: int) -> None:
    raw = vertex._raw({"status": status, "response": {}, "request": {}})
    assert raw is not None and raw["error"]["code"] == code


@given(st.text())
def test_whatever_a_failed_row_says_it_is_an_error_of_an_lm(status: str) -> None:
    service = vertex.VertexBatches("m", lambda: None, lambda _: {}, bucket=None, url="gs://b")  # type: ignore[arg-type, return-value]
    raw = vertex._raw({"status": status, "response": {}})
    if raw is None:
        assert not status
        return
    with pytest.raises(lm15.LM15Error):
        service.reply(lm15.Request(model="m", messages=(lm15.Message.user("-"),)), raw)
