"""What a reader is: one record that says which sources it reads, and how they become cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from archehr.data.case import Case, DataError
from archehr.data.files import decoded_head


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a source is to be read.

    `format` names the reader instead of having it told by content; `columns` maps our name of a column to the table's;
    `messages` is a table of patients' messages for sources that hold notes alone, and `message` one message for every
    case that has none; `note_type` keeps only notes of these types (a code, or its name); `skip_bad` leaves out what
    cannot be read instead of stopping; `max_mb` is the largest note, and what a packed file may unpack to beyond a
    hundred times its size.
    """

    format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    messages: Path | None = None
    message: str | None = None
    note_type: frozenset[str] = frozenset()
    skip_bad: bool = False
    max_mb: float = 5.0

    @property
    def max_bytes(self) -> int:
        return int(self.max_mb * 1_000_000)

    def wants(self, *types: str | None) -> bool:
        """Is a note with this code or name of its type to be read?"""
        return not self.note_type or any(t is not None and t.strip().lower() in self.note_type for t in types)


def parse_columns(text: str | None) -> dict[str, str]:
    """ "note=TEXT,message=Q" -> {"note": "TEXT", "message": "Q"}. Raises DataError."""
    pairs = [part.partition("=") for part in (text or "").split(",") if part.strip()]
    if bad := [name for name, sign, column in pairs if not sign or not column.strip()]:
        raise DataError(f"--columns: {bad[0].strip()} is no NAME=COLUMN; write for example note=TEXT,message=Q")
    return {name.strip(): column.strip() for name, _, column in pairs}


def parse_note_type(text: str | None) -> frozenset[str]:
    """ "18842-5, Discharge summary" -> the types a note may have, in lower case."""
    return frozenset(part.strip().lower() for part in (text or "").split(",") if part.strip())


@dataclass(frozen=True, slots=True)
class Source:
    """What a reader is told a source by: its path, its first bytes unpacked (none for a folder), its columns."""

    path: Path
    head: bytes = b""
    columns: tuple[str, ...] = ()

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    @property
    def text(self) -> str:
        """The head as text, whatever its Unicode encoding; what cannot be decoded is replaced."""
        return decoded_head(self.head)

    @property
    def suffix(self) -> str:
        """The ending of the name, that of what is packed for x.csv.gz."""
        return suffix_of(self.path)


def suffix_of(path: Path) -> str:
    """The ending of a file's name in lower case, that of what is packed for x.csv.gz."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


@dataclass(slots=True)
class Reading:
    """One source being read. `notes` collects what the user should know of it, each line once, and `skipped` what
    --skip-bad left out."""

    path: Path
    options: ReadOptions = ReadOptions()
    notes: list[str] = field(default_factory=list)
    skipped: dict[str, None] = field(default_factory=dict)

    def tell(self, line: str) -> None:
        if line not in self.notes:
            self.notes.append(line)

    def bad(self, error: DataError) -> None:
        """Raises the error or, with skip_bad, keeps it for the list at the end."""
        if not self.options.skip_bad:
            raise error
        self.skipped[str(error)] = None


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
