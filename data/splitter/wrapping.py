"""Tells a note's real line ends from those that hard wrapping put in, by the shape of the lines around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from archehr.data.splitter.headers import FIELD, Span, opens_section
from archehr.data.splitter.lines import Line, Width, read_lines

# Abbreviations that end no sentence; the German and Spanish ones ("z.B.", "p.ej.", "Dra. Ruiz") are no English words.
NEVER_LAST = frozenset("dr mr mrs ms prof st vs approx fig pt dra sra z.b u.a d.h bzw p.ej".split())
# Words in mid-sentence: no line of a list ends or begins with them.
_WITHIN = frozenset(
    "the and or of in on at to for from by with without was is were are be been has had have his her their your our "
    "my over under than that which who whose every per as into about after before during within between through "
    "because if when while until since via but then an".split()
)
_OPENS = (
    _WITHIN
    | frozenset("very not this these those approximately".split())
    | {f"{word}." for word in NEVER_LAST - {"pt"}}
)
_UNITS = frozenset(
    "mg mcg g kg ml l cc mg/dl g/dl meq mmol iu unit units mm cm mmhg percent degrees beats minutes hour hours hrs day "
    "days week weeks month months year years times tablet tablets capsules puffs drops doses packs pounds lbs".split()
)
_DOSE_ENDS = frozenset(
    "daily bid tid qid qhs qd qam qpm hs prn bedtime needed day night morning evening week weekly monthly meals".split()
)

_OPEN_END = re.compile(r"[-/=<>+&([]$")
_LONE_MARK = re.compile(r"(?:^|\s)[-–*•#]$|,\d{1,2}\.$")
_MID_STOP = re.compile(r"[^\W\d_]{3,}[.?!] +[A-Z]")
_LAST_WORD = re.compile(r"[^\W\d_]{2,}$")
_DASH = re.compile(r"[-–—]\s*(?=[^\W\d]|\[|\()")
_DASH_LIST = re.compile(r":\s+[-–]\s")
_DATE = re.compile(r"\[\*\*[\d%-]|\d{1,4}[-/]\d{1,2}(?:[-/]\d{2,4})?\b")
_COLUMNS = re.compile(r"\S {2,}\S.*\S {2,}\S")

_CERTAIN = 20  # speaks louder than all else together


def join_wrapped(text: str, all_blocks: Sequence[Sequence[Span]], numbers: Mapping[int, int]) -> str:
    """`text` (made by `one_for_one`) with a blank for every line end that hard wrapping put in.

    `numbers` has the offsets of list numbers and of their ends. Offsets stay, and so do empty lines. Linear in the
    length of the text.
    """
    read = [read_lines(text, block, numbers) for block in all_blocks]
    width = Width.of_note(read)
    number_ends = set(numbers.values())
    flat = list(text)
    for block in read:
        for before, after, shape in _line_ends(block, width):
            if before.end in number_ends or shape.goes_on(before, after) > 0:
                flat[before.end : after.start] = " " * (after.start - before.end)
    return "".join(flat)


def _line_ends(block: Sequence[Line], width: Width) -> Iterator[tuple[Line, Line, _Shape]]:
    """Each line of a block, the next one, and the shape of the lines from the header above to the next header."""
    starts = sorted({0, len(block), *(i for i, line in enumerate(block) if line.is_header)})
    for first, last in pairwise(starts):
        shape = _Shape.of(block[first:last], width)
        for before, after in pairwise(block[first : last + 1]):
            yield before, after, shape


@dataclass(frozen=True, slots=True)
class _Shape:
    """What some lines look like as a whole, and so whether one of them goes on in the next."""

    width: Width
    prose: bool  # the last line ends a sentence
    running: bool  # sentences end within lines and go on over their ends
    a_list: bool  # most lines end where the next word had still fitted
    marked: bool  # some lines are items
    capitals: bool  # no line begins in lower case but by wrapping
    dashes: bool  # a dash at a line's start is a list mark
    dates: bool  # so is a date
    fields: bool  # so is a name with a colon

    @classmethod
    def of(cls, lines: Sequence[Line], width: Width) -> _Shape:
        ends = list(pairwise(lines))
        plain = [(before, after) for before, after in ends if not (after.is_item or before.is_header)]
        width = width.or_own(plain)
        fitting = [before for before, after in plain if not width.is_full(before, after)]
        begun = [lines[0], *(after for before, after in ends if not width.is_full(before, after))]
        prose = lines[-1].stops
        running = prose and any(_MID_STOP.search(before.text) and not before.stops for before, _ in plain)

        def usual(begins: Callable[[str], object], times: int = 2) -> bool:
            """Whether lines begin so: `times` of those that wrapping did not make, or half of all."""
            count = sum(bool(begins(line.text)) for line in lines)
            return sum(bool(begins(line.text)) for line in begun) >= times or 2 * count > len(lines) > 2

        return cls(
            width,
            prose=prose,
            running=running,
            a_list=not running and len(plain) > 1 and 2 * len(fitting) > len(plain),
            marked=any(line.is_item for line in lines),
            capitals=not any(line.text[0].islower() for line in begun),
            dashes=usual(_DASH.match, times=1) or any(_DASH_LIST.search(line.text) for line in lines),
            dates=usual(_DATE.match),
            fields=usual(lambda text: FIELD.match(text) and not (FIELD.fullmatch(text) or opens_section(text))),
        )

    def goes_on(self, before: Line, after: Line) -> int:
        """Above 0 where `after` goes on with what `before` says: the sum of what speaks for it and against."""
        full = self.width.is_full(before, after)
        if before.is_header and not full:
            return -_CERTAIN
        return self._by_room(before, after, full) + self._by_end(before, full) + self._by_start(before, after, full)

    def _by_room(self, before: Line, after: Line, full: bool) -> int:
        around = 1 if self.marked else -4 if self.a_list else 0
        if full:
            return around + (3 if self.width.sure else 1)
        if not self.width.columns:
            return around - 2
        return around - (1 if self.width.is_near(before, after) else 3)

    def _by_end(self, before: Line, full: bool) -> int:
        text = before.text
        if _LONE_MARK.search(text):
            return _CERTAIN
        word = before.last.strip("()").lower()
        if word in _OPENS or _OPEN_END.search(text) or text.rfind("(") > text.rfind(")"):
            return 10
        if text.endswith(","):
            return 3
        if before.stops:
            return 1 if full and text.endswith(":") else -1
        return (4 if self.running else int(self.prose)) - int(word.strip(".,;") in _DOSE_ENDS)

    def _by_start(self, before: Line, after: Line, full: bool) -> int:
        text, word = after.text, after.first.strip(".,;:)")
        if after.is_item or (self.dashes and _DASH.match(text)):
            return -_CERTAIN
        if self.dates and _DATE.match(text):
            return -4
        if after.is_header or (opens_section(text) and not (full and text[0].islower())):
            return -2 if _one_header(before.last, after.first) else -_CERTAIN
        if text[0] == "(" or (word.lower() in _UNITS and before.last[-1].isdigit()):
            return 4
        if word in _WITHIN or text[0] in ")],;:.%=":
            return 7
        if _COLUMNS.search(text):
            return -2
        if FIELD.match(text):
            return -1 if full and not self.fields else -3
        if text[0].isupper():
            return -1
        return (4 if self.capitals and self.a_list else 1) if text[0].islower() else 0


def _one_header(last: str, first: str) -> bool:
    """Whether wrapping may have broken a header between these words: "DISCHARGE" and "DIAGNOSIS:"."""
    word = _LAST_WORD.search(last)
    return word is not None and (word[0].isupper() if first.isupper() else word[0].istitle())
