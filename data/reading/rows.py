"""Rows of a table, one at a time: CSV, TSV, JSON Lines, Parquet, each also packed by gzip, and pandas frames."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from archehr.data.case import DataError
from archehr.data.files import unpacked_head
from archehr.data.reading.reader import ReadOptions, Source, suffix_of

Row = tuple[str, Mapping[str, Any]]  # where it stands ("notes.csv: row 3"), and its cells by column
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_DELIMITERS = ",\t;|"
_BATCH = 64  # rows of a Parquet file in memory at once


def source_of(path: Path) -> Source:
    """What readers tell an existing path by. Raises DataError where it cannot be opened."""
    head = unpacked_head(path)
    return Source(path, head, tuple(_columns(path, head)))


def _columns(path: Path, head: bytes) -> Sequence[str]:
    if head.startswith(b"PAR1"):
        return [str(name) for name in _parquet(path).schema_arrow.names]
    text = Source(path, head).text
    if text.lstrip().startswith("{"):
        return _first_object(text)
    first = text.lstrip("\r\n").split("\n", 1)[0]
    try:
        return _cells(first, delimiter_of(first))
    except csv.Error:
        return ()


def _first_object(text: str) -> Sequence[str]:
    try:
        record, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        return ()
    return [str(name) for name in record]


def delimiter_of(header: str) -> str:
    """The delimiter that cuts a header line into most cells."""
    return max(_DELIMITERS, key=lambda delimiter: len(_cells(header, delimiter)))


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line.rstrip("\r")], delimiter=delimiter), [])]


def rows_of(path: Path, options: ReadOptions) -> Iterator[Row]:
    """The rows of a table file. Raises DataError for damage that leaves no telling where the next row begins."""
    kind = suffix_of(path)
    head = unpacked_head(path)
    if head.startswith(b"PAR1"):
        return _parquet_rows(path)
    if kind in (".jsonl", ".ndjson") or Source(path, head).text.lstrip().startswith("{"):
        return _json_rows(path, options)
    return _csv_rows(path, options)


def frame_rows(frame: Any) -> Iterator[Row]:
    """The rows of a pandas data frame; missing values are None. Raises DataError for half of a character."""
    import pandas as pd

    names = [str(name) for name in frame.columns]
    for number, values in enumerate(frame.itertuples(index=False, name=None), 1):
        cells = [None if pd.api.types.is_scalar(v) and pd.isna(v) else v for v in values]
        try:
            "".join(cell for cell in cells if isinstance(cell, str)).encode()
        except UnicodeEncodeError:
            raise DataError(f"the frame: row {number}: half of a character (a lone surrogate); mend it") from None
        yield f"the frame: row {number}", dict(zip(names, cells, strict=True))


# ------------------------------------------------------------------------------------------------- files of text


def open_text(path: Path, options: ReadOptions) -> IO[str]:
    """A text file in UTF-8, or in UTF-16 with its mark, packed or not; a packed one may not unpack without measure."""
    encoding = "utf-16" if unpacked_head(path)[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    raw: Any = path.open("rb")
    if raw.peek(2)[:2] == b"\x1f\x8b":
        raw = io.BufferedReader(_Measured(path, raw, 100 * path.stat().st_size + options.max_bytes))
    return io.TextIOWrapper(raw, encoding=encoding, newline="")


class _Measured(io.RawIOBase):
    """A gzip stream that stops with DataError beyond `limit` bytes."""

    def __init__(self, path: Path, packed: IO[bytes], limit: int) -> None:
        self._path, self._stream, self._left = path, gzip.GzipFile(fileobj=packed), limit
        self._packed = packed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = self._stream.readinto(buffer)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError(f"{self._path}: cut short or no whole gzip file ({type(error).__name__})") from None
        self._left -= count
        if self._left < 0:
            raise DataError(f"{self._path}: unpacks to over a hundred times its size; raise --max-mb if that is right")
        return int(count)

    def close(self) -> None:
        self._stream.close()
        self._packed.close()
        super().close()


@dataclass(slots=True)
class _At:
    """The last row that was whole, for what goes wrong after it."""

    path: Path
    row: int = 0

    def fault(self, what: str) -> DataError:
        return DataError(f"{self.path}: row {self.row + 1}: {what}")


def _csv_rows(path: Path, options: ReadOptions) -> Iterator[Row]:
    at = _At(path)
    # A cell over the limit is the reader's matter, row by row; one far over it is a quote that nobody closed.
    csv.field_size_limit(min(8 * options.max_bytes, 2**31 - 1))
    with open_text(path, options) as stream:
        try:
            header = stream.readline()
            while header and not header.strip():
                header = stream.readline()
            delimiter = delimiter_of(header.rstrip("\n"))
            names = _cells(header.rstrip("\n"), delimiter)
            if len(set(names)) < len(names):
                raise DataError(f"{path}: two columns have the same name; rename one")
            for cells in csv.reader(stream, delimiter=delimiter, strict=True):
                if not cells:
                    continue
                if len(cells) != len(names):
                    raise at.fault(f"has {len(cells)} cells where the header has {len(names)}; is a quote missing?")
                at.row += 1
                yield f"{path}: row {at.row}", dict(zip(names, cells, strict=True))
        except csv.Error as error:
            what = "a cell that is too long" if "limit" in str(error) else "not well-formed CSV"
            raise at.fault(f"{what}; is a quote not closed?") from None
        except UnicodeDecodeError:
            raise at.fault("not UTF-8 text from here on; save the table as UTF-8") from None


def json_lines(path: Path, options: ReadOptions) -> Iterator[tuple[str, Any]]:
    """The values of a file of JSON lines, each with where it stands. Raises DataError."""
    at = _At(path)
    longest = 8 * options.max_bytes
    with open_text(path, options) as stream:
        try:
            while line := stream.readline(longest):
                if len(line) == longest:
                    raise at.fault("a line that is too long; JSON Lines hold one object a line")
                if line.strip():
                    value = json.loads(line)
                    if "\\u" in line:  # half of a surrogate pair can be read, but never written
                        json.dumps(value, ensure_ascii=False).encode()
                    at.row += 1
                    yield f"{path}: row {at.row}", value
        except DataError:
            raise
        except json.JSONDecodeError as error:
            raise at.fault(f"not valid JSON ({error.msg}); JSON Lines hold one object a line") from None
        except UnicodeDecodeError:
            raise at.fault("not UTF-8 text from here on; save the file as UTF-8") from None
        except UnicodeEncodeError:
            raise at.fault("half of a character (a lone surrogate); save the file as UTF-8") from None
        except (RecursionError, ValueError) as error:
            raise at.fault(f"JSON that cannot be read ({type(error).__name__})") from None


def _json_rows(path: Path, options: ReadOptions) -> Iterator[Row]:
    for where, value in json_lines(path, options):
        if not isinstance(value, dict):
            raise DataError(f"{where}: is no JSON object; JSON Lines hold one object a line")
        yield where, value


# ---------------------------------------------------------------------------------------------------- Parquet


def _parquet(path: Path) -> Any:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError(f"{path}: Parquet needs the extra `files`: pip install 'archehr-dspy[files]'") from None
    try:
        return ParquetFile(path)
    except (ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: a damaged Parquet file, perhaps cut short ({type(error).__name__})") from None


def _parquet_rows(path: Path) -> Iterator[Row]:
    number = 0
    try:
        for batch in _parquet(path).iter_batches(_BATCH):
            for row in batch.to_pylist():
                number += 1
                yield f"{path}: row {number}", row
    except (OSError, ValueError) as error:  # pyarrow's own errors are both
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: row {number + 1}: a damaged Parquet file ({type(error).__name__})") from None


# ---------------------------------------------------------------------------------------------------- columns


class Columns:
    """Finds cells by our names of columns: as `options.columns` maps them, else by the names that are usual.

    `roles` maps our name to the usual ones, the likelier first. Raises DataError for a mapped column that is not
    there, and where two columns could be one of the roles `only_one`.
    """

    def __init__(
        self,
        header: Iterable[str],
        roles: Mapping[str, Sequence[str]],
        mapped: Mapping[str, str],
        where: str,
        only_one: Collection[str] = (),
    ) -> None:
        names = list(header)
        lower = {name.lower(): name for name in names}
        self.names: dict[str, str] = {}
        self._next_best: dict[str, list[str]] = {}  # where a role's first column is empty, as note_datetime may be
        for role, usual in roles.items():
            if role in mapped:
                if mapped[role] not in names:
                    raise DataError(f"{where}: no column {mapped[role]} (--columns); it has {', '.join(names[:20])}")
                self.names[role] = mapped[role]
                continue
            columns = [lower[name] for name in (role, *usual) if name in lower and lower[name] not in mapped.values()]
            columns = list(dict.fromkeys(columns))
            if len(columns) > 1 and role in only_one and columns[0].lower() != role:
                raise DataError(f"{where}: {' or '.join(columns)}: which is the {role}? say so by --columns {role}=…")
            if columns:
                self.names[role] = columns[0]
                self._next_best[role] = [] if role in only_one else columns[1:]

    def __contains__(self, role: str) -> bool:
        return role in self.names

    def text(self, row: Mapping[str, Any], role: str) -> str:
        """The cell as text, "" where there is none."""
        if role not in self.names:
            return ""
        names = (self.names[role], *self._next_best.get(role, ()))
        return next((text for name in names if (text := _text(row.get(name)).strip())), "")

    def as_it_is(self, row: Mapping[str, Any], role: str) -> str:
        """The cell with the space around its text, so that characters keep their places; "" where there is none."""
        text = _text(row.get(self.names[role])) if role in self.names else ""
        return text if text.strip() else ""


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # an id that went through a column with gaps
    return str(value)
