"""The lines of a note, what each one looks like, and the width that the note seems to be wrapped at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from archehr.data.splitter.headers import Span, is_header
from archehr.data.splitter.items import STAMP

# Widths between which a text is wrapped: narrower lines are a list, and nobody wraps beyond.
_NARROWEST, _WIDEST = 50, 132
_NEAR = 10  # columns; the ends of wrapped lines lie as near each other
_ENOUGH = 3  # so many line ends near each other are no coincidence
_SLACK = 2  # two blanks may have stood between the words

_MARK = re.compile(r"(?:[*•·▪●○◦‣]\)?|\[[ xX]?\]|\|)\s|[•▪●]|#{1,6}\s?[^\W\d]|\*\*[^\s*]|[-=_*~]{4,}$")
_STOP = re.compile(r"""[.!?:;]["')\]*]*$""")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without the blanks around it; `size` counts the columns it takes, with the blanks before it."""

    start: int
    end: int
    text: str
    size: int
    first: str  # its first word
    last: str
    is_item: bool  # it begins with the mark of a list, a problem or a row of results
    is_header: bool
    stops: bool  # it ends a sentence or a clause


def one_for_one(text: str) -> str:
    """`text` with every line end a line feed and every other white space a blank, at the same offsets."""
    text = text.replace("\r\n", " \n")
    return re.sub(r"\s", lambda match: "\n" if match[0] in "\n\r\x85\u2028\u2029" else " ", text)


def blocks(text: str) -> Iterator[list[Span]]:
    """The lines, without the blanks around them, of each run of lines that are not empty."""
    block: list[Span] = []
    at = 0
    for raw in text.split("\n"):
        if line := raw.strip():
            start = at + raw.index(line[0])
            block.append((start, start + len(line)))
        elif block:
            yield block
            block = []
        at += len(raw) + 1
    if block:
        yield block


def read_lines(text: str, block: Sequence[Span], numbers: Mapping[int, int]) -> list[Line]:
    """The lines of a block; `numbers` has the offsets at which an item of a numbered list begins."""
    lines = []
    for start, end in block:
        line = text[start:end]
        words = line.split(None, 1), line.rsplit(None, 1)
        marked = start in numbers or bool(_MARK.match(line) or STAMP.match(line))
        size = end - 1 - text.rfind("\n", 0, start)
        lines.append(
            Line(start, end, line, size, words[0][0], words[1][-1], marked, is_header(line), bool(_STOP.search(line)))
        )
    return lines


@dataclass(frozen=True, slots=True)
class Width:
    """The width a text seems to be wrapped at (0: at none), and whether that is more than a guess from one line."""

    columns: int
    sure: bool

    @classmethod
    def of_note(cls, all_blocks: Sequence[Sequence[Line]]) -> Width:
        """The width that wrapped lines of the note reach. Only a line that another follows can have been wrapped."""
        wrapped = all(line.size <= _WIDEST for block in all_blocks for line in block)
        broken = [line.size for block in all_blocks for line in block[:-1]]
        sizes = sorted((size for size in broken if _NARROWEST <= size <= _WIDEST), reverse=True)
        for size, third in zip(sizes, sizes[_ENOUGH - 1 :], strict=False):
            if size - third <= _NEAR:
                return cls(size, wrapped)
        return cls(sizes[0] if sizes and wrapped else 0, False)

    def or_own(self, pairs: Sequence[tuple[Line, Line]]) -> Width:
        """The width of these lines, if each of them is so long that the next word did not fit; else this one."""
        widest = max((before.size for before, _ in pairs), default=0)
        own = Width(widest, True)
        if len(pairs) < _ENOUGH or not _NARROWEST <= widest <= _WIDEST:
            return self
        return own if all(own.is_full(before, after) for before, after in pairs) else self

    def is_full(self, before: Line, after: Line) -> bool:
        """Whether the next line's first word had no room on the line."""
        return bool(self.columns) and self._left(before, after) < _SLACK

    def is_near(self, before: Line, after: Line) -> bool:
        """Whether the line ends near the width."""
        return bool(self.columns) and self._left(before, after) <= _NEAR

    def _left(self, before: Line, after: Line) -> int:
        return self.columns - before.size - 1 - len(after.first)
