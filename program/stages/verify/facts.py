"""The check that needs no LM: every number, date and name of an answer sentence stands in what it cites."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from archehr.program.extractive.abbreviations import expand
from archehr.program.extractive.text import words
from archehr.program.stages.verify.names import missing_names
from archehr.program.stages.verify.quantities import (
    MONTHS,
    Quantity,
    days_between,
    lasts,
    quantities,
    same,
    stated,
)

_ABOUT = re.compile(
    r"\b(?:about|around|nearly|almost|approximately|roughly|over|under|above|below|than|least|most)\s+\S{0,2}$", re.I
)
_CHANGES = (
    "rais|rise|rising|rose|climb|increas|gain|went up|lower|drop|decreas|fell|fall|reduc|declin|los[et]|improv|worsen"
)
# "raised her sodium by about 15": the number is how much, not how high.
_CHANGED_BY = re.compile(rf"\b(?:{_CHANGES})\w*\b[^.,;]*\bby\s+(?:\w+\s+)?$", re.I)
_SAYS_HOW_MUCH = re.compile(rf"(?:\bby\s+(?:\w+\s+)?|\b(?:up|down|another|{_CHANGES})\w*\s+(?:of\s+)?|[+Δ±]\s*)$", re.I)
_LABEL = re.compile(r"([A-Za-z]+)\W{0,3}(?:(?:of|was|is|to|at)\s+)?$")
_BETWEEN = re.compile(r"\s*\S{0,4}\s*(?:to|-+>|→)\s*$")
_IN_SERIES = re.compile(r"\s*(?:,|,?\s*(?:to|or|and)|-|–)\s*$")


def unfounded(sentence: str, cited: Sequence[str], note: Sequence[str]) -> list[str]:
    """What an answer sentence states without ground, as it stands there: numbers and dates that no note sentence it
    cites holds, and names that the whole note does not hold.

    Formats do not matter: "10 mg" is "10mg", "twice" is "2 times" and BID, "June 3" is "6/3", 24 months are two years;
    "about 3 liters" is 3.2 L. A number without a known unit is found in one with any; one with a unit is not found in
    another unit. How much something changed may be the difference of two values of it, and how long it took that of
    two dates; of a range or a list, each number has one of its own to stand on. "one" is no number, for it is more
    often a pronoun. Names are asked of the whole note, for a sentence often names the drug that the one before it is
    about.
    """
    known = " ".join(cited)
    read = f"{known} {expand(known)}"
    there, durations = quantities(read), days_between(known)
    months = {int(q.value) for q in there} | {MONTHS[w] for w in words(known) if w in MONTHS}
    asked = stated(sentence)
    missing = [q for q in asked if not _stands(q, sentence[: q.start], read, there, durations)]
    missing += [q for q in _repeated(sentence, asked, quantities(known)) if q not in missing]
    shown = [q.shown for q in sorted(missing, key=lambda q: q.start)]
    shown += [name for name, month in _months(sentence) if month not in months]
    return list(dict.fromkeys([*shown, *missing_names(sentence, " ".join(note))]))


def _stands(asked: Quantity, before: str, read: str, there: Sequence[Quantity], durations: set[float]) -> bool:
    about = _ABOUT.search(before) is not None
    if any(lasts(asked, days, about) for days in durations):
        return True
    equals = [q for q in there if same(asked, q, about)]
    if not _CHANGED_BY.search(before):
        return bool(equals)
    how_much = any((asked.unit and q.unit) or _SAYS_HOW_MUCH.search(read[: q.start]) for q in equals)
    return how_much or any(same(asked, change, about) for change in _changes(read, there))


def _changes(text: str, there: Sequence[Quantity]) -> Iterator[Quantity]:
    """The differences of two values of one thing, which the same word stands before, or of one that went to another."""
    by_label: dict[str, list[Quantity]] = {}
    for q, after in zip(there, [*there[1:], None], strict=True):
        if label := _LABEL.search(text[: q.start]):
            by_label.setdefault(label.group(1).lower(), []).append(q)
        if after is not None and _BETWEEN.match(text[q.end : after.start]):
            yield after._replace(value=abs(after.value - q.value))
    for values in by_label.values():
        yield from (b._replace(value=abs(b.value - a.value)) for i, a in enumerate(values) for b in values[i + 1 :])


def _repeated(sentence: str, asked: Sequence[Quantity], there: Sequence[Quantity]) -> Iterator[Quantity]:
    """The numbers that come again within one range or list ("four to four months") and stand less often in what is
    cited."""
    series: list[Quantity] = []
    for q in asked:
        if not series or not _IN_SERIES.match(sentence[series[-1].end : q.start]):
            series = []
        series.append(q)
        times = Counter(s.value for s in series)[q.value]
        if times > 1 and times > sum(same(q, other, about=False) for other in there):
            yield q


def _months(sentence: str) -> Iterator[tuple[str, int]]:
    """Months that the answer names; "may" and "march" only with a capital."""
    for match in re.finditer(r"[A-Za-z]+", sentence):
        word = match.group()
        if word.lower() in MONTHS and word[0].isupper() and (word != "May" or match.start() > 0) and len(word) > 2:
            yield word, MONTHS[word.lower()]
