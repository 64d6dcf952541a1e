"""predictions.csv and predictions.parquet: a row for every sentence of every answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from archehr.data.case import DataError
from archehr.data.files import private_file, write_private
from archehr.data.writers.answers import Answered, AnswerPart, Made, csv_lines, listed, place

NAME = "predictions"
COLUMNS = ("case_id", "sentence", "text", "cited", "notes", "places", "confidence")
_AT_ONCE = 10_000  # rows of a Parquet file in memory


def rows(answers: Iterable[Answered]) -> Iterator[dict[str, Any]]:
    """A row for every answer sentence.

    `cited` are the ids of the note sentences it cites and `notes` the ids of the notes they stand in, separated by
    spaces; `places` are those sentences' characters in their notes ("12-40"), where known.
    """
    for answered in answers:
        for number, part in enumerate(answered.parts, 1):
            yield {
                "case_id": answered.case.id,
                "sentence": number,
                "text": part.text,
                "cited": listed([s.id for s in part.cited]),
                "notes": listed(_notes(answered, part)),
                "places": listed(_places(answered, part)),
                "confidence": part.confidence,
            }


def _notes(answered: Answered, part: AnswerPart) -> list[str]:
    documents = (answered.case.document_of(s.id) for s in part.cited)
    return list(dict.fromkeys(document.id for document in documents if document))


def _places(answered: Answered, part: AnswerPart) -> list[str]:
    places = (place(s, answered.case.document_of(s.id)) for s in part.cited)
    return [f"{at[0]}-{at[1]}" for at in places if at]


def to_frame(answers: Iterable[Answered]) -> Any:
    """The rows as a pandas frame."""
    import pandas as pd

    return pd.DataFrame(list(rows(answers)), columns=list(COLUMNS))


def write_csv(folder: Path, answers: Iterable[Answered]) -> Path:
    """Write predictions.csv, 0600. Raises DataError."""
    path = folder / f"{NAME}.csv"
    write_private(path, csv_lines(COLUMNS, rows(answers)))
    return path


def write_parquet(folder: Path, answers: Iterable[Answered], origin: Made) -> Path:
    """Write predictions.parquet, 0600. Raises DataError."""
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise DataError("--export parquet needs the extra `files`: pip install 'archehr-dspy[files]'") from None
    kinds = {"sentence": pa.int64(), "confidence": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    path = folder / f"{NAME}.parquet"
    with private_file(path) as out, ParquetWriter(out, schema) as table:
        remaining = rows(answers)
        while batch := list(islice(remaining, _AT_ONCE)):
            table.write_table(pa.Table.from_pylist(batch, schema))
    return path
