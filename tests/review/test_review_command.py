"""`archehr review` from the shell: what it refuses in one line, what it prints, and how it stops."""

from __future__ import annotations

import builtins
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archehr.data.dataset import case_sha256, read_cases
from archehr.review.actions import CHANGE
from archehr.review.history import Open
from archehr.review.journal import ADJUDICATED, Entry, Journal, journal_path
from archehr.review.labels import Labels
from archehr.review.subject import Subject, read_subject
from tests.conftest import Ran
from tests.review.review_page import review_server

Command = Callable[..., Ran]


def subject_of(run: Path) -> Subject:
    return read_subject(run, data_folder=Path)


def finish(run: Path, reviewer: str, *cases: str, **changed: Any) -> None:
    """Let a reviewer finish cases, as the program said them but for what is `changed`."""
    subject = subject_of(run)
    path = run / f"review/{ADJUDICATED}.jsonl" if reviewer == ADJUDICATED else journal_path(run, reviewer)
    with Journal(path) as journal:
        for case_id in cases:
            said = subject.start(case_id)
            start = Labels.model_validate(said.model_dump() | changed)
            text = case_sha256([subject.cases[case_id]])[0]
            steps = [Open(text=text, start=start, said=said), CHANGE.validate_python({"do": "finish"})]
            journal.append([Entry(at="2026-01-01", case=case_id, step=step) for step in steps])


def refused(ran: Ran, *said: str) -> None:
    assert ran.code == 2 and ran.out == ""
    assert ran.err.startswith("archehr: ") and ran.err.count("\n") == 1, ran.err
    for part in said:
        assert part in ran.err


def test_an_unfinished_run_says_what_is_missing_and_which_cases_can_be_reviewed(run: Path, command: Command) -> None:
    journal = run / "predictions.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(sorted(lines)[:3]))
    refused(command("review", run), "unfinished, 1 of 4 cases are not answered, the first is 104", "--cases 101-103")
    assert list(read_subject(run, wanted="101-103", data_folder=Path).cases) == ["101", "102", "103"]
    journal.write_bytes(b"")
    refused(command("review", run), "no finished case")


def test_a_run_on_other_data_is_refused(run: Path, answered: Path, command: Command, tmp_path: Path) -> None:
    refused(command("review", run, "--data", "sample/test"), "other data than sample/test", "--data")
    shutil.copytree(answered / "data", tmp_path / "moved")
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(manifest | {"data": str(tmp_path / "gone")}))
    refused(command("review", run), "gone", "say where it is now with --data")
    refused(command("review", run, "--data", tmp_path / "moved", "--export", "x"), "no finished case")


@pytest.mark.parametrize("name", ["run.json", "predictions.jsonl"])
def test_a_damaged_run_is_refused(run: Path, command: Command, name: str) -> None:
    (run / name).write_text("{\n")
    refused(command("review", run), name, "damaged")
    (run / name).unlink()
    refused(command("review", run), "not a run folder")


def test_a_folder_that_cannot_be_written_is_refused(run: Path, command: Command) -> None:
    (run / "review").write_text("")
    refused(command("review", run), "cannot be written")


def test_what_makes_no_sense_together_is_refused(run: Path, command: Command) -> None:
    refused(command("review", run, "--agreement", "--adjudicate"), "ask for one")
    refused(command("review", run, "--order", "random"), "unsure or given")
    refused(command("review", run, "--adjudicate"), "no case that two reviewers have finished and read differently")
    refused(command("review", run, "--reviewer", "a/b"), "--reviewer")
    refused(command("review", run, "--export", "x", "--reviewer", "zoe"), "zoe: has no journal here")
    refused(command("review", "sample/test", "--blind", "0.2"), "DATA alone holds no run")
    refused(command("review", "nowhere"), "nowhere: no such file or folder")
    refused(command("review", "sample/dev", "--data", "sample/dev"), "no run folder")


def test_a_missing_extra_is_named(run: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == "starlette":
            raise ImportError("no module", name="starlette")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    refused(command("review", run), "needs starlette", "pip install '.[review]'")
    assert command("review", run, "--agreement").code == 0, "what needs no page needs no extra"


def test_a_case_reviewed_on_another_text_is_refused(
    run: Path, answered: Path, command: Command, tmp_path: Path
) -> None:
    finish(run, "ann", "101")
    journal = run / "review/ann.jsonl"
    text = case_sha256([read_cases(answered / "data")[0]])[0]
    journal.write_text(journal.read_text().replace(text, "0" * 12))
    refused(command("review", run, "--export", tmp_path / "out"), "case 101 was reviewed with another text")


def test_agreement_tells_kappa_f1_and_where_readings_differ(run: Path, command: Command) -> None:
    finish(run, "ann", "101", "102")
    finish(run, "bob", "101", question="Did the lead perforate the heart?")
    ran = command("review", run, "--agreement")
    assert ran.code == 0
    assert "ann and bob: 1 cases" in ran.out and "case 101: the question" in ran.out
    assert "marks against the program's" in ran.out
    told = json.loads(command("review", run, "--agreement", "--json").out)
    assert told["agreement"][0]["kappa"] == 1.0 and told["agreement"][0]["links_f1"] == 100.0
    assert told["against_program"][0] | {"kappa": 0, "sentences": 0} == {
        "seen": True,
        "cases": 3,
        "sentences": 0,
        "same": 1.0,
        "kappa": 0,
        "seconds": 0.0,
    }


def test_an_export_holds_finished_cases_only_and_tells_what_was_left_out(
    run: Path, command: Command, tmp_path: Path
) -> None:
    finish(run, "ann", "101", "102")
    finish(run, "bob", "102", "103", question="Was it so?")
    ran = command("review", run, "--export", "out")
    assert "left out, because reviewers read them differently: 102" in ran.err
    assert "2 cases exported, 1 are not finished" in ran.err
    assert [c.id for c in read_cases(tmp_path / "out")] == ["101", "103"]
    command("review", run, "--export", "bobs", "--reviewer", "bob")
    assert [c.clinician_question for c in read_cases(tmp_path / "bobs")] == ["Was it so?"] * 2
    finish(run, ADJUDICATED, "102", question="Settled?")
    told = json.loads(command("review", run, "--export", "out", "--json").out)
    assert told["cases"] == ["101", "102", "103"] and told["left_out"] == []
    assert read_cases(tmp_path / "out")[1].clinician_question == "Settled?"


def test_the_export_is_data_for_every_command(run: Path, answered: Path, command: Command, tmp_path: Path) -> None:
    finish(run, "ann", "101", "102")
    command("review", run, "--export", "labels")
    ran = command("run", "labels", "--out", "again", "--json")
    assert ran.code == 0 and json.loads(ran.out)["scores"]["subtask_2"]
    assert command("score", "again/submission_subtask_2.json", "--subtask", "2", "--data", "labels").code == 0
    given = {c.id: c for c in read_cases(answered / "data")}
    for case in read_cases(tmp_path / "labels"):
        kept = replace(case, gold=None, answer_sentences=(), clinician_question=None)
        assert kept == replace(given[case.id], answer_sentences=(), clinician_question=None)


def test_data_alone_can_be_labelled_and_its_journal_is_kept_beside_the_runs(command: Command, tmp_path: Path) -> None:
    with review_server("sample/dev", cwd=tmp_path) as served:
        told = served.stop()
    assert (tmp_path / "runs/sample-dev-review/review/reviewer.jsonl").exists()
    assert "20 cases" in told


def test_a_second_window_of_the_command_on_one_journal_is_refused(run: Path, command: Command) -> None:
    with review_server(run):
        refused(command("review", run, "--no-browser"), "in use by another archehr review")
        with review_server(run, "--reviewer", "bob") as other:
            assert "0 of 4" in other.stop()


def test_it_stops_by_itself_when_nobody_uses_it(run: Path) -> None:
    call = [sys.executable, "-m", "archehr", "review", str(run), "--no-browser", "--idle", "0.01"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=True)
    assert "stopped: the page was not used for 0.01 minutes" in done.stdout + done.stderr


def test_a_port_in_use_is_refused(run: Path, command: Command) -> None:
    with review_server(run) as served:
        port = served.address.split(":")[2].split("/")[0]
        refused(command("review", run, "--reviewer", "bob", "--port", port), f"--port {port}", "leave it out")
