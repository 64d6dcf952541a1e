"""Splits the raw text of a clinical note into Sentences, as the shared task does: headers are sentences too."""

from __future__ import annotations

import re
from pathlib import Path

from archehr.data.case import Case, DataError, Sentence

# A section header opens a line ("Brief Hospital Course:") or is a problem's name within one ("# Atrial fibrillation:").
_HEADER = re.compile(r"(?:^|(?<=[.!?:] ))(#\s?[^.:#]{1,60}:|(?<!# )^[A-Z][\w/&'()-]*(?: [\w/&'()-]+){0,6}:)(?=\s)")
_END = re.compile(r"""(?<![.!?])[.!?]+["')\]]*(?=\s)""")
_ABBREVIATIONS = frozenset(
    "dr mr mrs ms prof st vs no nos approx pt pts fig al e.g i.e etc q.d b.i.d t.i.d q.i.d p.o i.v p.r.n q.h.s a.m p.m "
    "inc dept jr sr cf resp temp wt ht mcg mg kg ml hr hrs min sec wk wks mo mos yr yrs s.c s.l i.m h.s b.p".split()
)
_FIELD_WORDS = 4
_ITEM = re.compile(r"\d{1,2}[.)]$|[-*•]$")


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


def split_note(text: str) -> tuple[Sentence, ...]:
    """Sentences with ids "1", "2", … and their paragraph's number; a blank line starts a paragraph.

    Decimal numbers, abbreviations ("Dr.", "q.d.", "No. 5"), initials and list numbers ("1. Pneumonia") end no
    sentence; a line break ends one where the next line opens a list item or a header, or the line is one itself.
    """
    found: list[Sentence] = []
    for number, paragraph in enumerate((p for p in re.split(r"\n\s*\n", text) if p.strip()), 1):
        for piece in _sentences(paragraph):
            found.append(Sentence(str(len(found) + 1), piece, str(number)))
    return tuple(found)


def _sentences(paragraph: str) -> list[str]:
    pieces: list[str] = []
    for line in _joined_lines(paragraph):
        start = 0
        for header in _HEADER.finditer(line):
            # "Service: Surgery" is one sentence; a header before running text is one by itself.
            if header[1].startswith("#") or len(line[header.end() :].split()) > _FIELD_WORDS:
                pieces += [*_at_full_stops(line[start : header.start()].strip()), header[1].strip()]
                start = header.end()
        pieces += _at_full_stops(line[start:].strip())
    return pieces


def _joined_lines(paragraph: str) -> list[str]:
    """Hard-wrapped lines put together again: a line goes on where the next begins in lower case."""
    joined: list[str] = []
    for line in (line.strip() for line in paragraph.splitlines()):
        if joined and line[:1].islower() and not joined[-1].endswith((".", "!", "?", ":")):
            joined[-1] += " " + line
        elif line:
            joined.append(line)
    return joined


def _at_full_stops(text: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    for end in _END.finditer(text):
        before, after = text[start : end.start() + 1], text[end.end() :].lstrip()
        if _ends_a_sentence(before, after):
            pieces.append(text[start : end.end()].strip())
            start = end.end()
    pieces.append(text[start:].strip())
    return [p for p in pieces if p]


def _ends_a_sentence(before: str, after: str) -> bool:
    if not after or after[0].islower():
        return False
    word = before.split()[-1]
    if _ITEM.fullmatch(word) and len(before.split()) == 1:
        return False
    bare = word.rstrip(".!?").lstrip("(").lower()
    if word.endswith(".") and (bare in _ABBREVIATIONS or re.fullmatch(r"[a-z]", bare)):
        # An abbreviation may close a sentence too: it does where a capitalised word of some length follows.
        return bare not in {"dr", "mr", "mrs", "ms", "prof", "st", "vs", "no", "nos", "approx", "fig", "pt"} and bool(
            re.match(r"[A-Z][a-z]{2,}", after)
        )
    return True
