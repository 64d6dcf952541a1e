"""The submission files that a command is given: one file, or those of a run folder."""

from __future__ import annotations

from pathlib import Path

from archehr.data.case import DataError


def submission_files(path: Path, subtask: int | None) -> dict[int, Path]:
    """Subtask -> file: `path` itself, its subtask read from its name unless given, or the files of a run folder (only
    that of `subtask`, if given). Raises DataError."""
    if not path.is_dir():
        return {subtask or _subtask_of(path): path}
    files = {_subtask_of(file): file for file in sorted(path.glob("submission_subtask_?.json"))}
    files = {n: file for n, file in files.items() if subtask in (None, n)}
    if not files:
        raise DataError(f"{path}: the folder holds no submission_subtask_{subtask or 'N'}.json; did its run finish?")
    return files


def _subtask_of(path: Path) -> int:
    digits = [c for c in path.stem if c in "1234"]
    if "subtask" not in path.stem or len(digits) != 1:
        raise DataError(f"{path}: which subtask is it? pass --subtask 1, 2, 3 or 4")
    return int(digits[0])
