"""Whatever is written is acceptable, and everything the organisers would refuse is found without a key."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from archehr.data.case import AnswerSentence, Case, DataError, Sentence
from archehr.data.submission import read_submission, validate_submission, write_submission

CASES = [
    Case(
        "1",
        "Why?",
        sentences=(Sentence("1", "One."), Sentence("2", "Two.")),
        answer_sentences=(AnswerSentence("a", "A."),),
    ),
    Case(
        "2",
        "How?",
        sentences=(Sentence("0", "Zero."),),
        answer_sentences=(AnswerSentence("1", "B."), AnswerSentence("2", "C.")),
    ),
]
GOOD: dict[int, dict[str, Any]] = {
    1: {"1": "Why so?", "2": "How so?"},
    2: {"1": ["2", "1"], "2": []},
    3: {"1": "Because.", "2": "Thus."},
    4: {"1": [("a", ["1"])], "2": [("1", []), ("2", ["0"])]},
}


@pytest.mark.parametrize("subtask", GOOD)
def test_what_is_written_is_acceptable_and_private(tmp_path: Path, subtask: int) -> None:
    path = tmp_path / "s.json"
    write_submission(path, subtask, GOOD[subtask])
    report = validate_submission(read_submission(path), CASES, subtask)
    assert (report.faults, report.warnings) == ([], [])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["s.json"]


def entry(case_id: Any, prediction: Any) -> dict[str, Any]:
    return {"case_id": case_id, "prediction": prediction}


@pytest.mark.parametrize(
    ("subtask", "submission", "fault"),
    [
        (2, [entry("1", [])], "case 2: missing"),
        (2, [entry("1", []), entry("2", []), entry("1", [])], "case 1: stands twice"),
        (2, [entry("1", []), entry("2", []), entry("3", [])], "case 3: not in the data"),
        (2, [entry(1, []), entry("2", [])], "entry 1: needs"),
        (2, ["1", entry("1", []), entry("2", [])], "entry 1: needs"),
        (2, [{"case_id": "1"}, entry("2", [])], "case 1: has no"),
        (2, [entry("1", ["9"]), entry("2", [])], "does not have: 9"),
        (2, [entry("1", [1]), entry("2", [])], "strings"),
        (2, [entry("1", "1"), entry("2", [])], "must be an array"),
        (1, [entry("1", "  "), entry("2", "x")], "case 1: the prediction is empty"),
        (3, [entry("1", None), entry("2", "x")], "case 1: the prediction must be a string"),
        (
            4,
            [entry("1", []), entry("2", GOOD_2 := [{"answer_id": "1", "evidence_id": []}])],
            "answer sentence a is missing",
        ),
        (
            4,
            [entry("1", [{"answer_id": "a", "evidence_id": []}]), entry("2", GOOD_2)],
            "case 2: answer sentence 2 is missing",
        ),
        (
            4,
            [entry("1", [{"answer_id": "z", "evidence_id": []}]), entry("2", GOOD_2)],
            "answer id z is not in the data",
        ),
        (4, [entry("1", [{"answer_id": "a", "evidence_id": ["7"]}]), entry("2", GOOD_2)], "does not have: 7"),
        (4, [entry("1", [{"evidence_id": []}]), entry("2", GOOD_2)], "needs an"),
        (4, [entry("1", [{"answer_id": "a"}]), entry("2", GOOD_2)], "must be an array of sentence ids"),
    ],
)
def test_faults_are_found(subtask: int, submission: list[Any], fault: str) -> None:
    report = validate_submission(submission, CASES, subtask)
    assert any(fault in line for line in report.faults), report.faults


@pytest.mark.parametrize("subtask", GOOD)
def test_a_report_is_lines_without_note_text(subtask: int) -> None:
    text = "She has gout and\nmore."
    texts = [entry(text, text), entry("1", [text, "a\nb"]), entry("2", [{"answer_id": text, "evidence_id": [text]}])]
    report = validate_submission(texts, CASES, subtask)
    assert len(report.faults) >= 3
    assert not any("gout" in line or "\n" in line for line in report.faults + report.warnings)


def test_ids_are_not_called_unknown_where_the_data_has_none() -> None:
    report = validate_submission([entry("1", ["7"])], [Case("1", "Why?")], 2)
    assert report.ok and "not checked" in report.warnings[0]


def test_word_limits_are_reported_not_refused() -> None:
    report = validate_submission([entry("1", "w " * 16), entry("2", "x")], CASES, 1)
    assert report.ok and report.warnings == ["case 1: 16 words; the official scorer cuts at 15"]
    assert validate_submission([entry("1", "w " * 15), entry("2", "x")], CASES, 1).warnings == []
    assert validate_submission([entry("1", "w\N{NO-BREAK SPACE}" * 76), entry("2", "x")], CASES, 3).warnings


def test_unreadable_submissions_get_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        list(read_submission(tmp_path / "s.json"))
    (tmp_path / "s.json").write_text("{")
    with pytest.raises(DataError, match="not valid JSON"):
        list(read_submission(tmp_path / "s.json"))
    (tmp_path / "s.json").write_text(json.dumps({"1": []}))
    with pytest.raises(DataError, match="JSON array"):
        list(read_submission(tmp_path / "s.json"))


def test_a_folder_that_cannot_be_written_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        write_submission(tmp_path / "file" / "s.json", 1, GOOD[1])
