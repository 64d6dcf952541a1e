"""The journal: what was saved is there again, whatever happened; a torn line is told, a damaged one refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from archehr.data.case import DataError
from archehr.review.actions import CHANGE
from archehr.review.history import Open, Pause
from archehr.review.journal import Entry, Journal, journal_path, read_journal, reviewers
from archehr.review.labels import Labels

OPEN = Open(text="0", start=Labels(marks={"1": None, "2": None}))


def entry(step: object, case: str = "7", seconds: float = 0.0) -> Entry:
    return Entry(at="2026-01-01T00:00:00+00:00", case=case, seconds=seconds, step=step)


def mark(sentence: str, value: str) -> object:
    return CHANGE.validate_python({"do": "mark", "sentence": sentence, "value": value})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return journal_path(tmp_path, "ann")


def write_some(path: Path) -> bytes:
    with Journal(path) as journal:
        journal.append([entry(OPEN), entry(mark("1", "essential"), seconds=2.5)])
        journal.append([entry(mark("2", "supplementary"))])
        journal.append([entry(Pause(), seconds=4.0)])
    return path.read_bytes()


def test_what_was_appended_is_there_again_with_the_time_spent(path: Path) -> None:
    write_some(path)
    with Journal(path) as journal:
        review = journal.reviews["7"]
        assert review.labels.marks == {"1": "essential", "2": "supplementary"}
        assert (review.seconds, review.version, journal.notices) == (6.5, 2, [])


def test_folder_and_file_are_for_their_owner_alone(path: Path) -> None:
    write_some(path)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {p.name: p.stat().st_mode & 0o777 for p in path.parent.iterdir()}["ann.jsonl"] == 0o600


def test_torn_anywhere_the_journal_is_read_up_to_its_last_whole_line(path: Path) -> None:
    raw = write_some(path)
    for cut in range(len(raw)):
        path.write_bytes(raw[:cut])
        notices: list[str] = []
        whole = raw[:cut].count(b"\n")
        found = read_journal(path, notices)
        assert found["7"].version == max(0, min(whole - 1, 2)) if whole else found == {}
        assert bool(notices) is (raw[:cut].rfind(b"\n") + 1 < cut)
        assert path.read_bytes() == raw[:cut], "reading changes nothing"


def test_a_torn_line_is_told_cut_off_and_written_after(path: Path) -> None:
    raw = write_some(path)
    path.write_bytes(raw[:-5])
    with Journal(path) as journal:
        assert "torn" in journal.notices[0]
        journal.append([entry(mark("1", "not-relevant"))])
    assert read_journal(path, notices := [])["7"].labels.marks["1"] == "not-relevant" and notices == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [b"{}", *lines[1:]],
        lambda lines: [lines[0], b"\xff\xfe", *lines[2:]],
        lambda lines: lines[1:],  # an action on a case that was never opened
        lambda lines: [lines[0], lines[0], *lines[1:]],
        lambda lines: [lines[0], lines[1].replace(b'"1"', b'"9"'), *lines[2:]],
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_lost_by_looking(path: Path, damage: object) -> None:
    lines = write_some(path).splitlines()
    path.write_bytes(b"\n".join(damage(lines)) + b"\n")  # type: ignore[operator]
    raw = path.read_bytes()
    for read in (lambda: read_journal(path, []), lambda: Journal(path).__enter__()):
        with pytest.raises(DataError, match=r"ann.jsonl: line \d is damaged"):
            read()
    assert path.read_bytes() == raw


def test_a_journal_is_open_for_one_process_at_a_time(path: Path) -> None:
    with Journal(path), pytest.raises(DataError, match=r"ann.jsonl: in use by another archehr review"), Journal(path):
        pass
    with Journal(path):
        pass


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "review").write_text("a file where the folder is to be")
    with pytest.raises(DataError, match="cannot be written"), Journal(journal_path(tmp_path, "ann")):
        pass


def test_a_full_disk_takes_nothing_and_leaves_the_journal_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = write_some(path)
    write, calls = os.write, []

    def full(handle: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write(handle, data[:10])

    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(DataError, match="No space left on device"):
            journal.append([entry(mark("1", "not-relevant"))])
        monkeypatch.undo()
        assert path.read_bytes() == raw
        journal.append([entry(mark("1", "not-relevant"))])
    assert read_journal(path, [])["7"].version == 3


@pytest.mark.parametrize(
    "name", ["", "../ann", "a/b", ".hidden", "ann.", "x" * 41, "a\nb", "adjudicated", "Adjudicated"]
)
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="--reviewer"):
        journal_path(tmp_path, name)


def test_reviewers_are_those_with_a_journal(tmp_path: Path) -> None:
    for name in ("zoë", "Dr. Müller", "ann"):
        write_some(journal_path(tmp_path, name))
    (tmp_path / "review/adjudicated.jsonl").touch()
    assert reviewers(tmp_path) == ["Dr. Müller", "ann", "zoë"]
