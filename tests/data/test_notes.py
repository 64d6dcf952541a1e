"""Raw notes become the sentences that the shared task would make of them, and lose nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archehr.data.case import DataError
from archehr.data.dataset import read_cases
from archehr.data.notes import case_of
from archehr.data.splitter import split_note


def texts(note: str) -> list[str]:
    return [s.text for s in split_note(note)]


@pytest.mark.parametrize(
    ("note", "sentences"),
    [
        ("He was seen. He left.", ["He was seen.", "He left."]),
        (
            "Brief Hospital Course:\nHe came in with fever and was treated.",
            ["Brief Hospital Course:", "He came in with fever and was treated."],
        ),
        (
            "Brief Hospital Course: # AKI: Creatinine peaked at 5.4 on day three.",
            ["Brief Hospital Course:", "# AKI:", "Creatinine peaked at 5.4 on day three."],
        ),
        ("Service: Surgery", ["Service: Surgery"]),
        ("Seen by Dr. Smith at 5 p.m. and sent home.", ["Seen by Dr. Smith at 5 p.m. and sent home."]),
        ("Aspirin 81 mg q.d. Follow-up in May.", ["Aspirin 81 mg q.d.", "Follow-up in May."]),
        ("K was 4.9. 2 units given.", ["K was 4.9.", "2 units given."]),
        ("1. Pneumonia\n2. Sepsis", ["1. Pneumonia", "2. Sepsis"]),
        ("He was started\non heparin.", ["He was started on heparin."]),
        ("", []),
    ],
)
def test_sentences(note: str, sentences: list[str]) -> None:
    assert texts(note) == sentences


@given(st.text(alphabet="aB .:#\n1?-", max_size=80))
def test_splitting_loses_and_invents_nothing(note: str) -> None:
    found = split_note(note)
    assert "".join("".join(s.text.split()) for s in found) == "".join(note.split())
    assert [s.id for s in found] == [str(i) for i in range(1, len(found) + 1)]
    assert all(s.text.strip() for s in found)


@pytest.mark.parametrize("name", ["sample/dev", "sample/test"])
def test_the_samples_sentence_ends_are_found(name: str) -> None:
    """Agreement with the samples' own sentence ends. The rules were made with both samples in sight."""
    agreed = found = expected = 0
    for case in read_cases(name):
        assert case.note is not None
        ours, theirs = _ends([s.text for s in split_note(case.note)]), _ends([s.text for s in case.sentences])
        agreed, found, expected = agreed + len(ours & theirs), found + len(ours), expected + len(theirs)
    assert agreed / found > 0.9 and agreed / expected > 0.85


def _ends(sentences: list[str]) -> set[int]:
    ends, at = set(), 0
    for sentence in sentences:
        at += len("".join(sentence.split()))
        ends.add(at)
    return ends


@pytest.mark.parametrize(
    ("encoding", "told"),
    [("utf-8", 0), ("utf-8-sig", 0), ("utf-16", 0), ("cp1252", 1)],
)
def test_a_note_in_another_encoding(tmp_path: Path, encoding: str, told: int) -> None:
    text = "Temperature was 38° and the patient’s café visit went well. He left."
    (tmp_path / "note.txt").write_bytes(text.encode(encoding))
    (tmp_path / "message.txt").write_bytes("Why the café?".encode(encoding))
    notes: list[str] = []
    case = case_of(tmp_path / "note.txt", str(tmp_path / "message.txt"), notes=notes)
    assert (case.note, case.narrative) == (text, "Why the café?")
    assert len(notes) == 2 * told and all("Windows-1252" in line and "café" not in line for line in notes)


@pytest.mark.parametrize("raw", [b"\x89PNG\r\n\x1a\n\x00\x00", bytes(range(128, 256)), b"a\x81b", b"\xff\xfe\x00"])
def test_what_is_no_text_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "note.txt").write_bytes(raw)
    with pytest.raises(DataError, match=r"UTF-8|an image"):
        case_of(tmp_path / "note.txt", "Why?")


def test_offsets_are_of_the_files_own_text(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_bytes(b"\xef\xbb\xbfHe fell.\r\n\r\nHe  was seen\r\nat home.")
    case = case_of(tmp_path / "note.txt", "Why?")
    assert case.note is not None
    assert [case.note[s.start : s.end] for s in case.sentences] == ["He fell.", "He  was seen\r\nat home."]


def test_a_case_of_a_note_and_a_message(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("He had fever. He got better.")
    (tmp_path / "message.txt").write_text("Why fever?")
    for message in ("Why fever?", str(tmp_path / "message.txt")):
        case = case_of(note, message)
        assert (case.narrative, len(case.sentences), case.clinician_question) == ("Why fever?", 2, None)


@pytest.mark.parametrize(
    ("content", "message", "told"),
    [
        (b"", "Why?", "empty"),
        (b"\xff", "Why?", "UTF-8"),
        (b"A.", " ", "message"),
        (b"A.", b"Why caf\xe9?".decode("utf-8", "surrogateescape"), "the message is not UTF-8"),
    ],
)
def test_what_cannot_be_asked_gets_one_line(tmp_path: Path, content: bytes, message: str, told: str) -> None:
    (tmp_path / "note.txt").write_bytes(content)
    with pytest.raises(DataError, match=told):
        case_of(tmp_path / "note.txt", message)
