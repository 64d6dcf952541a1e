"""The engines of a run: the same records whatever answers, and no case lost where a worker is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import archehr
from archehr.data import plugins
from archehr.data.case import Case, DataError
from archehr.program.batch import Interrupted, in_threads
from archehr.program.pipeline import GroundedQA
from archehr.program.run.engines import processes, registry, worker
from archehr.program.run.engines.engine import Work
from archehr.program.run.engines.order import Order, case_as_json, case_from_json
from archehr.program.run.engines.processes import Processes
from archehr.program.run.job import Job
from archehr.program.run.records import CaseRecord
from archehr.program.stages.registry import STAGES

CASES = archehr.read_cases("sample/test")


def job(program: GroundedQA | None = None) -> Job:
    return Job(program or archehr.load_program("extractive"), None, "own", tuple(STAGES))


def work(cases: Any, its: Job | None = None, interrupt: threading.Event | None = None) -> Work:
    return Work(its or job(), cases, 2, interrupt or threading.Event(), None, lambda _: None)


def said(record: CaseRecord) -> dict[str, Any]:
    return record.model_dump(mode="json", exclude={"seconds"})


@pytest.mark.parametrize("settings", [{}, {"cut": 4, "answer_words": 30, "abstain": False}])
@pytest.mark.parametrize("name", ["extractive", "extractive-dev"])
def test_processes_give_the_records_of_threads(
    name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 2)
    program = archehr.load_program(name, settings)
    plain = archehr.run_cases(CASES[:6], program, engine="threads").records
    apart = archehr.run_cases(CASES[:6], program, engine="processes").records
    assert [said(record) for record in apart] == [said(record) for record in plain]


def test_a_case_crosses_without_its_gold() -> None:
    for case in CASES:
        crossed = case_from_json(case_as_json(case))
        assert crossed.gold is None and case.gold is not None
        assert crossed == Case(**{**vars_of(case), "gold": None})


def vars_of(case: Case) -> dict[str, Any]:
    return {name: getattr(case, name) for name in case.__dataclass_fields__}


def test_a_worker_that_is_killed_loses_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []
    ours = processes._Pool._started

    def noted(pool: processes._Pool) -> subprocess.Popen[str]:
        started.append(ours(pool))
        return started[-1]

    monkeypatch.setattr(processes._Pool, "_started", noted)
    monkeypatch.setattr(processes, "cores", lambda: 1)
    records = []
    for record in Processes().answers(work(CASES[:4])):
        records.append(record)
        if len(records) == 1:
            os.kill(started[0].pid, signal.SIGKILL)
    assert sorted(record.case_id for record in records) == [case.id for case in CASES[:4]]
    assert len(started) == 2 and all(worker.poll() is not None for worker in started)


def test_a_case_that_ends_every_worker_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nread order\nread case\nexit 9\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(DataError, match=f"^case {CASES[0].id}: the worker process ended on it, twice"):
        list(Processes().answers(work(CASES[:1])))


def replies_of(answer: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a worker says of a case, where `answer` answers it."""
    monkeypatch.setattr(Job, "answer", answer)
    order = Order.of(job())
    assert order is not None
    replies = list(worker._replies(iter([order.model_dump_json(), case_as_json(CASES[0])])))  # type: ignore[arg-type]
    assert len(replies) == 1
    return replies[0]


def test_what_a_worker_cannot_do_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(self: Job, case: Case) -> CaseRecord:
        raise DataError(f"case {case.id}: no")

    with pytest.raises(DataError, match=r"^case 101: no$"):
        processes._record(replies_of(refuses, monkeypatch))


def test_a_fault_in_a_worker_is_no_worker_that_ended_and_quotes_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Job, case: Case) -> CaseRecord:
        raise KeyError(case.narrative)

    with pytest.raises(RuntimeError, match=r"^KeyError in a worker, at test_engines.py:\d+$"):
        processes._record(replies_of(fails, monkeypatch))


def test_a_worker_whose_driver_is_gone_ends_without_a_word() -> None:
    order = Order.of(job())
    assert order is not None
    given = f"{order.model_dump_json()}\n{case_as_json(CASES[0])}\n"
    for said in (given, ""):  # killed while the worker answers, and before it has said what to answer
        orphan = subprocess.Popen(
            [sys.executable, "-m", "archehr.program.run.engines.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert orphan.stdin and orphan.stdout and orphan.stderr
        orphan.stdout.close()
        orphan.stdin.write(said)
        orphan.stdin.close()
        assert (orphan.stderr.read(), orphan.wait()) == ("", 0)


def test_a_worker_that_ends_before_it_has_its_order_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec <&-\nsleep 1\nexit 9\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(Order, "model_dump_json", lambda self: "x" * 10**6)  # more than a pipe holds
    with pytest.raises(DataError, match="the worker process ended on it, twice"):
        list(Processes().answers(work(CASES[:1])))


def test_a_worker_of_another_version_is_refused() -> None:
    order = Order.of(job())
    assert order is not None
    with pytest.raises(ValueError, match="install the same archehr everywhere"):
        order.model_copy(update={"program_hash": "0" * 64}).made()


def test_an_interruption_keeps_what_was_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 1)
    interrupt, records = threading.Event(), []
    with pytest.raises(Interrupted):
        for record in Processes().answers(work(CASES, interrupt=interrupt)):
            records.append(record)
            interrupt.set()
    assert 1 <= len(records) < len(CASES)


def test_of_a_stream_few_cases_are_held() -> None:
    many_taken = threading.Event()

    def stream() -> Iterator[int]:
        for number in range(1, 1001):
            if number > 100:
                many_taken.set()
            yield number

    given = in_threads(stream(), lambda number: number, 2)
    first = next(given)
    assert not many_taken.wait(0.3), "results pile up that nobody collects"
    assert sorted([first, *given]) == list(range(1, 1001))


def test_auto_takes_processes_for_many_cases_without_an_lm(monkeypatch: pytest.MonkeyPatch) -> None:
    class Another(GroundedQA):
        """A user's own."""

    monkeypatch.setattr(registry, "cores", lambda: 2)
    asks = Job(archehr.load_program("zero_shot"), archehr.make_lm("knn"), "own", tuple(STAGES))
    own = archehr.load_program("extractive")
    own.__class__ = Another
    chosen = {
        (name, cases): type(registry.engine_of("auto", its, cases)).__name__
        for name, its in {"extractive": job(), "asks": asks, "own": job(own)}.items()
        for cases in (10, 5000)
    }
    assert [key for key, engine in chosen.items() if engine == "Processes"] == [("extractive", 5000)]
    for its, why in ((asks, "without an LM"), (job(own), "not archehr's own")):
        with pytest.raises(DataError, match=why):
            registry.engine_of("processes", its, 1)


def test_an_unknown_engine_is_one_line(command: Any) -> None:
    ran = command("run", "sample/test", "--engine", "spark", "--out", "r")
    assert ran.code == 2 and "--engine spark: there is no such engine; there are auto, threads, processes" in ran.err
    assert not Path("r").exists()


def one_by_one() -> Any:
    """The engine of another package: an entry point of archehr.engines names this function."""

    class OneByOne:
        def check(self, job: Job) -> None:
            if job.program.asks_lm:
                raise DataError("--engine one: without an LM only")

        def answers(self, work: Work) -> Iterator[CaseRecord]:
            yield from map(work.job.answer, work.cases)

    return OneByOne()


def test_another_package_adds_an_engine(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("one", f"{__name__}:one_by_one", registry.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point] if group == registry.GROUP else [])
    ran = command("run", "sample/test", "--cases", "101-103", "--engine", "one", "--out", "r")
    assert ran.code == 0 and len(Path("r/predictions.jsonl").read_text().splitlines()) == 3
    refused = command("run", "sample/test", "--lm", "knn", "--engine", "one", "--out", "s")
    assert refused.code == 2 and "--engine one: without an LM only" in refused.err
    assert "auto, threads, processes" in command("run", "sample/test", "--engine", "two").err
