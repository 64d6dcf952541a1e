"""What is reviewed: the cases of a run folder with what the program said of them, or the cases of DATA alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from archehr.data.case import Case, DataError
from archehr.data.dataset import Dataset, read_dataset
from archehr.program.run.folder import JOURNAL, MANIFEST, read_run_folder
from archehr.program.run.manifest import Manifest
from archehr.program.run.records import CaseRecord
from archehr.review.labels import Labels, said_beforehand

NO_CUT = 5


LONGEST_LIST = 200  # characters of ids in a message


@dataclass(frozen=True)
class Subject:
    """The cases to review, in the order of the data; `records` is empty where there is no run. Journals are kept
    below `folder`."""

    name: str
    folder: Path
    cases: Mapping[str, Case]
    records: Mapping[str, CaseRecord]
    cut: int = NO_CUT

    def program_labels(self, case_id: str) -> Labels | None:
        """What the program said of a case, as labels; None without a run."""
        record = self.records.get(case_id)
        return said_beforehand(self.cases[case_id], record, self.cut) if record else None

    def start(self, case_id: str, *, blind: bool = False) -> Labels:
        """The labels that a reviewer starts from; a blind one sees no more than the data."""
        case = self.cases[case_id]
        if blind:
            return Labels(question=case.clinician_question or "", marks=dict.fromkeys(s.id for s in case.sentences))
        return said_beforehand(case, self.records.get(case_id), self.cut)


def read_subject(
    path: Path,
    *,
    data: str | None = None,
    key: Path | None = None,
    wanted: str | None = None,
    data_folder: Callable[[str], Path],
    tell: Callable[[str], None] = lambda line: None,
) -> Subject:
    """The subject that `path` names: a run folder, or DATA, whose journals are kept in `data_folder(DATA)`.

    `data` is where the run's data is now, if not where it was; `wanted` chooses cases. Raises DataError for a run
    folder that is unfinished, of other data, or damaged.
    """
    if not ((path / MANIFEST).exists() or (path / JOURNAL).exists()):
        if data is not None:
            raise DataError(f"{path}: is no run folder, so --data has no use here; name one or the other")
        alone = _read(str(path), key, tell)
        return Subject(alone.name, data_folder(alone.title), {c.id: c for c in alone.only(wanted).cases}, {})
    manifest, records = read_run_folder(path)
    cases = _data_of_run(path, manifest, data, key, tell).only(wanted).cases
    if missing := [c.id for c in cases if c.id not in records]:
        some = f"or choose finished ones with --cases{_ranges(records)}" if records else "it has no finished case"
        raise DataError(
            f"{path}: unfinished, {len(missing)} of {len(cases)} cases are not answered, the first is {missing[0]}; "
            f"finish it with the archehr run command that began it, {some}"
        )
    chosen = {c.id: records[c.id] for c in cases}
    return Subject(str(path), path, {c.id: c for c in cases}, chosen, manifest.settings.cut)


def _data_of_run(
    path: Path, manifest: Manifest, data: str | None, key: Path | None, tell: Callable[[str], None]
) -> Dataset:
    named = data or manifest.data
    if not named:
        raise DataError(f"{path / MANIFEST}: names no data; name it with --data")
    try:
        read = _read(named, key, tell)
    except DataError as error:
        if data is not None:
            raise
        raise DataError(f"{error} (the data of {path}; say where it is now with --data)") from None
    if read.sha256 != manifest.data_sha256:
        raise DataError(f"{path}: a run on other data than {named} is now; name the data it was run on with --data")
    return read


def _read(data: str, key: Path | None, tell: Callable[[str], None]) -> Dataset:
    read = read_dataset(data, key)
    for note in read.notes:
        tell(note)
    return read


def _ranges(ids: Iterable[str]) -> str:
    """Ids as --cases takes them, " 101-103,7", where they make a short list."""
    spans: list[list[str]] = []
    for i in ids:
        if spans and i.isdecimal() and spans[-1][-1].isdecimal() and int(i) == int(spans[-1][-1]) + 1:
            spans[-1][1:] = [i]
        else:
            spans.append([i])
    return f" {listed}" if len(listed := ",".join("-".join(span) for span in spans)) <= LONGEST_LIST else ""
