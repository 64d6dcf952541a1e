"""Splits the raw text of a clinical note into Sentences, as the shared task does: headers are sentences too."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

from archehr.data.case import Sentence
from archehr.data.splitter.headers import Span, headers
from archehr.data.splitter.items import inline_items, numbered_items
from archehr.data.splitter.lines import blocks, one_for_one
from archehr.data.splitter.wrapping import NEVER_LAST, join_wrapped

_FIELD_WORDS = 4
_END = re.compile(r"""(?<![.!?])[.!?]++["')\]*]*+(?=\s)""")
_ABBREVIATIONS = NEVER_LAST | frozenset(
    "no nos pts al ca e.g i.e etc q.d b.i.d t.i.d q.i.d p.o i.v p.r.n q.h.s a.m p.m "
    "inc dept jr sr cf resp temp wt ht mcg mg kg ml hr hrs min sec wk wks mo mos yr yrs s.c s.l i.m h.s b.p".split()
)
_MARK = re.compile(r"(?:\*\*)?\(?\d{1,2}[.)]|[-*•]")
_NEXT = re.compile(r"\s+(\S{1,3})")
_LONG_WORD = re.compile(r"[A-Z][a-z]{2,}")

# Exports to CSV have a comma where a line ended: "Throat clear.,PLAN:,1.  Stop it.,2.  Rest."
_EXPORTED = re.compile(r":\s*,\s*[A-Z\d]")
_EXPORT_COMMAS = re.compile(
    r"(?<=:)(?:\s*,)+|(?<=\s),|(?<=[.;!?)\]\"]),(?=[A-Z\d(\"])|,(?=[A-Z]{2}[A-Z /&-]*:)|(?<=\D),(?=\d{1,2}\.\s)"
)


def split_note(text: str) -> tuple[Sentence, ...]:
    """Sentences with ids "1", "2", …, their paragraph's number (a blank line starts one) and their offsets.

    `text[s.start:s.end]` is the sentence up to white space, and between two sentences there is nothing else (but the
    commas that an export to CSV put in place of line ends). Decimal numbers, abbreviations ("Dr.", "q.d.", "No. 5"),
    initials and list numbers ("1. Pneumonia") end no sentence; an item of a list and a row of a table is one; a line
    end that hard wrapping put in ends none. Linear in the length of the text.
    """
    plain = one_for_one(text)
    all_blocks = list(blocks(plain))
    commas = _export_commas(plain)
    unlisted = _with(plain, commas, " ")
    numbers = numbered_items(unlisted, all_blocks)
    marks = sorted({*numbers, *inline_items(unlisted, all_blocks)})
    flat = _with(join_wrapped(plain, all_blocks, numbers), commas, "\n")
    sentences: list[Sentence] = []
    for number, block in enumerate(all_blocks, 1):
        for start, end in _pieces(flat, block[0][0], block[-1][1], marks):
            sentences.append(
                Sentence(str(len(sentences) + 1), " ".join(flat[start:end].split()), str(number), start, end)
            )
    return tuple(sentences)


def _export_commas(text: str) -> list[int]:
    if not _EXPORTED.search(text):
        return []
    return [i for match in _EXPORT_COMMAS.finditer(text) for i in range(*match.span()) if text[i] == ","]


def _with(text: str, offsets: list[int], character: str) -> str:
    characters = list(text)
    for offset in offsets:
        characters[offset] = character
    return "".join(characters)


def _pieces(flat: str, start: int, end: int, marks: list[int]) -> Iterator[Span]:
    """The sentences of one paragraph."""
    for line in flat[start:end].split("\n"):
        inside = [m - start for m in marks[bisect_left(marks, start) : bisect_left(marks, start + len(line))]]
        spans = list(headers(line))
        cuts = {0, len(line), *inside, *(first for first, _ in spans)}
        ends = sorted(cuts)
        for first, last in spans:
            # "Service: Surgery" is one sentence; a header before running text is one by itself.
            text = line[last : ends[bisect_right(ends, first)]]
            if line[first] == "#" or len(text.split(None, _FIELD_WORDS)) > _FIELD_WORDS:
                cuts.add(last)
        ordered = sorted(cuts)
        for left, right in pairwise(ordered):
            yield from _at_full_stops(flat, start + left, start + right)
        start += len(line) + 1


def _at_full_stops(flat: str, start: int, end: int) -> Iterator[Span]:
    while start < end and flat[start].isspace():
        start += 1
    while start < end and flat[end - 1].isspace():
        end -= 1
    for stop in _END.finditer(flat, start, end):
        after = _NEXT.match(flat, stop.end(), end)
        first = max(start, flat.rfind(" ", start, stop.start()) + 1)
        if after and _ends_a_sentence(flat[first : stop.start() + 1], after[1], alone=first == start):
            yield start, stop.end()
            start = after.start(1)
    if start < end:
        yield start, end


def _ends_a_sentence(word: str, after: str, alone: bool) -> bool:
    """Whether the stop at the end of `word` ends a sentence that `after` does not go on with; `alone`: nothing else
    stands before the stop."""
    if after[0].islower() or (alone and _MARK.fullmatch(word)):
        return False
    bare = word.rstrip(".!?").lstrip("(").lower()
    if word.endswith(".") and (bare in _ABBREVIATIONS or re.fullmatch(r"[a-z]", bare)):
        # An abbreviation may close a sentence too: it does where a capitalised word of some length follows.
        return bare not in NEVER_LAST and bool(_LONG_WORD.match(after))
    return True
