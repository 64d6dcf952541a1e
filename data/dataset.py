"""A Dataset is DATA as it was read; `read_dataset` reads one, `read_cases` its cases alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from archehr.data.case import Case, DataError, shown_id, shown_ids
from archehr.data.case_file import CaseFile, filter_cases, hold_cases, ids_of
from archehr.data.files import is_shipped, located, names_sample
from archehr.data.hashes import DataHash
from archehr.data.hashes import case_sha256 as case_sha256
from archehr.data.key import read_key, with_gold
from archehr.data.readers import all_readers, frame_reader, reader_of, what_data_is
from archehr.data.reading.reader import Reader, Reading, ReadOptions
from archehr.data.splitter import split_note

_LONGEST_RANGE = 10_000


@dataclass(frozen=True)
class Dataset:
    """The cases to work on, and what they are: everything a run or an optimisation needs to know of its data.

    `name` is DATA as the user names it ("sample/dev" for the shipped sample alone), `title` a short form of it for the
    names of folders, `key` the key file that gave the gold, `notes` what the user should be told of the reading.
    `chosen_from` are all the cases of DATA, where `cases` are only some of them. Both are tuples of a few cases, else
    read from a temporary file one at a time.
    """

    cases: Sequence[Case]
    name: str = ""
    title: str = ""
    key: Path | None = None
    notes: tuple[str, ...] = ()
    chosen_from: Sequence[Case] = ()

    @classmethod
    def of(cls, data: Dataset | Iterable[Case]) -> Dataset:
        """The data itself, or plain cases as nameless data."""
        return data if isinstance(data, Dataset) else cls(hold_cases(data))

    @cached_property
    def sha256(self) -> str:
        """data_sha256 of all the cases, chosen or not: it says whether two runs were on the same data."""
        return data_sha256(self.chosen_from or self.cases)

    def only(self, wanted: str | None) -> Dataset:
        """The same data with the cases named by a list such as "1,4-9". Raises DataError for an unknown id."""
        if not wanted:
            return self
        selected = select_cases(self.cases, wanted)
        return replace(self, cases=selected, chosen_from=self.chosen_from or self.cases)


def read_dataset(source: Any, key: str | Path | None = None, options: ReadOptions | None = None) -> Dataset:
    """DATA, told apart by content (archehr.data.readers), with the gold of `key` or of the key beside it.

    `source` is a path or a pandas frame with a case a row. It may be "sample/dev" or "sample/test", shipped with the
    package; a real path of that name wins, and a note says so. Raises DataError: one line naming file, case, element
    and remedy.
    """
    reading, reader = _opened(source, options or ReadOptions())
    key_path = Path(key) if key is not None else reader.find_key(reading.path)
    cases = hold_cases(_with_sentences(_with_key(_cases(reader, reading), key_path, reading), reading))
    notes = (*reading.notes, *_left_out(reading))
    if not cases:
        raise DataError("; ".join((f"{reading.path}: no case in it", *notes)))
    return Dataset(cases, *_names(reading, reader), key_path, notes)


def read_cases(
    source: Any,
    key: str | Path | None = None,
    *,
    notes: list[str] | None = None,
    options: ReadOptions | None = None,
) -> list[Case]:
    """The cases of `read_dataset`, in file order; what it notes is appended to `notes`.

    Example:
        >>> cases = read_cases("sample/test")
        >>> len(cases), cases[0].id, len(cases[0].sentences) > 10
        (20, '101', True)
    """
    data = read_dataset(source, key, options)
    if notes is not None:
        notes.extend(data.notes)
    return list(data.cases)


def iter_cases(source: Any, options: ReadOptions | None = None, *, notes: list[str] | None = None) -> Iterator[Case]:
    """The cases of a source one at a time, without a key: of a table no more than a few rows are in memory at once.

    What should be told of the reading is appended to `notes`.
    """
    reading, reader = _opened(source, options or ReadOptions())
    yield from _with_sentences(_cases(reader, reading), reading)
    if notes is not None:
        notes.extend([*reading.notes, *_left_out(reading)])


_LISTED = 20


def _left_out(reading: Reading) -> Iterator[str]:
    """What --skip-bad left out: how many, and the first of them."""
    if reading.skipped:
        yield f"{len(reading.skipped)} left out by --skip-bad:"
        yield from (f"  {line}" for line in list(reading.skipped)[:_LISTED])
    if len(reading.skipped) > _LISTED:
        yield f"  and {len(reading.skipped) - _LISTED} more"


def _opened(source: Any, options: ReadOptions) -> tuple[Reading, Reader]:
    if hasattr(source, "itertuples"):
        return Reading(Path("the frame"), options), frame_reader(source)
    path = Path(source)
    real = located(path)
    if not real.exists():
        raise DataError(
            f"{path}: no such file or folder; DATA is {what_data_is(all_readers())}; or sample/dev, sample/test"
        )
    reading = Reading(real, options)
    if not _hides_a_sample(path):
        return reading, reader_of(real, options)
    reading.tell(f"{path}: read from your own folder of that name, not from the sample shipped with archehr")
    try:
        return reading, reader_of(real, options)
    except DataError as error:
        raise DataError(f"{error}; this folder of yours hides the shipped sample of that name") from None


def _cases(reader: Reader, reading: Reading) -> Iterator[Case]:
    seen: set[str] = set()
    for case in reader.cases(reading):
        if case.id in seen:
            reading.bad(DataError(f"{reading.path}: case {shown_id(case.id)} stands twice; remove or renumber one"))
            continue
        seen.add(case.id)
        yield case


def _with_key(cases: Iterable[Case], key: Path | None, reading: Reading) -> Iterator[Case]:
    return iter(cases) if key is None else with_gold(cases, read_key(key, notes=reading.notes), reading.path, key)


def _with_sentences(cases: Iterable[Case], reading: Reading) -> Iterator[Case]:
    """The cases, those that have a note but no sentences with the sentences that `archehr ask` makes of a note.

    Not where the key labels sentences: its ids are those of another splitter.
    """
    for case in cases:
        if case.note and _is_unsplit(case):
            reading.tell(f"{reading.path}: notes without sentences were split here, as archehr ask does")
            case = replace(case, sentences=split_note(case.note))
        yield case


def _is_unsplit(case: Case) -> bool:
    return not case.sentences and (case.gold is None or (case.gold.relevance is None and case.gold.links is None))


def _hides_a_sample(path: Path) -> bool:
    return names_sample(path) and path.exists() and not is_shipped(path)


def _names(reading: Reading, reader: Reader) -> tuple[str, str]:
    """Name and title: those of a shipped sample are its alone, so that nothing else is taken for it."""
    path = reading.path
    if is_shipped(path):
        return f"sample/{path.name}", f"sample-{path.name}"
    return f"./{path}" if path.parts[:1] == ("sample",) else str(path), reader.title(path.resolve())


def select_cases(cases: Sequence[Case], wanted: str | Collection[str] | None) -> Sequence[Case]:
    """The cases named by a list such as "1,4-9", or by their ids, in file order. Raises DataError for an id that is not
    there."""
    if not wanted:
        return cases
    known = set(ids_of(cases))
    ids = parse_case_ids(wanted, known) if isinstance(wanted, str) else wanted
    if missing := [i for i in ids if i not in known]:
        option = f"--cases {wanted}: " if isinstance(wanted, str) else ""
        raise DataError(f"{option}no case {shown_ids(missing)} in the data; it has {shown_ids(sorted(known))}")
    return filter_cases(cases, set(ids).__contains__)


def parse_case_ids(text: str, known: Collection[str] = ()) -> list[str]:
    """ "1,4-6" -> ["1", "4", "5", "6"]; what is one of the `known` ids is no range. Raises DataError for an empty,
    reversed or unreadable part."""
    ids: list[str] = []
    for part in text.replace(" ", ",").split(","):
        if not part:
            continue
        span = re.fullmatch(r"(\d{1,9})-(\d{1,9})", part)
        if span is None or part in known:
            ids.append(part)
        elif int(span[1]) > int(span[2]):
            raise DataError(f"--cases {text}: the range {part} runs backwards; write {span[2]}-{span[1]}")
        elif int(span[2]) - int(span[1]) > _LONGEST_RANGE:
            raise DataError(f"--cases {text}: the range {part} is longer than any data set; name the cases")
        else:
            ids.extend(str(i) for i in range(int(span[1]), int(span[2]) + 1))
    if not ids:
        raise DataError("--cases names no case; write for example 1,4-9")
    return list(dict.fromkeys(ids))


def data_sha256(cases: Iterable[Case]) -> str:
    """sha256 of what the program may see of the cases (so not of the gold)."""
    if isinstance(cases, CaseFile) and cases.sha256 is not None:
        return cases.sha256
    digest = DataHash()
    for case in cases:
        digest.add(case)
    return digest.hexdigest()
