"""The NOTE table of the OMOP common data model (CSV or Parquet), with a table of messages by note, visit or person."""

from __future__ import annotations

from archehr.data.reading.note_table import NoteTable
from archehr.data.reading.reader import Reader, Source

_TABLE = NoteTable(
    roles={
        "id": ("note_id",),
        "stay": ("visit_occurrence_id",),
        "patient": ("person_id",),
        "note": ("note_text",),
        "date": ("note_datetime", "note_date"),
        "title": ("note_title",),
        "type": ("note_class_concept_id", "note_type_concept_id"),
    },
    keys=("id", "stay", "patient"),
    patient="patient",
)


def _reads(source: Source) -> bool:
    names = {name.lower() for name in source.columns}
    return names >= {"note_id", "person_id", "note_text"} and "message" not in names


READER = Reader(
    name="omop",
    what="the NOTE table of OMOP (.csv, .parquet)",
    reads=_reads,
    cases=_TABLE.cases,
)
