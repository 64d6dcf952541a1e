"""Cases beyond a few are kept in a temporary file and read one at a time, so that any number takes little memory."""

from __future__ import annotations

import tempfile
import threading
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar, overload

from archehr.data.case import Case, DataError, Gold
from archehr.data.hashes import DataHash

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Kind = TypeVar("Kind")

FEW = 1_000  # cases that are held in memory, about 20 kB each


def hold_cases(cases: Iterable[Case]) -> Sequence[Case]:
    """The cases for reading again and by position: a tuple of few or of what is in memory already, else a CaseFile.
    Raises DataError."""
    if isinstance(cases, CaseFile):
        return cases
    if isinstance(cases, (list, tuple)):
        return tuple(cases)
    remaining = iter(cases)
    first = tuple(islice(remaining, FEW + 1))
    return first if len(first) <= FEW else CaseFile.of(chain(first, remaining))


def hold_golds(golds: Iterable[tuple[str, Gold]]) -> Mapping[str, Gold]:
    """The pairs of case id and gold: a dict of few, else a GoldFile. Raises DataError."""
    remaining = iter(golds)
    first = dict(islice(remaining, FEW + 1))
    return first if len(first) <= FEW else GoldFile(chain(first.items(), remaining))


def filter_cases(cases: Sequence[Case], wanted: Callable[[str], bool]) -> Sequence[Case]:
    """Those of the cases whose id is wanted, in their order."""
    return cases.only(wanted) if isinstance(cases, CaseFile) else tuple(c for c in cases if wanted(c.id))


def ids_of(cases: Sequence[Case]) -> Sequence[str]:
    """The ids of the cases in order, without reading a CaseFile."""
    return cases.ids if isinstance(cases, CaseFile) else [case.id for case in cases]


class LineFile:
    """Lines in a temporary file, its owner's alone, that is gone with this object or the process; read by place
    from any thread."""

    def __init__(self) -> None:
        self._stream = tempfile.TemporaryFile()  # noqa: SIM115 closed by the line below
        weakref.finalize(self, self._stream.close)
        self._lock = threading.Lock()
        self._end = 0

    def append(self, line: bytes) -> int:
        """Write a line; its place. Raises DataError where the disk is full."""
        place = self._end
        with self._lock:
            try:
                self._stream.seek(place)
                self._stream.write(line + b"\n")
                self._stream.flush()  # a full disk shows here, and not at a later read
            except OSError as error:
                raise DataError(
                    f"{tempfile.gettempdir()}: no room for the cases ({error.strerror}); free space, or name another "
                    "folder by TMPDIR"
                ) from None
            self._end += len(line) + 1
        return place

    def at(self, place: int) -> bytes:
        """The line at a place."""
        with self._lock:
            self._stream.seek(place)
            return self._stream.readline()


class CaseFile(Sequence[Case]):
    """Cases on disk. In memory are their ids and places, and `sha256`, data_sha256 of all that were written."""

    def __init__(self, lines: LineFile, ids: Sequence[str], places: Sequence[int], sha256: str | None = None) -> None:
        self._lines, self.ids, self._places, self.sha256 = lines, ids, places, sha256

    @classmethod
    def of(cls, cases: Iterable[Case]) -> CaseFile:
        """Write the cases, reading them once. Raises DataError."""
        lines, ids, places, digest = LineFile(), list[str](), array("Q"), DataHash()
        for case in cases:
            ids.append(case.id)
            places.append(lines.append(adapter(Case).dump_json(case)))
            digest.add(case)
        return cls(lines, ids, places, digest.hexdigest())

    def only(self, wanted: Callable[[str], bool]) -> CaseFile:
        """Those whose id is wanted, in the same file."""
        at = [place for place, case_id in enumerate(self.ids) if wanted(case_id)]
        return self if len(at) == len(self) else self._some(at)

    def _some(self, at: Iterable[int]) -> CaseFile:
        at = list(at)
        return CaseFile(self._lines, [self.ids[i] for i in at], array("Q", (self._places[i] for i in at)))

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, at: int) -> Case: ...
    @overload
    def __getitem__(self, at: slice) -> CaseFile: ...
    def __getitem__(self, at: int | slice) -> Case | CaseFile:
        if isinstance(at, slice):
            return self._some(range(len(self))[at])
        return adapter(Case).validate_json(self._lines.at(self._places[at]))

    def __repr__(self) -> str:
        return f"CaseFile({len(self)} cases)"


class GoldFile(Mapping[str, Gold]):
    """Gold by case id, on disk."""

    def __init__(self, golds: Iterable[tuple[str, Gold]]) -> None:
        self._lines = LineFile()
        self._places = {case_id: self._lines.append(adapter(Gold).dump_json(gold)) for case_id, gold in golds}

    def __getitem__(self, case_id: str) -> Gold:
        return adapter(Gold).validate_json(self._lines.at(self._places[case_id]))

    def __contains__(self, case_id: object) -> bool:
        return case_id in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@cache
def adapter(kind: type[Kind]) -> TypeAdapter[Kind]:
    """What writes and reads a kind as JSON, made once: it takes a while."""
    from pydantic import TypeAdapter  # which few cases do without

    return TypeAdapter(kind)
