"""Tables with a case a row: CSV, TSV, JSON Lines, Parquet or a pandas frame, the notes in a column or in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archehr.data.case import Case, DataError, Gold, Relevance
from archehr.data.key import parse_citations
from archehr.data.reading.building import Message, Note, case_of_notes, known_ids
from archehr.data.reading.reader import Reader, Reading, Source
from archehr.data.reading.rows import TABLES, Columns, Row, rows_of
from archehr.data.reading.texts import read_text, refuse_other_standards, text_of

ROLES: Mapping[str, tuple[str, ...]] = {
    "id": ("case_id", "note_id"),
    "message": ("patient_message", "narrative", "patient_narrative"),
    "question": ("clinician_question",),
    "note": ("note_text", "note_excerpt", "text"),
    "file": ("path", "filename", "file_name", "note_file"),
    "evidence": ("citations",),
    "answer": ("clinician_answer",),
    "date": ("charttime", "note_date"),
    "title": ("note_title",),
    "type": ("note_type",),
}
DOCUMENTS = (".txt", ".rtf", ".html", ".htm", ".pdf", ".docx")


def _reads(source: Source) -> bool:
    if source.is_folder:
        return bool(_table_in(source.path)) or any(f.suffix.lower() in DOCUMENTS for f in source.path.iterdir())
    if source.suffix in TABLES or source.head.startswith(b"PAR1"):
        return True
    names = {name.lower() for name in source.columns}
    return len(names) > 1 and any(names & {role, *ROLES[role]} for role in ("note", "message", "file"))


def _table_in(folder: Path) -> list[Path]:
    return sorted(
        f for f in folder.iterdir() if f.is_file() and Path(f.name.removesuffix(".gz")).suffix.lower() in TABLES
    )


def _cases(reading: Reading) -> Iterator[Case]:
    path = reading.path
    if path.is_dir():
        tables = _table_in(path)
        if len(tables) != 1:
            what = f"has {len(tables)} tables; name one" if tables else "has notes but no table of their messages"
            raise DataError(f"{path}: the folder {what}")
        path = tables[0]
    return row_cases(rows_of(path, reading.options), reading, path.parent)


def row_cases(rows: Iterable[Row], reading: Reading, folder: Path | None) -> Iterator[Case]:
    """A case for every row; `folder` is where files that rows name are. Raises DataError."""
    table: _Table | None = None
    for number, (where, row) in enumerate(rows, 1):
        table = table or _Table.of(row, reading, folder)
        try:
            yield table.case(row, where, number)
        except DataError as error:
            reading.bad(error)
    if table is None:
        raise DataError(f"{reading.path}: the table has no rows")


@dataclass(frozen=True, slots=True)
class _Table:
    """How the rows of one table are read."""

    columns: Columns
    reading: Reading
    folder: Path | None

    @classmethod
    def of(cls, first: Mapping[str, Any], reading: Reading, folder: Path | None) -> _Table:
        mapped = reading.options.columns
        if unknown := [role for role in mapped if role not in ROLES]:
            raise DataError(f"--columns {unknown[0]}: a table's columns are {', '.join(ROLES)}")
        columns = Columns(first, ROLES, mapped, str(reading.path), only_one=("message", "note"))
        instead = {"message": reading.options.message is not None, "note": "file" in columns or "id" in columns}
        for role, other in instead.items():
            if role not in columns and not other:
                raise DataError(
                    f"{reading.path}: no column {role}; name it by --columns {role}=… (the table has "
                    f"{', '.join(map(str, list(first)[:20]))})"
                )
        if "id" not in columns:
            reading.tell(f"{reading.path}: has no column id; the cases are called by their rows' numbers")
        return cls(columns, reading, folder)

    def case(self, row: Mapping[str, Any], where: str, number: int) -> Case:
        """The case of a row. Raises DataError."""
        columns = self.columns
        case_id = columns.text(row, "id") or ("" if "id" in columns else str(number))
        if not case_id:
            raise DataError(f"{where}: has no {columns.names['id']}; every case needs an id")
        text = columns.text(row, "message") or self.reading.options.message
        if not text:
            raise DataError(f"{where}: has no message ({columns.names['message']} is empty)")
        message = Message(text, case_id, columns.text(row, "question") or None)
        note, url = self._note(row, where, case_id)
        date, title, kind = (columns.text(row, role) or None for role in ("date", "title", "type"))
        case = case_of_notes(message, [Note(case_id, note, date, title, kind, url)])
        return _with_gold(case, columns, row, where)

    def _note(self, row: Mapping[str, Any], where: str, case_id: str) -> tuple[str, str | None]:
        """The note's text, and the file it is in where it is in one."""
        limit = self.reading.options.max_bytes
        cell = self.columns.as_it_is(row, "note")
        if len(cell) > limit:
            raise DataError(f"{where}: a note of over {limit / 1e6:g} MB; raise --max-mb if it really is one note")
        named = self.columns.text(row, "file") or (cell.strip() if _is_file_name(cell) else "")
        if not named and cell:
            if cell.lstrip().startswith(("{\\rtf", "<")):
                return text_of(cell.encode(), where, limit), None
            refuse_other_standards(cell, where)
            return cell, None
        if not named and "note" in self.columns:
            raise DataError(f"{where}: has no note ({self.columns.names['note']} is empty)")
        return self._file(named, where, case_id)

    def _file(self, named: str, where: str, case_id: str) -> tuple[str, str]:
        if self.folder is None:
            raise DataError(f"{where}: names a file, which a frame cannot; give the note's text")
        names = [named] if named else [case_id + suffix for suffix in DOCUMENTS]
        paths = [self.folder / name for name in names]
        file = next((path for path in paths if path.is_file()), None)
        if file is None:
            what = "the note's file it names is not there" if named else f"no file of its id ({names[0]}, …)"
            raise DataError(f"{where}: {what}; it is looked for in {self.folder}")
        if not file.resolve().is_relative_to(self.folder.resolve()):
            raise DataError(f"{where}: names a file outside of the table's folder; put it beside the table")
        return read_text(file, self.reading.options.max_bytes, self.reading.tell), str(file.relative_to(self.folder))


def _is_file_name(cell: str) -> bool:
    return len(cell) < 256 and "\n" not in cell and cell.strip().lower().endswith(DOCUMENTS)


def _with_gold(case: Case, columns: Columns, row: Mapping[str, Any], where: str) -> Case:
    answer = columns.text(row, "answer") or None
    relevance = None
    if "evidence" in columns:
        value = row.get(columns.names["evidence"])
        try:
            cited = parse_citations(value if isinstance(value, (list, tuple, int, type(None))) else str(value))
        except ValueError as error:
            raise DataError(f"{where}: {error}; evidence is a list of sentence ids such as 1,4") from None
        if cited:
            wanted = known_ids(case, cited, where)
            labels = {True: Relevance.ESSENTIAL, False: Relevance.NOT_RELEVANT}
            relevance = {s.id: labels[s.id in wanted] for s in case.sentences}
    return replace(case, gold=Gold(relevance, answer)) if relevance or answer else case


READER = Reader(
    name="table",
    what="a table with a case a row (.csv, .tsv, .jsonl, .parquet), or a folder of notes with one",
    reads=_reads,
    cases=_cases,
)
