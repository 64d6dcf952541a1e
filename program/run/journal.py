"""The journal: a finished case a line, read back when it is wanted; in memory is where each stands and their sums."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import overload

from pydantic import ValidationError

from archehr.data.case import DataError
from archehr.data.case_file import FEW
from archehr.program.run.records import CaseRecord, Tally


class Journal(Mapping[str, CaseRecord]):
    """The finished cases of a file by id, the last line of a case being the one that counts.

    Each is read from disk when it is asked for. `tally` is what they sum up to, `whole` the bytes up to the end of the
    last whole line. Raises DataError for a damaged line; OSError where the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tally = Tally()
        self.whole = 0
        self._places: dict[str, int] = {}
        self._out: FileIO | None = None
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.endswith(b"\n"):
                    self._note(_record(line, path, number), len(line))

    def open(self) -> bool:
        """Make ready for `append`; whether a torn last line was dropped for that."""
        torn = self.path.stat().st_size > self.whole
        # Unbuffered, so that closing has nothing left to write to a full disk.
        self._out = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_APPEND), "ab", buffering=0)
        if torn:
            self._out.truncate(self.whole)
        return torn

    def append(self, record: CaseRecord) -> None:
        """Put one finished case on disk."""
        assert self._out is not None
        line = (json.dumps(record.model_dump(mode="json"), ensure_ascii=False) + "\n").encode()
        left = line
        while left:
            left = left[self._out.write(left) :]
        os.fsync(self._out.fileno())
        self._note(record, len(line))

    def close(self) -> None:
        """No more `append`."""
        if self._out is not None:
            self._out.close()

    def is_done(self, case_id: str) -> bool:
        """Is the case finished, and by no fallback for want of an LM?"""
        return case_id in self._places and case_id not in self.tally.unreached

    def of(self, case_ids: Sequence[str]) -> Sequence[CaseRecord]:
        """The records of these cases: a list of few, else read one at a time."""
        records = Records(self, case_ids)
        return list(records) if len(records) <= FEW else records

    def __getitem__(self, case_id: str) -> CaseRecord:
        place = self._places[case_id]
        with self.path.open("rb") as stream:
            stream.seek(place)
            record = _record(stream.readline(), self.path)
        if record.case_id != case_id:
            raise _changed(self.path)
        return record

    def __contains__(self, case_id: object) -> bool:
        return case_id in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _note(self, record: CaseRecord, length: int) -> None:
        """Take in the record of the next line."""
        if record.case_id in self._places:
            self.tally.remove(self[record.case_id])
        self._places[record.case_id] = self.whole
        self.tally.add(record)
        self.whole += length


class Records(Sequence[CaseRecord]):
    """Records of a journal in an order of their own."""

    def __init__(self, journal: Journal, case_ids: Sequence[str]) -> None:
        self._journal, self._ids = journal, case_ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, at: int) -> CaseRecord: ...
    @overload
    def __getitem__(self, at: slice) -> Records: ...
    def __getitem__(self, at: int | slice) -> CaseRecord | Records:
        return Records(self._journal, self._ids[at]) if isinstance(at, slice) else self._journal[self._ids[at]]


def _record(line: bytes, path: Path, number: int | None = None) -> CaseRecord:
    try:
        return CaseRecord.model_validate_json(line)
    except ValidationError:
        if number is None:
            raise _changed(path) from None
        raise DataError(f"{path}: line {number} is damaged; remove it to answer its case again") from None


def _changed(path: Path) -> DataError:
    return DataError(f"{path}: was changed while it was read; do it again")
