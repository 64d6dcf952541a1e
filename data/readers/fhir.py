"""FHIR R4 as JSON: a Bundle of one patient, NDJSON of many, or a folder of either."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from archehr.data.case import Case
from archehr.data.readers.fhir_source import fhir_files
from archehr.data.reading.reader import Reader, Reading, Source


def _reads(source: Source) -> bool:
    if source.is_folder:
        return any(True for _ in fhir_files(source.path))
    return source.text.lstrip().startswith("{") and '"resourceType"' in source.text


def _cases(reading: Reading) -> Iterator[Case]:
    from archehr.data.readers.fhir_notes import fhir_cases  # its models take time to build, which help has no need of

    return fhir_cases(reading)


def _title(path: Path) -> str:
    return path.name if path.is_dir() else path.name.removesuffix(".gz").rsplit(".", 1)[0]


READER = Reader(
    name="fhir",
    what="FHIR R4 as JSON: a Bundle, NDJSON, or a folder of them",
    reads=_reads,
    cases=_cases,
    title=_title,
)
