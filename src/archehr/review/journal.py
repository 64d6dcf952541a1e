"""The journal of one reviewer: append-only, on disk before an action is called saved, the only truth afterwards."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from archehr.data.case import DataError
from archehr.review.actions import Refused
from archehr.review.history import CaseReview, Open, Step

FOLDER = "review"
ADJUDICATED = "adjudicated"  # the journal of what was decided where reviewers differ
_NAME = re.compile(r"\w(?:[\w .-]{0,38}\w)?")


class Entry(BaseModel):
    """A line of the journal: an action on a case, when it came (UTC) and the seconds spent on the case until then."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: str
    case: str
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    step: Step


def journal_path(folder: Path, reviewer: str) -> Path:
    """Where `reviewer` keeps the journal for what is in `folder`. Raises DataError for a name that is no file name."""
    if not _NAME.fullmatch(reviewer):
        raise DataError(
            f"--reviewer {reviewer[:40]!r}: give a name of 1 to 40 letters, digits, blanks, dots and dashes"
        )
    if reviewer.lower() == ADJUDICATED:
        raise DataError(f"--reviewer {reviewer}: this name is kept for --adjudicate; give another")
    return folder / FOLDER / f"{reviewer}.jsonl"


def reviewers(folder: Path) -> list[str]:
    """Who has a journal for what is in `folder`."""
    names = (path.stem for path in (folder / FOLDER).glob("*.jsonl"))
    return sorted(name for name in names if name != ADJUDICATED)


class Journal:
    """Open for one process at a time: `with Journal(path) as journal`. `reviews` holds what it replays to.

    Raises DataError for a journal in use, damaged, or not writable; a last line torn by a kill is cut off and told in
    `notices`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices: list[str] = []
        self.reviews: dict[str, CaseReview] = {}

    def __enter__(self) -> Journal:
        import filelock

        self._lock = filelock.FileLock(self.path.with_suffix(".lock"), timeout=0, mode=0o600)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock.acquire()
            new = not self.path.exists()
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except filelock.Timeout:
            raise DataError(f"{self.path}: in use by another archehr review; use its page, or stop it first") from None
        except OSError as error:
            raise self._fault(error) from None
        try:
            if new:
                _sync_folder(self.path.parent)
            raw = self.path.read_bytes()
            self.reviews = replay(raw, self.path, self.notices)
            self._size = raw.rfind(b"\n") + 1
            os.ftruncate(self._file, self._size)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._file)
        self._lock.release()

    def append(self, entries: Sequence[Entry]) -> None:
        """Put actions on disk. Raises DataError where they cannot be; the journal is then as it was."""
        left = lines = b"".join(entry.model_dump_json().encode() + b"\n" for entry in entries)
        try:
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise self._fault(error) from None
        self._size += len(lines)

    def _fault(self, error: OSError) -> DataError:
        return DataError(f"{self.path}: cannot be written ({error.strerror or error}); free space or mend permissions")


def read_journal(path: Path, notices: list[str]) -> dict[str, CaseReview]:
    """What a journal replays to, changing nothing. Raises DataError."""
    try:
        return replay(path.read_bytes(), path, notices)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); mend its permissions") from None


def replay(raw: bytes, path: Path, notices: list[str]) -> dict[str, CaseReview]:
    """case id -> its review, from the bytes of a journal. Raises DataError for a damaged line before the last."""
    whole = raw.rfind(b"\n") + 1
    if whole < len(raw):
        notices.append(f"{path}: its last line was torn by an interrupted write; read up to it")
    reviews: dict[str, CaseReview] = {}
    for number, line in enumerate(raw[:whole].split(b"\n")[:-1], 1):
        try:
            take(reviews, Entry.model_validate_json(line))
        except (ValidationError, Refused, KeyError):
            raise DataError(
                f"{path}: line {number} is damaged; restore the file from a copy, or remove it and what follows it"
            ) from None
    return reviews


def take(reviews: dict[str, CaseReview], entry: Entry) -> None:
    """Put one entry into the reviews. Raises Refused, or KeyError for a case that was not opened."""
    if isinstance(entry.step, Open) and entry.case not in reviews:
        reviews[entry.case] = CaseReview(entry.step)
    else:
        reviews[entry.case] = reviews[entry.case].after(entry.step)
    reviews[entry.case].seconds += entry.seconds


def _sync_folder(folder: Path) -> None:
    """So that a new journal's name is on disk too; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
