"""The table of readers: to add a kind of source, write its file and give it a line here."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

from archehr.data import plugins
from archehr.data.case import DataError
from archehr.data.readers import fhir, mimic, omop, shared_task, table
from archehr.data.reading.reader import Reader, ReadOptions
from archehr.data.reading.rows import frame_rows, source_of
from archehr.data.reading.texts import refuse_other_standards

GROUP = "archehr.readers"  # the entry points by which other packages add theirs

# The first that knows a source reads it, so what is told for sure stands before what is told roughly.
READERS: tuple[Reader, ...] = (shared_task.READER, fhir.READER, mimic.READER, omop.READER, table.READER)


def is_source(path: Path) -> bool:
    """Does one of our readers know this existing path as DATA? A plain note is not. Raises DataError."""
    if not path.exists():
        raise DataError(f"{path}: cannot be read (no such file or folder); check the path")
    source = source_of(path)
    return any(reader.reads(source) for reader in READERS)


def frame_reader(frame: Any) -> Reader:
    """The reader of a pandas frame with a case a row."""
    return replace(table.READER, cases=lambda reading: table.row_cases(frame_rows(frame), reading, None))


def reader_of(path: Path, options: ReadOptions) -> Reader:
    """The reader of an existing source: the one that `options.format` names, else told by content. Raises DataError."""
    if options.format is not None:
        by_name = {reader.name: reader for reader in all_readers()}
        if options.format not in by_name:
            raise DataError(f"--format {options.format}: there are {', '.join(by_name)}")
        return by_name[options.format]
    source = source_of(path)
    for readers in (lambda: READERS, added_readers):  # others are loaded only for what ours do not know
        for reader in readers():
            if reader.reads(source):
                return reader
    refuse_other_standards(source.text, str(path))
    kind = "the folder holds nothing" if path.is_dir() else "this is nothing"
    raise DataError(
        f"{path}: {kind} that can be read as DATA; DATA is {what_data_is(all_readers())}; ask takes one note"
    )


def what_data_is(readers: tuple[Reader, ...] = READERS) -> str:
    """Every kind of source in words, for help and errors."""
    return "; ".join(reader.what for reader in readers)


def all_readers() -> tuple[Reader, ...]:
    """Ours, then those of other packages."""
    return (*READERS, *added_readers())


@functools.cache
def added_readers() -> tuple[Reader, ...]:
    """The readers of other packages. Raises DataError for an entry point that is none."""
    return tuple(reader for _, reader in plugins.added(GROUP, Reader))
