"""The folder a command finds again, tables whose cells can be copied, and answers that fit a terminal."""

from __future__ import annotations

import sys

import pytest

from archehr.data.case import Case, Sentence
from archehr.program.declining import NOT_ANSWERED
from archehr.program.pipeline import extractive_program
from archehr.program.run.records import CaseRecord
from archehr.program.run.run import run_cases
from archehr.program.types import Link
from archehr.terminal.display import _print_columns, default_folder, print_answer


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
    _print_columns([("name", path), ("a longer name", "[neural]")])
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
