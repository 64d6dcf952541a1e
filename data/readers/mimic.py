"""MIMIC-IV-Note: discharge.csv(.gz) or radiology.csv(.gz), with a table of messages by note, stay or patient."""

from __future__ import annotations

from archehr.data.reading.note_table import NoteTable
from archehr.data.reading.reader import Reader, Source

_TABLE = NoteTable(
    roles={
        "id": ("note_id",),
        "stay": ("hadm_id",),
        "patient": ("subject_id",),
        "note": ("text",),
        "date": ("charttime",),
        "title": (),
        "type": ("note_type",),
    },
    keys=("id", "stay", "patient"),
    patient="patient",
)


def _reads(source: Source) -> bool:
    names = {name.lower() for name in source.columns}
    return names >= {"note_id", "subject_id", "text"} and "message" not in names


READER = Reader(
    name="mimic",
    what="discharge.csv(.gz) of MIMIC-IV-Note",
    reads=_reads,
    cases=_TABLE.cases,
)
