"""Reads a clinical note and a patient's message from text files, as one Case."""

from __future__ import annotations

from pathlib import Path

from data.case import Case, DataError
from data.splitter import split_note


def case_of(note: Path, message: str, question: str | None = None) -> Case:
    """One case from a note's text file and a patient's message (its text, or a file holding it). Raises DataError."""
    text = _read_text(note)
    sentences = split_note(text)
    if not sentences:
        raise DataError(f"{note}: the note is empty; it should hold the note's text")
    narrative = (_read_text(Path(message)) if _is_file(message) else message).strip()
    if not narrative:
        raise DataError("the message is empty; give the patient's words or a file that holds them")
    if any("\ud800" <= c <= "\udfff" for c in narrative):  # what the shell's bytes become that are not UTF-8
        raise DataError("the message is not UTF-8 text; save it as UTF-8 in a file and name that")
    return Case(id=note.stem, narrative=narrative, clinician_question=question, note=text, sentences=sentences)


def _is_file(message: str) -> bool:
    try:
        return Path(message).is_file()
    except (OSError, ValueError):  # too long for a path, or with a NUL in it: a message
        return False


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8 text; save it as UTF-8") from None
