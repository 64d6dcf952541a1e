"""Tables of notes without messages, whose patients' messages are in another table: the way of MIMIC and OMOP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archehr.data.case import Case, DataError
from archehr.data.reading.building import Message, Note, Waiting, cases_of_patients
from archehr.data.reading.reader import Reading, ReadOptions
from archehr.data.reading.rows import Columns, rows_of, source_of
from archehr.data.reading.texts import text_of

MESSAGE_ROLES: Mapping[str, Sequence[str]] = {
    "message": ("patient_message", "narrative", "patient_narrative"),
    "question": ("clinician_question",),
    "case_id": (),
}


@dataclass(frozen=True, slots=True)
class NoteTable:
    """What a kind of note table calls its columns. `keys` are those a message may name its notes by, the narrowest
    first: one note, a stay, a patient; `patient` is the one whose notes belong together without messages."""

    roles: Mapping[str, Sequence[str]]
    keys: tuple[str, ...]
    patient: str

    def cases(self, reading: Reading) -> Iterator[Case]:
        """A case for every message, with the notes it names. Raises DataError."""
        options, path = reading.options, reading.path
        roles = {*self.roles, *MESSAGE_ROLES}
        if unknown := [role for role in options.columns if role not in roles]:
            raise DataError(f"--columns {unknown[0]}: here the columns are {', '.join(sorted(roles))}")
        columns = Columns(source_of(path).columns, self.roles, options.columns, str(path))
        for role in ("id", "note"):
            if role not in columns:
                raise DataError(f"{path}: no column {role}; name it by --columns {role}=…")
        messages, key = None, self.patient
        if options.message is None and (table := messages_beside(reading)) is not None:
            messages, key = read_messages(table, {k: self.roles[k] for k in self.keys}, reading)
        if key not in columns:
            raise DataError(f"{path}: no column {key}; name it by --columns {key}=…")
        return cases_of_patients(
            lambda: self._waiting(columns, key, reading), messages, reading, by_patient=key == self.patient
        )

    def _waiting(self, columns: Columns, key: str, reading: Reading) -> Iterator[Waiting]:
        for where, row in rows_of(reading.path, reading.options):
            if reading.options.wants(columns.text(row, "type"), columns.text(row, "title")):
                yield columns.text(row, key), _maker(columns, row, where, reading.options)


def _maker(columns: Columns, row: Mapping[str, Any], where: str, options: ReadOptions) -> Callable[[], Note]:
    def make() -> Note:
        note_id, text = columns.text(row, "id"), columns.as_it_is(row, "note")
        if not note_id:
            raise DataError(f"{where}: has no {columns.names['id']}; every note needs an id")
        if not text:
            raise DataError(f"{where}: has no note ({columns.names['note']} is empty)")
        if len(text) > options.max_bytes:
            raise DataError(f"{where}: a note of over {options.max_mb:g} MB; raise --max-mb if it really is one note")
        if text.lstrip().startswith(("{\\rtf", "<")):
            text = text_of(text.encode(), where, options.max_bytes)
        date, title, kind = (columns.text(row, role) or None for role in ("date", "title", "type"))
        return Note(note_id, text, date, title, kind)

    return make


def messages_beside(reading: Reading) -> Path | None:
    """The table of messages: the one that --messages names, else messages.csv (.tsv, …) beside the data, or None."""
    if reading.options.messages is not None:
        if not reading.options.messages.is_file():
            raise DataError(f"--messages {reading.options.messages}: no such file")
        return reading.options.messages
    folder = reading.path if reading.path.is_dir() else reading.path.parent
    tables = [p for suffix in (".csv", ".tsv", ".jsonl", ".parquet") if (p := folder / f"messages{suffix}").is_file()]
    return tables[0] if tables else None


def read_messages(
    path: Path, keys: Mapping[str, Sequence[str]], reading: Reading
) -> tuple[dict[str, list[Message]], str]:
    """Messages by what they name their notes by, and which of `keys` that is. Raises DataError."""
    mapped = {role: name for role, name in reading.options.columns.items() if role in MESSAGE_ROLES}
    messages: dict[str, list[Message]] = {}
    columns: Columns | None = None
    for where, row in rows_of(path, reading.options):
        columns = columns or Columns(row, {**MESSAGE_ROLES, **keys}, mapped, str(path))
        key = next((k for k in keys if k in columns), None)
        if key is None or "message" not in columns:
            what = "message" if key is not None else " or ".join(name for usual in keys.values() for name in usual[:1])
            raise DataError(f"{path}: no column {what}; the table of messages names by it whose message a row is")
        name, text = columns.text(row, key), columns.text(row, "message")
        if not name or not text:
            reading.bad(DataError(f"{where}: has no {columns.names[key] if not name else 'message'}"))
            continue
        own_messages = messages.setdefault(name, [])
        case_id = columns.text(row, "case_id") or (f"{name}-{len(own_messages) + 1}" if own_messages else name)
        own_messages.append(Message(text, case_id, columns.text(row, "question") or None))
    if columns is None:
        raise DataError(f"{path}: the table of messages has no rows")
    return messages, next(k for k in keys if k in columns)
