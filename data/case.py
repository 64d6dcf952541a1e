"""What a case is: frozen records that every room shares. Imports nothing but the standard library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Relevance(StrEnum):
    """Label of one note sentence in the official key."""

    ESSENTIAL = "essential"
    SUPPLEMENTARY = "supplementary"
    NOT_RELEVANT = "not-relevant"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the note excerpt; headers such as "Brief Hospital Course:" are sentences too.

    `Case.note[start:end]` is the sentence up to white space, where it is known where in the note it stands.
    """

    id: str
    text: str
    paragraph_id: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """One sentence of the clinician's answer. `citations` is None where the data does not label it, () where it
    is labelled as supported by nothing."""

    id: str
    text: str
    citations: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Gold:
    """What the key says of a case. Every part may be missing (None, or an empty tuple of answer sentences). `remark`
    is what a reviewer wrote on a program's answer, in keys that archehr review exports."""

    relevance: Mapping[str, Relevance] | None = None
    answer: str | None = None
    answer_sentences: tuple[AnswerSentence, ...] = ()
    remark: str | None = None

    @property
    def essential(self) -> frozenset[str]:
        """Ids labelled essential (strict gold of subtask 2)."""
        return self._with(Relevance.ESSENTIAL)

    @property
    def supplementary(self) -> frozenset[str]:
        """Ids labelled supplementary."""
        return self._with(Relevance.SUPPLEMENTARY)

    @property
    def links(self) -> frozenset[tuple[str, str]] | None:
        """(answer id, note id) pairs (gold of subtask 4), or None where no answer sentence is labelled."""
        if not any(s.citations is not None for s in self.answer_sentences):
            return None
        return frozenset((s.id, c) for s in self.answer_sentences for c in s.citations or ())

    def _with(self, wanted: Relevance) -> frozenset[str]:
        return frozenset(i for i, label in (self.relevance or {}).items() if label is wanted)


@dataclass(frozen=True, slots=True)
class Document:
    """One note of a case: `Case.note[start:end]`. `date` is ISO 8601 as the source has it, `type` its code of the kind
    of note (LOINC in FHIR), `url` where it is (DocumentReference/2, a file)."""

    id: str
    start: int
    end: int
    date: str | None = None
    title: str | None = None
    type: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A patient's question and the note to answer it from. Only `id` is always there: the public subtask-1 file,
    for one, has narratives and nothing else, so a stage that lacks its input must say so."""

    id: str
    narrative: str = ""
    question_phrases: tuple[str, ...] = ()
    clinician_question: str | None = None
    specialty: str | None = None
    note: str | None = None
    sentences: tuple[Sentence, ...] = ()
    answer_sentences: tuple[AnswerSentence, ...] = ()
    gold: Gold | None = field(default=None)
    documents: tuple[Document, ...] = ()
    patient: str | None = None  # by the source's own id, where it says whose the notes are

    def document_of(self, sentence_id: str) -> Document | None:
        """The note a sentence stands in, where the case knows its notes: ids are "note:sentence" if it has several."""
        if len(self.documents) < 2:
            return self.documents[0] if self.documents else None
        number = sentence_id.partition(":")[0]
        return (
            self.documents[int(number) - 1] if number.isdecimal() and 0 < int(number) <= len(self.documents) else None
        )

    def __repr__(self) -> str:
        """Without the texts: DSPy logs the examples that failed, and notes do not belong in a log."""
        return f"Case({self.id!r}, {len(self.sentences)} sentences)"


class DataError(ValueError):
    """Bad input. The message is one line that names file, case, element and remedy, and holds no note text."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))  # a path or an id may hold a line break


def shown_id(value: object) -> str:
    """An id as an error may print it: marked where it only looks right, and never more than one word."""
    if not isinstance(value, str):
        return f"{str(value)[:12]} (not a string)"
    if len(value) > 64 or len(value.split()) > 1:
        return f"(a text of {len(value)} characters)"
    odd = not value or value != value.strip() or not value.isprintable()
    return repr(value) if odd else value


def shown_ids(ids: Iterable[str], most: int = 8) -> str:
    """Ids for an error: the first `most`, and how many more."""
    listed = list(ids)
    return ", ".join(map(shown_id, listed[:most])) + (f" and {len(listed) - most} more" if len(listed) > most else "")
