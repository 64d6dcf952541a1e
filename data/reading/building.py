"""Makes cases of notes: several notes of one patient become one case, newest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from archehr.data.case import Case, DataError, Document, Sentence, shown_id, shown_ids
from archehr.data.reading.reader import Reading
from archehr.data.splitter import split_note

_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Note:
    """One note as a source holds it; `id` is the source's own, `date` ISO 8601 or as much of it as is known."""

    id: str
    text: str
    date: str | None = None
    title: str | None = None
    type: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What a patient asks; `case_id` is what the case will be called."""

    text: str
    case_id: str
    question: str | None = None


def case_of_notes(message: Message, notes: Sequence[Note], patient: str | None = None) -> Case:
    """The case of a message and its patient's notes.

    One note keeps its sentences' plain ids. Of several the newest is note 1, and its sentences "1:1", "1:2", …; before
    them stands "1:0", a line with its title and date, so that every stage and the report know which note is which.
    """
    texts: list[str] = []
    sentences: list[Sentence] = []
    documents: list[Document] = []
    start = 0
    for number, note in enumerate(_newest_first(notes), 1):
        pieces = [_moved(s, start) for s in split_note(note.text)]
        if len(notes) > 1:
            heading = Sentence("0", f"{_heading(note, number)}:", "0")
            pieces = [
                replace(s, id=f"{number}:{s.id}", paragraph_id=f"{number}:{s.paragraph_id}") for s in (heading, *pieces)
            ]
        sentences += pieces
        end = start + len(note.text)
        documents.append(Document(note.id, start, end, note.date, note.title, note.type, note.url))
        texts.append(note.text)
        start = end + len(_BETWEEN)
    return Case(
        id=message.case_id,
        narrative=message.text,
        clinician_question=message.question,
        note=_BETWEEN.join(texts),
        sentences=tuple(sentences),
        documents=tuple(documents),
        patient=patient,
    )


def _moved(sentence: Sentence, by: int) -> Sentence:
    if sentence.start is None or sentence.end is None:
        return sentence
    return replace(sentence, start=sentence.start + by, end=sentence.end + by)


def _heading(note: Note, number: int) -> str:
    parts = [" ".join(part.split()) for part in (note.title, (note.date or "")[:10]) if part]
    return ", ".join(parts) or f"Note {number}"


def _newest_first(notes: Sequence[Note]) -> list[Note]:
    """By date; undated notes come last, and what is equal keeps the order of the source."""
    return sorted(notes, key=lambda note: when(note.date) or datetime.min.replace(tzinfo=UTC), reverse=True)


def when(date: str | None) -> datetime | None:
    """An ISO 8601 date or time, also "2024" and "2024-05", in UTC where it names no zone; None for anything else."""
    text = (date or "").strip()
    try:
        time = datetime.fromisoformat(text + "-01-01"[(len(text) - 4) // 3 * 3 :] if len(text) in (4, 7) else text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


# A note of some patient (or stay) and how to make it; None where it is not to be read, which the maker has told.
Waiting = tuple[str, Callable[[], Note | None]]


def cases_of_patients(
    notes: Callable[[], Iterable[Waiting]],
    messages: Mapping[str, Sequence[Message]] | None,
    reading: Reading,
    *,
    by_patient: bool = True,
) -> Iterator[Case]:
    """A case for every message, with all notes of its patient. Without messages, the one of the options is everyone's.

    `by_patient` says that notes wait under their patient, and not under a stay or their own id. `notes` is gone through
    twice, first to count: so a case is made when its last note comes by, and no more than the
    notes of unfinished patients is in memory.
    """
    if messages is None and reading.options.message is None:
        raise DataError(f"{reading.path}: holds notes and no patient's message; name a table of messages by --messages")
    counted = Counter(key for key, _ in notes())
    if messages is not None:
        for key in (key for key in messages if key not in counted):
            reading.bad(
                DataError(f"{reading.path}: no note for the message of {shown_id(key)}; remove it or add its note")
            )
        if spare := sum(n for key, n in counted.items() if key not in messages):
            reading.tell(f"{reading.path}: {spare} notes have no message and were left out")
    gathered: dict[str, list[Note]] = {}
    for key, make in notes():
        own_messages = [Message(reading.options.message or "", key)] if messages is None else messages.get(key, ())
        if not own_messages:
            continue
        own_notes = gathered.setdefault(key, [])
        if (note := _note_of(make, reading)) is not None:
            own_notes.append(note)
        counted[key] -= 1
        if not counted[key]:
            yield from _finished(key, gathered.pop(key), own_messages, reading, by_patient)


def _note_of(make: Callable[[], Note | None], reading: Reading) -> Note | None:
    try:
        return make()
    except DataError as error:
        reading.bad(error)
        return None


def _finished(
    key: str, notes: Sequence[Note], messages: Sequence[Message], reading: Reading, by_patient: bool
) -> Iterator[Case]:
    different: dict[str, Note] = {}
    for note in sorted(notes, key=lambda note: (note.url or "").startswith("DiagnosticReport/")):
        different.setdefault(note.text, note)  # a document that a report repeats stays the document
    if len(different) < len(notes):
        reading.tell(f"{reading.path}: notes of one patient with the same text were read once")
    if not different:
        reading.bad(DataError(f"{reading.path}: {shown_id(key)} has no note that can be read"))
        return
    for message in messages:
        yield case_of_notes(message, list(different.values()), key if by_patient else None)


def known_ids(case: Case, wanted: Sequence[str], where: str) -> tuple[str, ...]:
    """The ids themselves. Raises DataError for one that no sentence of the case has."""
    ids = {s.id for s in case.sentences}
    if unknown := [i for i in wanted if i not in ids]:
        raise DataError(
            f"{where}: evidence names {shown_ids(unknown)}, which the note does not have (it has {len(ids)})"
        )
    return tuple(wanted)
