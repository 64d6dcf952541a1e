"""The table of exports: to add a form that another system takes, write its file and give it a line here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from archehr.data.case import DataError
from archehr.data.writers.answers import Answered, Made
from archehr.data.writers.fhir import write_fhir
from archehr.data.writers.omop import write_omop
from archehr.data.writers.table import write_parquet

EXPORTS: dict[str, Callable[[Path, Iterable[Answered], Made], Path]] = {
    "parquet": write_parquet,
    "fhir": write_fhir,
    "omop": write_omop,
}


def check_exports(names: Collection[str]) -> None:
    """Raises DataError for a name that is no export."""
    if unknown := [name for name in names if name not in EXPORTS]:
        raise DataError(f"--export {unknown[0]}: there are {', '.join(EXPORTS)}")
