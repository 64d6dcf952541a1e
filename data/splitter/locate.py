"""Finds where given sentences stand in the note they were taken from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from archehr.data.splitter.headers import Span

_BLANKS = re.compile(r"\s*")


def locate(note: str, texts: Sequence[str], hints: Sequence[Span | None]) -> list[Span | None]:
    """For each sentence its offsets in the note, or None where they are not certain.

    Certain is a sentence that follows the one before after nothing but white space, one whose `hint` (the offsets
    that a file gives for it) holds its text, and one whose text the note and the list hold once. Offsets never go
    back.
    """
    spans: list[Span | None] = []
    times = Counter(texts)
    at = 0
    for text, hint in zip(texts, hints, strict=True):
        words = text.split()
        span = _at(note, _skip(note, at), words) or _hinted(note, at, words, hint)
        if span is None and times[text] == 1:
            span = _only(note, at, text)
        spans.append(span)
        at = span[1] if span else at
    return spans


def _at(note: str, offset: int, words: Sequence[str]) -> Span | None:
    """The span of these words if they stand at `offset`, with any white space between them."""
    at = offset
    for i, word in enumerate(words):
        start = _skip(note, at) if i else at
        if (i and start == at) or not note.startswith(word, start):
            return None
        at = start + len(word)
    return (offset, at) if words else None


def _hinted(note: str, at: int, words: Sequence[str], hint: Span | None) -> Span | None:
    if hint is None or hint[0] < at:
        return None
    span = _at(note, _skip(note, hint[0]), words)
    return span if span and not note[span[1] : hint[1]].strip() and span[1] <= max(hint[1], span[0]) else None


def _only(note: str, at: int, text: str) -> Span | None:
    start = note.find(text)
    once = start >= at and note.find(text, start + 1) < 0
    return (start, start + len(text)) if once else None


def _skip(note: str, at: int) -> int:
    blanks = _BLANKS.match(note, at)
    return blanks.end() if blanks else at
