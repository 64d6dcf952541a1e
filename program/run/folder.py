"""A run folder: lock, journal and manifest. The journal is the only truth on resume, and nothing finished is lost."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pydantic import ValidationError

from archehr.data.case import DataError
from archehr.data.files import write_private
from archehr.program.run.engines.batch.store import discard
from archehr.program.run.journal import Journal
from archehr.program.run.manifest import Identity, Manifest
from archehr.program.run.records import CaseRecord

if TYPE_CHECKING:
    from filelock import FileLock

JOURNAL = "predictions.jsonl"
MANIFEST = "run.json"
# What a run writes of its cases and --fresh removes, the journal first.
WRITTEN = (
    JOURNAL,
    MANIFEST,
    "program.json",
    "submission_subtask_*.json",
    "scores.json",
    "report.html",
    "report/[0-9]*.html",
    "predictions.csv",
    "predictions.parquet",
    "note_nlp.csv",
    "fhir/*.json",
)


class RunFolder:
    """Open for one run at a time: `with RunFolder(path, identity) as folder`.

    `identity` is what must be the same for finished cases to count on resume (program, data, LM, settings); another
    one is refused, naming what differs. `records` has the finished cases; `append` puts one on disk before it returns.
    Raises DataError for a folder in use, of another run, damaged, or not writable.
    """

    def __init__(self, path: Path, identity: Identity, *, fresh: bool = False) -> None:
        self.path, self.identity, self.fresh = path, identity, fresh
        self.records: Journal
        self.notices: list[str] = []
        self.manifest: Manifest | None = None  # of the calls before this one, then of this one too
        self._lock: FileLock | None = None

    def __enter__(self) -> RunFolder:
        with self._disk_faults():
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = _lock(self.path / "lock")
            if self.fresh:
                discard(self.path)
                for old in chain.from_iterable(map(self.path.glob, WRITTEN)):
                    old.unlink()
            self._check_identity()
            path = self.path / JOURNAL
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
            self.records = Journal(path)
            if self.records.open():
                self.notices.append(f"{path}: the last line was torn by an interrupted write; dropped")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.records.close()
        if self._lock is not None:
            self._lock.release()

    def append(self, record: CaseRecord) -> None:
        """Put one finished case on disk."""
        with self._disk_faults():
            self.records.append(record)

    def write_manifest(self, manifest: Manifest) -> None:
        """run.json: what was run and what it took."""
        self.manifest = manifest
        write_private(self.path / MANIFEST, json.dumps(manifest.as_json(), indent=1, ensure_ascii=False) + "\n")

    def _check_identity(self) -> None:
        manifest = self.path / MANIFEST
        if not manifest.exists():
            if (self.path / JOURNAL).exists() and (self.path / JOURNAL).stat().st_size:
                raise DataError(f"{self.path}: finished cases but no {MANIFEST}; use another --out or --fresh")
            return
        try:
            self.manifest = Manifest.model_validate_json(manifest.read_bytes())
        except ValidationError:
            raise DataError(f"{manifest}: damaged; use another --out, or --fresh to start over") from None
        if differs := self.identity.differs_from(self.manifest):
            raise DataError(
                f"{self.path}: holds a run with another {', '.join(differs)}; use another --out, or --fresh"
            )

    @contextlib.contextmanager
    def _disk_faults(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(
                f"{self.path}: {error.strerror or error}; free space, mend permissions, or use another --out"
            ) from None


def read_run_folder(path: Path) -> tuple[Manifest, Journal]:
    """run.json and the finished cases by id, changing nothing. Raises DataError for a folder without a run."""
    try:
        manifest = Manifest.model_validate_json((path / MANIFEST).read_bytes())
        return manifest, Journal(path / JOURNAL)
    except OSError as error:
        raise DataError(f"{path}: not a run folder ({error.strerror}); name one that archehr run has made") from None
    except ValidationError:
        raise DataError(f"{path / MANIFEST}: damaged; run the program again with --fresh") from None


def _lock(path: Path) -> FileLock:
    """Hold `path` for this process; the system lets go when the process ends, however it ends."""
    from filelock import FileLock, Timeout  # 0.05 s that only a run needs

    holder = path.with_name("lock.pid")  # beside it: a locked file cannot be read everywhere
    lock = FileLock(path, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        process = holder.read_text(encoding="ascii") if holder.exists() else "unknown"
        raise DataError(
            f"{path.parent}: another run (process {process}) is using it; wait, or use another --out"
        ) from None
    write_private(holder, str(os.getpid()))
    return lock
