"""Finds where the items of a note's lists begin: numbers that count up, dashes after a colon, bullets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from archehr.data.splitter.headers import Span

_NUMBER = re.compile(r"(?<!\S)(?:(\()?(\d{1,2})([.)])|(#)(\d{1,2})[.):]?)(?=\s+\S)")
_INTRODUCED = re.compile(r"[.:;,!?)*]\s*$")
_DASH_LIST = re.compile(r":[^\S\n]+[-–]\s")
_DASH = re.compile(r"(?<=\s)[-–](?=\s[\w\[(])")
_BULLET = re.compile(r"(?<!\S)(?:[•▪●](?=\s?\S)|\*\)\s|\[[\sxX]?\]\s|#{1,6}\s?(?=[A-Z]))")
# "[**8-12**] 05:30AM BLOOD WBC-9.8", "2024-03-01 06:10 Na 134": a row of a table of results
STAMP = re.compile(
    r"(?<!\S)(?:(?:\[\*\*\d[^\]]*\]|_{2,}|\d{1,4}[-/]\d{1,2}(?:[-/]\d{2,4})?),?\s+\d{1,2}:\d\d(?::\d\d)?\s?(?:[AP]M\b)?"
    r"|\d{1,2}:\d\d\s?[AP]M)\s+(?=[A-Z]\w)"
)
_BEFORE_A_DATE = frozenset("on at from until by since of to and or for through before after between".split())
_SKIPPED = 2  # numbers that a list may leave out


def numbered_items(text: str, all_blocks: Sequence[Sequence[Span]]) -> dict[int, int]:
    """Offset of each list number ("2.", "2)", "(2)", "#2") -> offset of its end.

    A number counts where it goes on with its list or starts one, so "rated 9 over 10. It hurt" has none.
    """
    ends: dict[int, int] = {}
    for block in all_blocks:
        line_starts = {start for start, _ in block}
        numbers = [_Number(m, line_starts) for m in _NUMBER.finditer(text, block[0][0], block[-1][1])]
        ends |= {n.start: n.end for n in _counted(numbers, block[0][0])}
    return ends


class _Number:
    """A number that may be a list's: its style ("." or ")" or "(" or "#"), its value, and what stands before it."""

    def __init__(self, match: re.Match[str], line_starts: set[int]) -> None:
        self.start, self.end = match.span()
        self.style = match[1] or match[3] or match[4]
        self.value = int(match[2] or match[5])
        self.at_line = self.start in line_starts
        before = match.string[max(0, self.start - 40) : self.start]
        self.introduced = not before.strip() or bool(_INTRODUCED.search(before))


def _counted(numbers: Sequence[_Number], block_start: int) -> Iterator[_Number]:
    """Those that go on counting in their style or begin to. "(2)" within a line is a dose or a reason, no item."""
    at_lines = {(n.style, n.value) for n in numbers if n.at_line}
    everywhere = {(n.style, n.value) for n in numbers}
    due: dict[str, int] = {}  # style -> the number that comes next
    for n in numbers:
        due_now = due.get(n.style, 0)
        two_comes = n.style != "(" and (n.style, 2) in everywhere
        if n.at_line:
            goes_on = 0 < due_now <= n.value <= due_now + _SKIPPED
            begins = n.start == block_start or (n.value == 1 and (due_now == 2 or n.introduced or two_comes))
        else:
            goes_on = 0 < due_now == n.value and (n.style, n.value) not in at_lines
            begins = n.value == 1 and n.introduced and two_comes
        if goes_on or begins:
            due[n.style] = n.value + 1
            yield n


def inline_items(text: str, all_blocks: Sequence[Sequence[Span]]) -> list[int]:
    """Offsets of bullets, of the dashes of a list that begins within a line ("Issues: - home O2 - taper"), and of
    rows of results where there are several."""
    starts = [m.start() for m in _BULLET.finditer(text)]
    for block in all_blocks:
        first, last = block[0][0], block[-1][1]
        rows = [m.start() for m in STAMP.finditer(text, first, last) if not _names_a_time(text, m.start())]
        starts += rows if len(rows) > 1 else []
        if opened := _DASH_LIST.search(text, first, last):
            starts += [m.start() for m in _DASH.finditer(text, opened.start(), last)]
    return sorted(starts)


def _names_a_time(text: str, offset: int) -> bool:
    """Whether a date stands in a sentence: "seen on [**8-12**] 05:30PM"."""
    before = text[max(0, offset - 12) : offset].split()
    return bool(before) and before[-1].lower() in _BEFORE_A_DATE
