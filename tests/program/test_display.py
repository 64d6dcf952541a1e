"""The folder a command finds again, tables whose cells can be copied, and answers that fit a terminal."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest
from rich.console import Console

from archehr.data.case import Case, Sentence
from archehr.data.dataset import read_cases
from archehr.program.declining import NOT_ANSWERED
from archehr.program.extractive_program import extractive_program
from archehr.program.prompts.program_file import load_program
from archehr.program.run.records import CaseRecord
from archehr.program.run.run import run_cases
from archehr.program.types import Link
from archehr.terminal.display import AskDisplay, RunDisplay, default_folder, print_answer, print_columns
from tests.fake_lm import asked, fake_lm
from tests.stub_server import answer_stage


@pytest.mark.parametrize(
    ("title", "program", "lm", "folder"),
    [
        ("sample-test", "extractive", None, "runs/sample-test-extractive"),
        ("x", "zero_shot", "gemini/gemini-3.8-flash", "runs/x-zero_shot-gemini-gemini-3.8-flash"),
        ("x y", "/tmp/p.json", "knn", "runs/x-y-p-knn"),
        ("v1.5", "extractive", None, "runs/v1.5-extractive"),
    ],
)
def test_the_run_folder_of_a_command(title: str, program: str, lm: str | None, folder: str) -> None:
    assert str(default_folder(title, program, lm)) == folder


def test_no_cell_is_wrapped_or_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/a/very/long/path/" + "x" * 300
    print_columns([("name", path), ("a longer name", "[neural]")])
    assert capsys.readouterr().out == f"name           {path}\na longer name  [neural]\n"


LONG = "Creatinine was 1.7 on admission and non-oliguric throughout, " * 4 + "https://example.org/" + "x" * 90


def printed(terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    case = Case("1", "Why?", sentences=(Sentence("7", LONG),))
    record = CaseRecord(
        case_id="1", question="Why?", answer_sentences=[LONG], links=[Link(answer_id="1", evidence_ids=["7"])]
    )
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    print_answer(case, record, as_json=False)
    return capsys.readouterr().out.splitlines()


def test_an_answer_is_wrapped_between_words_on_a_terminal_and_nowhere_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = printed(False, capsys, monkeypatch)
    assert plain == ["Question: Why?", "", f"{LONG} [7]", "", f"[7] {LONG}"]
    wrapped = printed(True, capsys, monkeypatch)
    assert len(wrapped) > 10 and all(len(line) <= 60 or " " not in line for line in wrapped)
    assert " ".join(wrapped).split() == " ".join(plain).split()


def test_a_declined_answer_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    case = Case("1", "When is my baby due?", sentences=(Sentence("1", "Shoulder pain."),))
    print_answer(case, run_cases([case], extractive_program()).records[0], as_json=False)
    out, err = capsys.readouterr()
    assert out.endswith(f"\n\n{NOT_ANSWERED}\n") and "[" not in out
    assert "notice: generate: not_answered" in err


def terminal(width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)


def drawn(display: RunDisplay) -> str:
    """The bar's last line as it stands on the terminal."""
    display._progress.refresh()
    text = display._progress.console.file.getvalue()
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text).replace("\r", "\n").strip().splitlines()[-1].rstrip()


def test_the_bar_tells_time_left_failures_and_cost_in_80_columns() -> None:
    failed = [{"stage": "score", "kind": "lm_failed", "detail": ""}]
    with RunDisplay(100_000, console=terminal()) as display:
        assert re.search(r"0/100000 +\S+ left$", drawn(display))
        display.case_done(CaseRecord(case_id="1", usage={"cost": 12.5}))
        display.case_done(CaseRecord(case_id="2", usage={"cost": 0.25}, notices=failed * 2))
        line = drawn(display)
        assert re.search(r"2/100000 +\S+ left, 1 failed, \$12\.7500$", line) and len(line) <= 80
        display.case_done(CaseRecord(case_id="3", usage={"cost": None}))
        display.case_done(CaseRecord(case_id="4", usage={"cost": 0.1}))
        assert drawn(display).endswith("left, 1 failed, cost unknown")


def test_the_bar_of_a_run_without_an_lm_tells_no_cost() -> None:
    with RunDisplay(3, console=terminal()) as display:
        display.case_done(CaseRecord(case_id="1"))
        assert drawn(display).endswith("left")


def test_cases_done_before_count_in_the_bar_and_not_in_the_time_left() -> None:
    with RunDisplay(100, console=terminal()) as display:
        display.done_before(90)
        for number in range(2):
            time.sleep(0.05)
            display.case_done(CaseRecord(case_id=str(number)))
        (task,) = display._progress.tasks
        assert task.completed == 92 and task.speed is not None and task.speed < 40
        assert "92/100" in drawn(display)


def test_ask_tells_what_it_does_on_a_terminal_and_nothing_elsewhere() -> None:
    lm, case = fake_lm(lambda request: answer_stage(asked(request))), read_cases("sample/test")[0]
    for console in (terminal(), Console(file=io.StringIO(), width=80)):
        with AskDisplay(case, lm, console):
            run_cases([case], load_program("zero_shot"), lm)
        told = console.file.getvalue()
        if not console.is_terminal:
            assert told == ""
            continue
        with AskDisplay(case, lm, console) as display:
            for stage in ("reformulate", "score"):
                display._heard(stage)
            assert f"asking {lm.model} from 32 note sentences; last reply: score" in str(
                display._status.status if display._status else ""
            )
        assert f"asking {lm.model}" in " ".join(told.split())
