"""Reads a clinical note and a patient's message from text files, as one Case."""

from __future__ import annotations

from pathlib import Path

from archehr.data.case import Case, DataError
from archehr.data.splitter import split_note

_MOST_FOREIGN = 0.3  # of the characters of a text that is not binary


def case_of(note: Path, message: str, question: str | None = None, *, notes: list[str] | None = None) -> Case:
    """One case from a note's text file and a patient's message (its text, or a file holding it).

    What had to be done to read them (an encoding guessed) is appended to `notes`. Raises DataError.
    """
    told = notes if notes is not None else []
    text = _read_text(note, told)
    sentences = split_note(text)
    if not sentences:
        raise DataError(f"{note}: the note is empty; it should hold the note's text")
    narrative = (_read_text(Path(message), told) if _is_file(message) else message).replace("\r\n", "\n").strip()
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


def _read_text(path: Path, notes: list[str]) -> str:
    """The text of a file in UTF-8, in UTF-16 with its byte order mark, or else in Windows-1252, which `notes` tells."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    try:
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return raw.decode("utf-16")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = _windows_text(raw)
    if text is None:
        raise DataError(f"{path}: not UTF-8 text; save it as UTF-8")
    notes.append(f"{path}: not UTF-8; read as Windows-1252: check its accents and signs, or save it as UTF-8")
    return text


def _windows_text(raw: bytes) -> str | None:
    """The bytes read as Windows-1252, if they can be text: letters that are mostly ASCII, no control characters."""
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        return None
    foreign = sum(not c.isascii() for c in text)
    plain = all(c.isprintable() or c.isspace() for c in text)
    return text if plain and foreign < _MOST_FOREIGN * len(text) else None
