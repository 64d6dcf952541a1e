"""A finished case is on disk before the next starts, and survives whatever stops the run."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from archehr.data.case import Case, DataError
from archehr.program.batch import Interrupted, in_threads
from archehr.program.run.folder import RunFolder
from archehr.program.run.manifest import Identity, Manifest
from archehr.program.run.records import CaseRecord, Tally
from archehr.program.settings import PRESETS
from archehr.program.stages.registry import STAGES
from tests.benchmarks.kill_and_resume import kill_and_resume
from tests.stub_server import Reply, StubServer, answer_stage

CASES = [Case(str(i), "Why?") for i in range(12)]
IDENTITY = Identity(
    data="d", data_sha256="1", program="p", program_hash="2", stages=list(STAGES), settings=PRESETS["default"]
)


def answer(case: Case) -> CaseRecord:
    return CaseRecord(case_id=case.id, question="Why?")


def test_every_case_comes_once_whatever_the_number_of_workers() -> None:
    for workers in (1, 3, 50):
        assert sorted(r.case_id for r in in_threads(CASES, answer, workers)) == sorted(c.id for c in CASES)
    assert list(in_threads([], answer, 4)) == []


def test_a_failure_stops_new_cases_and_keeps_those_in_flight() -> None:
    started: list[str] = []
    slow_begun = threading.Event()

    def work(case: Case) -> CaseRecord:
        started.append(case.id)
        if case.id == "1":
            assert slow_begun.wait(5)
            raise RuntimeError("stop here")
        if case.id == "0":
            slow_begun.set()
            time.sleep(0.3)
        return answer(case)

    kept: list[str] = []
    with pytest.raises(RuntimeError, match="stop here"):
        for record in in_threads(CASES, work, 2):
            kept.append(record.case_id)
    assert kept == ["0"] and set(started) == {"0", "1"}


def test_an_interruption_lets_cases_in_flight_finish_but_not_for_ever() -> None:
    interrupt = threading.Event()
    never = threading.Event()

    def work(case: Case) -> CaseRecord:
        interrupt.set()
        if case.id == "1":
            never.wait(30)
        return answer(case)

    kept: list[str] = []
    began = time.monotonic()
    with pytest.raises(Interrupted):
        for record in in_threads(CASES, work, 2, interrupt, grace=0.5):
            kept.append(record.case_id)
    assert "0" in kept and "1" not in kept
    assert time.monotonic() - began < 5
    never.set()


def test_threads_see_the_callers_context() -> None:
    from archehr.program.lm.ledger import at, where

    seen: list[Any] = []
    with at(stage="score"):
        list(in_threads(CASES[:3], lambda c: (seen.append(where.get()), answer(c))[1], 2))
    assert seen == [(None, "score")] * 3


def test_the_journal_is_all_that_resume_needs(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "r", IDENTITY) as folder:
        folder.write_manifest(Manifest.after(folder.identity, Tally(), []))
        folder.append(answer(CASES[0]))
    with RunFolder(tmp_path / "r", IDENTITY) as folder:
        assert list(folder.records) == ["0"] and folder.notices == []


@pytest.mark.parametrize("torn", ['{"case_id": "1", "quest', '{"case_id": "1"}', "\x00"])
def test_a_torn_last_line_is_dropped_with_a_notice(tmp_path: Path, torn: str) -> None:
    with RunFolder(tmp_path, IDENTITY) as folder:
        folder.write_manifest(Manifest.after(folder.identity, Tally(), []))
        folder.append(answer(CASES[0]))
    journal = tmp_path / "predictions.jsonl"
    journal.write_text(journal.read_text() + torn)
    with RunFolder(tmp_path, IDENTITY) as folder:
        assert list(folder.records) == ["0"] and "torn" in folder.notices[0]
        folder.append(answer(CASES[1]))
    with RunFolder(tmp_path, IDENTITY) as folder:
        assert list(folder.records) == ["0", "1"] and folder.notices == []


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    with RunFolder(tmp_path, IDENTITY) as folder:
        folder.write_manifest(Manifest.after(folder.identity, Tally(), []))
        folder.append(answer(CASES[0]))
    journal = tmp_path / "predictions.jsonl"
    journal.write_text("junk\n" + journal.read_text())
    with pytest.raises(DataError, match="line 1 is damaged"), RunFolder(tmp_path, IDENTITY):
        pass


@pytest.mark.parametrize(
    ("word", "changed"),
    [
        ("data", {"data_sha256": "else"}),
        ("program", {"program_hash": "else"}),
        ("lm", {"lm": {"model": "else"}}),
        ("question", {"question": "given"}),
        ("stages", {"stages": ["score"]}),
        (r"settings \(cut\)", {"settings": PRESETS["default"].model_copy(update={"cut": 4})}),
    ],
)
def test_another_runs_folder_is_refused_naming_what_differs(tmp_path: Path, word: str, changed: dict[str, Any]) -> None:
    with RunFolder(tmp_path, IDENTITY) as folder:
        folder.write_manifest(Manifest.after(folder.identity, Tally(), []))
    other = IDENTITY.model_copy(update=changed)
    with pytest.raises(DataError, match=f"holds a run with another {word};"), RunFolder(tmp_path, other):
        pass
    with RunFolder(tmp_path, other, fresh=True) as folder:
        assert folder.records == {}


def test_the_parts_that_differ_are_named_and_names_of_the_same_things_do_not_count(tmp_path: Path) -> None:
    identity = IDENTITY.model_copy(update={"lm": {"model": "m", "seed": 1}})
    with RunFolder(tmp_path, identity) as folder:
        folder.write_manifest(Manifest.after(folder.identity, Tally(), []))
    same = {"data": "/abs/d", "program": "./p", "versions": {"dspy": "9"}}
    with RunFolder(tmp_path, identity.model_copy(update=same)):
        pass
    other = identity.model_copy(update={"data_sha256": "9", "lm": {"model": "m", "seed": 2, "endpoint": "e"}})
    with pytest.raises(DataError, match=r"another data, lm \(seed, endpoint\);"), RunFolder(tmp_path, other):
        pass


def test_a_second_run_on_the_folder_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    hold = (
        "import sys, pathlib\n"
        "from archehr.program.run.folder import RunFolder\n"
        "from archehr.program.run.manifest import Identity\n"
        f"identity = Identity.model_validate_json({IDENTITY.model_dump_json()!r})\n"
        f"with RunFolder(pathlib.Path({str(tmp_path)!r}), identity):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", hold],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(DataError, match=f"process {holder.pid}"), RunFolder(tmp_path, IDENTITY):
            pass
    finally:
        holder.kill()
        holder.wait()
    with RunFolder(tmp_path, IDENTITY):
        pass  # the lock died with its holder


def test_an_unwritable_place_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="use another --out"), RunFolder(tmp_path / "file" / "r", IDENTITY):
        pass


def test_a_full_disk_gets_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with RunFolder(tmp_path, IDENTITY) as folder:
        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(DataError, match="No space left on device; free space"):
            folder.append(answer(CASES[0]))


@pytest.mark.parametrize(("lm", "kilobytes"), [("", 4), ("", 30), ("knn", 4), ("knn", 20), ("knn", 40)])
def test_a_file_that_cannot_grow_ends_a_run_in_one_line(tmp_path: Path, lm: str, kilobytes: int) -> None:
    """As on a full disk, but in every file: the journal, the cache's databases and what is written at the end."""
    resource = pytest.importorskip("resource")
    call = [sys.executable, "-m", "archehr", "run", "sample/test", "--out", str(tmp_path / "r")]
    ran = subprocess.run(
        call + (["--lm", lm] if lm else []),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, kilobytes * 1024)),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "ARCHEHR_CACHE": str(tmp_path / "cache")},
    )
    assert ran.returncode == 2 and ran.stdout == ""
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"archehr: {tmp_path}") and "; free space" in line


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_cases_in_flight_and_exits_130_resumable(tmp_path: Path, sent: signal.Signals) -> None:
    with StubServer(lambda r: Reply(answer_stage(r.ask), delay=0.05)) as server:
        call = [
            sys.executable, "-m", "archehr", "run", "sample/test", "--cases", "101-108", "--lm", "openai/stub",
            "--api-base", server.openai, "--workers", "2", "--out", str(tmp_path / "r"),
        ]  # fmt: skip
        options: dict[str, Any] = {"cwd": Path(__file__).parents[2], "env": {**os.environ, "OPENAI_API_KEY": "stub"}}
        process = subprocess.Popen(call, stderr=subprocess.PIPE, text=True, **options)
        journal = tmp_path / "r" / "predictions.jsonl"
        while not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(sent)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130 and "interrupted" in err and "Traceback" not in err
        kept = journal.read_text().splitlines()
        assert 2 <= len(kept) < 8 and all(json.loads(line)["case_id"] for line in kept)
        done = subprocess.run(call, capture_output=True, text=True, check=True, **options)
    assert f"8 answered, {len(kept)} of them before" in done.stdout
    prompts = [json.dumps(r.body["messages"]) for r in server.received]
    assert len(prompts) == len(set(prompts)), "an answered prompt was paid for twice"


def test_kill_9_loses_and_repeats_nothing(tmp_path: Path) -> None:
    report = kill_and_resume(tmp_path, kills=3, seed=1)
    assert report.kills == 3
    assert report.lost == report.repeated == report.paid_twice == 0
    assert report.same_files
