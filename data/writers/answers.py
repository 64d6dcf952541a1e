"""What writers are given: answers with the sentences they cite, and how they were made."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from archehr.data.case import Case, DataError, Document, Sentence


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """One sentence of an answer. `confidence` (0 to 1) is the mean score of the sentences it cites, of at most 5: how
    much the program holds them to matter, and no probability; None where it cites none or none is scored."""

    text: str
    cited: tuple[Sentence, ...]
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """A case with the program's answer to it."""

    case: Case
    parts: tuple[AnswerPart, ...]

    @property
    def text(self) -> str:
        return " ".join(part.text for part in self.parts)

    def cited(self) -> list[tuple[Sentence, Document | None]]:
        """Every sentence cited, once, in the order of the note, with the note it stands in."""
        wanted = {s.id for part in self.parts for s in part.cited}
        return [(s, self.case.document_of(s.id)) for s in self.case.sentences if s.id in wanted]


@dataclass(frozen=True, slots=True)
class Made:
    """How the answers were made: data and program by hash, the LM, the version of archehr-dspy, and when."""

    data_sha256: str
    program: str
    program_hash: str
    lm: str | None
    version: str
    when: datetime


def place(sentence: Sentence, document: Document | None) -> tuple[int, int] | None:
    """Where a sentence stands in its note, in characters, where that is known."""
    if sentence.start is None or sentence.end is None:
        return None
    shift = document.start if document else 0
    return sentence.start - shift, sentence.end - shift


def make_folder(path: Path) -> Path:
    """The folder, its owner's alone. Raises DataError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be made ({error.strerror}); name another --out") from None
    return path


def csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A CSV table line by line, its header first."""
    table = csv.DictWriter(_Line(), columns, lineterminator="\n")
    yield table.writeheader()
    yield from map(table.writerow, rows)


class _Line:
    """What csv writes comes back from its call."""

    def write(self, line: str) -> str:
        return line


def listed(parts: Sequence[object]) -> str:
    """Ids or places in one cell of a table."""
    return " ".join(map(str, parts))
