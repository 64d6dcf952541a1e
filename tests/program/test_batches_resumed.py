"""Runs by batches from the shell: killed, interrupted, looked at, cancelled and refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.batch_server import BatchServer, Plan

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("batch_services")
BATCH = "archehr.program.run.engines.batch"
STEPS = [
    ("after", f"{BATCH}.store:Store.intend", 1),
    ("after", "archehr.program.lm.batches.{service}:{Service}Batches.create", 1),
    ("after", f"{BATCH}.store:Store.created", 1),
    ("after", f"{BATCH}.jobs:Jobs._look", 2),
    ("after", "archehr.program.lm.batches.{service}:{Service}Batches.answers", 1),
    ("after", f"{BATCH}.store:Store.keep", 1),
    ("before", f"{BATCH}.store:Store.end", 1),
    ("after", f"{BATCH}.store:Store.end", 1),
    ("after", "archehr.program.run.folder:RunFolder.append", 2),
    ("before", "archehr.program.run.folder:RunFolder.append", 1),
]


NAMES = {
    "gemini": "gemini/gemini-2.5-flash",
    "openai": "openai/gpt-4o-mini",
    "vertex": "vertex_ai/gemini-2.5-flash",
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    with BatchServer() as made:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", made.url)
        yield made


def call(server: BatchServer, service: str, out: Path, *more: str) -> list[str]:
    name = NAMES[service]
    base = server.openai if service == "openai" else server.gemini
    prices = ["--price-in", "1", "--price-out", "2"]
    return ["run", "sample/dev", "--cases", "1-5", "--lm", name, "--api-base", base, "--out", str(out), *prices, *more]


def child(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, cwd=ROOT, timeout=120)


def submissions(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.glob("submission_subtask_*.json"))}


def journalled(folder: Path) -> Counter[str]:
    path = folder / "predictions.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    return Counter(json.loads(line)["case_id"] for line in lines)


@pytest.mark.parametrize("service", NAMES)
def test_a_client_killed_at_every_step_loses_and_repeats_nothing(
    service: str, server: BatchServer, tmp_path: Path
) -> None:
    direct = child("-m", "archehr", *call(server, service, tmp_path / "direct"))
    assert direct.returncode == 0, direct.stderr
    server.plan = lambda n: Plan(looks=2)
    batch = call(server, service, tmp_path / "batch", "--batch")
    before: Counter[str] = Counter()
    sent = {
        "gemini": [],
        "openai": [("after", "openai.resources.files:Files.create", 1)],
        "vertex": [("after", "archehr.program.lm.batches.bucket:Bucket.write", 1)],
    }
    for when, place, count in [*sent[service], *STEPS]:
        place = place.format(service=service, Service={"openai": "OpenAI"}.get(service, service.title()))
        killed = child("-m", "tests.killed_client", when, place, str(count), *batch)
        assert killed.returncode == -signal.SIGKILL, (place, killed.stdout, killed.stderr)
        now = journalled(tmp_path / "batch")
        assert before <= now and set(now.values()) <= {1}
        before = now
    ended = child("-m", "archehr", *batch, "--json")
    assert ended.returncode == 0, ended.stderr
    assert submissions(tmp_path / "batch") == submissions(tmp_path / "direct")
    assert set(server.answered.values()) == {1}  # nobody paid twice
    kept = {*server.objects, *(id for id in server.files if id.startswith("file-"))}
    assert not kept and all(job.deleted for job in server.jobs if job.service != "openai")  # no note text stays there
    names = [job.name for job in server.jobs]
    assert len(set(names)) == len(names) == len([job for job in server.jobs if job.output])
    assert journalled(tmp_path / "batch") == dict.fromkeys(journalled(tmp_path / "direct"), 1)
    usage = json.loads((tmp_path / "batch" / "predictions.jsonl").read_text().splitlines()[0])["usage"]
    assert usage["calls"] == 5  # those whose replies an earlier call fetched, too
    assert oct((tmp_path / "batch" / "batch" / "replies.jsonl").stat().st_mode & 0o777) == "0o600"


def test_ctrl_c_leaves_the_job_and_the_same_command_fetches_it(server: BatchServer, tmp_path: Path) -> None:
    server.plan = lambda n: Plan(looks=10**6) if n == 0 else Plan()
    args = call(server, "gemini", tmp_path / "run", "--batch")
    process = subprocess.Popen(
        [sys.executable, "-m", "archehr", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    while not (server.jobs and server.jobs[0].looks):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command fetches the replies" in err and "interrupted" in err and "Traceback" not in err
    status = child("-m", "archehr", *args, "--batch-status")
    assert "batches/0" in status.stdout and "PENDING" in status.stdout and status.returncode == 0
    server.jobs[0].plan = Plan()
    assert child("-m", "archehr", *args).returncode == 0
    assert set(server.answered.values()) == {1} and len(server.jobs) == 5


@pytest.mark.parametrize("service", NAMES)
def test_status_and_cancel(
    service: str, server: BatchServer, tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled while the run waits: the run stops; the same command asks again for what has no reply."""
    server.plan = lambda n: Plan(looks=10**6) if n == 1 else Plan()
    args = call(server, service, tmp_path / "run", "--batch")

    def cancel(step: str) -> None:
        if step == "look" and len(server.jobs) == 2 and not server.cancelled:
            server.cancelled.append(server.jobs[1].id)

    server.at = cancel
    stopped = command(*args)
    assert stopped.code == 130 and "was cancelled at the provider" in stopped.err
    shown = json.loads(command(*args, "--batch-status", "--json").out)
    assert [one["state"] for one in shown] == ["SUCCEEDED", "CANCELLED"]
    assert [one["fetched"] for one in shown] == [5, 0]
    server.at, server.plan = lambda step: None, lambda n: Plan(looks=3)
    assert command(*args).code == 0
    assert set(server.answered.values()) == {1}


def test_cancel_from_the_command_line(server: BatchServer, tmp_path: Path, command: Callable[..., Any]) -> None:
    server.plan = lambda n: Plan(looks=10**6)
    args = call(server, "gemini", tmp_path / "run", "--batch")
    killed = child("-m", "tests.killed_client", "after", f"{BATCH}.jobs:Jobs._look", "1", *args)
    assert killed.returncode == -signal.SIGKILL
    refused = command(*args, "--fresh")
    assert refused.code == 2 and "--batch-cancel" in refused.err.splitlines()[-1]
    assert "being cancelled" in command(*args, "--batch-cancel").out
    assert server.cancelled == ["batches/0"]
    server.plan = lambda n: Plan()
    assert command(*args).code == 0
    assert [job.state for job in server.jobs][:2] == ["CANCELLED", "SUCCEEDED"]
    assert set(server.answered.values()) == {1}
    assert command(*args, "--fresh").code == 0 and len(server.jobs) > 6


@pytest.mark.parametrize("created", [True, False])
def test_what_is_cancelled_may_be_started_over(
    created: bool, server: BatchServer, tmp_path: Path, command: Callable[..., Any]
) -> None:
    server.plan = lambda n: Plan(looks=10**6 if n == 0 and created else 1)
    args = call(server, "gemini", tmp_path / "run", "--batch")
    place = f"{BATCH}.jobs:Jobs._look" if created else f"{BATCH}.store:Store.intend"
    assert child("-m", "tests.killed_client", "after", place, "1", *args).returncode == -signal.SIGKILL
    refused = command(*args, "--fresh")
    assert refused.code == 2 and "or cancel them with --batch-cancel" in refused.err
    assert ("being cancelled" if created else "not created") in command(*args, "--batch-cancel").out
    assert command(*args, "--fresh").code == 0
    assert set(server.answered.values()) == {1}


@pytest.mark.parametrize(
    "args, said",
    [
        (["--lm", "knn", "--batch"], "knn has no batch service"),
        (["--lm", "vertex_ai/gemini-2.5-flash", "--batch"], "--batch-bucket gs://BUCKET/FOLDER"),
        (
            ["--lm", "vertex_ai/gemini-2.5-flash", "--batch", "--batch-bucket", "s3://b"],
            "--batch-bucket s3://b: write gs://BUCKET",
        ),
        (["--lm", "anthropic/claude-sonnet-4-5", "--batch"], "has no batch service"),
        (["--lm", "knn", "--lm", "score=gemini/gemini-2.5-flash", "--batch"], "knn has no batch service"),
        (["--batch"], "asks no LM"),
        (["--lm", "knn", "--batch", "--engine", "threads"], "--batch and --engine threads"),
        (["--lm", "gemini/gemini-2.5-flash", "--batch-status"], "no batch job was sent"),
        (["--lm", "gemini/gemini-2.5-flash", "--batch-cancel"], "no batch job was sent"),
    ],
)
def test_what_cannot_be_is_one_line_before_anything(
    args: list[str], said: str, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ARCHEHR_BATCH_BUCKET")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "stub-key-anthropic")
    for more in ([], ["--dry-run"]) if "--batch" in args else ([],):
        ran = command("run", "sample/dev", *args, *more)
        assert ran.code == 2 and said in ran.err.splitlines()[-1], ran.err
        assert "Traceback" not in ran.err and not list(tmp_path.glob("runs/*"))


def test_a_server_without_batches_is_told_of(server: BatchServer, command: Callable[..., Any], tmp_path: Path) -> None:
    server.faults = [404]
    ran = command("run", "sample/dev", "--lm", "openai/m", "--api-base", server.openai, "--batch")
    assert ran.code == 2 and "Traceback" not in ran.err
    assert "no such file, job or batch service there (HTTP 404 at /v1/files)" in ran.err.splitlines()[-1]
    assert "no price is known for openai/m, and no limit is set" in ran.err


def test_a_service_that_is_gone_stops_the_run(command: Callable[..., Any], tmp_path: Path) -> None:
    args = ["--lm", "openai/m", "--api-base", "http://127.0.0.1:9/v1", "--batch", "--retries", "1"]
    ran = command("run", "sample/dev", *args)
    assert ran.code == 130 and "the batch service: " in ran.err.splitlines()[-1] and "Traceback" not in ran.err


def test_the_estimate_is_at_the_prices_of_batches(command: Callable[..., Any], server: BatchServer) -> None:
    dollars = {}
    for more in ((), ("--batch",)):
        args = call(server, "openai", Path("run"), "--dry-run", "--json", *more)
        stages = json.loads(command(*args).out)["stages"]
        dollars[more] = sum(its["cost"] for its in stages.values())
    assert dollars[("--batch",)] == pytest.approx(dollars[()] / 2)


def test_a_direct_run_goes_on_where_batches_stopped(
    server: BatchServer, tmp_path: Path, command: Callable[..., Any]
) -> None:
    args = call(server, "openai", tmp_path / "run")
    killed = child("-m", "tests.killed_client", "after", "archehr.program.run.folder:RunFolder.append", "3", *args,
                   "--batch")  # fmt: skip
    assert killed.returncode == -signal.SIGKILL and sum(journalled(tmp_path / "run").values()) == 3
    assert command(*args).code == 0 and sum(journalled(tmp_path / "run").values()) == 5


def test_a_recording_of_batches_replays(server: BatchServer, tmp_path: Path, command: Callable[..., Any]) -> None:
    tape = tmp_path / "tape.jsonl"
    args = call(server, "gemini", tmp_path / "run", "--batch", "--record", str(tape))
    assert command(*args).code == 0
    assert len(tape.read_text().splitlines()) == 25
    again = command("run", "sample/dev", "--cases", "1-5", "--lm", f"replay:{tape}", "--out", tmp_path / "again")
    assert again.code == 0 and submissions(tmp_path / "again") == submissions(tmp_path / "run")
