"""What a reader is: one record that says which sources it reads, and how they become cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from archehr.data.case import Case
from archehr.data.files import decoded_head


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a source is to be read. `format` names the reader instead of having it told by content."""

    format: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What a reader is told a source by: its path and its first bytes (none for a folder)."""

    path: Path
    head: bytes = b""

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    @property
    def text(self) -> str:
        """The head as text, whatever its Unicode encoding; what cannot be decoded is replaced."""
        return decoded_head(self.head)


@dataclass(slots=True)
class Reading:
    """One source being read. `notes` collects what the user should know of it, each line once."""

    path: Path
    options: ReadOptions = ReadOptions()
    notes: list[str] = field(default_factory=list)

    def tell(self, line: str) -> None:
        if line not in self.notes:
            self.notes.append(line)


def _stem(path: Path) -> str:
    return path.name if path.is_dir() else path.name.split(".", 1)[0]


def _no_key(path: Path) -> Path | None:
    return None


@dataclass(frozen=True, slots=True)
class Reader:
    """One kind of source.

    `name` is what --format takes and `what` how help and errors call it; `reads` tells by content whether a source is
    of this kind; `cases` yields its cases in order, and raises DataError; `find_key` finds a key that lies beside it,
    and `title` is what a run folder is called after it.

    Example: a reader of another package, which names it under the entry point group `archehr.readers`.

        READER = Reader("loud", "a .loud file", reads=lambda source: source.path.suffix == ".loud", cases=read_loud)
    """

    name: str
    what: str
    reads: Callable[[Source], bool]
    cases: Callable[[Reading], Iterator[Case]]
    find_key: Callable[[Path], Path | None] = _no_key
    title: Callable[[Path], str] = _stem
