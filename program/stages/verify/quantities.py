"""Numbers, units and dates as notes and answers write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import date
from itertools import combinations
from typing import NamedTuple

_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {word: float(i) for i, word in enumerate(_WORDS)} | {w: 10.0 * i for i, w in enumerate(_TENS, 2)}
_VALUES |= {"once": 1.0, "twice": 2.0, "thrice": 3.0, "both": 2.0, "half": 0.5, "dozen": 12.0, "hundred": 100.0}
_ORDINALS = {"first": 1.0, "second": 2.0, "third": 3.0, "fourth": 4.0, "fifth": 5.0, "sixth": 6.0, "seventh": 7.0}
_LATIN = {"qd": 1.0, "bid": 2.0, "tid": 3.0, "qid": 4.0, "single": 1.0, "double": 2.0, "triple": 3.0, "pair": 2.0}
_OFTEN_NO_NUMBER = ("one", "once", "both", "half")
MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep"
        "|october oct|november nov|december dec".split("|"),
        1,
    )
    for name in names.split()
}
_UNITS = {
    unit: names.split()[0]
    for names in (
        "mg milligram milligrams|mcg microgram micrograms ug|g gm gram grams|kg kilogram kilograms|ml milliliter "
        "milliliters cc|l liter liters litre litres|cm centimeter centimeters|mm millimeter millimeters|percent %"
        "|day days d|week weeks wk wks|month months mo|year years yr yrs|hour hours hr hrs h|minute minutes min"
        "|unit units u|lb lbs pound pounds|mmhg|meq|beat beats bpm"
    ).split("|")
    for unit in names.split()
}
_DAYS = {"hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.4, "year": 365.0}
_NUMBER = re.compile(r"(?<![\w.])\.\d+|\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
# The unit of a range stands at its end: "six to twelve months", "5-10 mg".
_UNIT = re.compile(r"[\s-]*(?:(?:to|or|and|-)\s*[\w.]+[\s-]+)?([A-Za-z]+|%)")
_WORD = re.compile(r"[A-Za-z]+")
_DATE = re.compile(
    r"\[\*\*(?:(?P<year>\d{4})-)?(?P<month>\d{1,2})-(?P<day>\d{1,2})\*\*\]"
    r"|(?<![\d/.])(?P<m>\d{1,2})/(?P<d>\d{1,2})(?:/(?P<y>\d{2,4}))?(?![\d/])"
    rf"|\b(?P<name>{'|'.join(MONTHS)})\.? (?P<nth>\d{{1,2}})\b",
    re.IGNORECASE,
)


class Quantity(NamedTuple):
    """A number with the unit after it, "" where there is none that is known; as it stands in its text, from `start` to
    `end`."""

    value: float
    unit: str
    shown: str
    start: int
    end: int


def quantities(text: str) -> list[Quantity]:
    """Every number that can be read in a text, in order."""
    return sorted(_in_digits(text) + _in_words(text, {**_VALUES, **_ORDINALS, **_LATIN}), key=lambda q: q.start)


def stated(sentence: str) -> list[Quantity]:
    """The quantities that an answer states, in order: digits that are no part of a word (L5, B12 and COVID-19 are
    names), and number words but those that are more often none, as "one"."""
    digits = [q for q in _in_digits(sentence) if not re.search(r"[A-Za-z]-?$", sentence[: q.start])]
    values = {word: value for word, value in _VALUES.items() if word not in _OFTEN_NO_NUMBER}
    return sorted(digits + _in_words(sentence, values), key=lambda q: q.start)


def same(asked: Quantity, found: Quantity, about: bool) -> bool:
    """Whether two quantities are one; `about` lets the answer round."""
    value = found.value
    if asked.unit in _DAYS and found.unit in _DAYS:
        value *= _DAYS[found.unit] / _DAYS[asked.unit]
        about = about or asked.unit != found.unit  # a month is not always 30 days
    elif asked.unit and found.unit and asked.unit != found.unit:
        return False
    if about and value and (asked.value % 10 or abs(value - asked.value) <= asked.value / 10):
        # As many digits as the answer gives; a 10 may have one or two, and is not 12.
        value = round(value, _digits(asked.value) - 1 - math.floor(math.log10(value)))
    return abs(value - asked.value) < 1e-9


def lasts(asked: Quantity, days: float, about: bool) -> bool:
    """Whether a stated duration is that of so many days: to the day, in weeks and more to a tenth of the unit, and if
    only `about`, to half of it."""
    unit = _DAYS.get(asked.unit, 0.0)
    allowed = unit / 2 if about else unit / 10 if unit > 1 else 0.0
    return unit >= 1 and abs(days - asked.value * unit) <= allowed


def days_between(text: str) -> set[float]:
    """The days from each date in a text to each other; of dates without a year, the way that is shorter."""
    gaps: set[float] = set()
    for (year, first), (other_year, second) in combinations(_dates(text), 2):
        days = abs((first - second).days)
        gaps.add(float(days if year and other_year else min(days, 365 - days)))
    return gaps


def _dates(text: str) -> Iterator[tuple[bool, date]]:
    """Whether the year is known, and the date."""
    for match in _DATE.finditer(text):
        year = match["year"] or match["y"]
        month = int(match["month"] or match["m"] or MONTHS[(match["name"] or "jan").lower()])
        known = int(year) + (2000 if len(year) == 2 else 0) if year else 0
        try:
            yield bool(known), date(known or 2001, month, int(match["day"] or match["d"] or match["nth"]))
        except ValueError:  # 78/54 is a blood pressure
            continue


def _in_digits(text: str) -> list[Quantity]:
    return [
        Quantity(float(m.group().replace(",", "")), _unit_after(text[m.end() :]), m.group(), m.start(), m.end())
        for m in _NUMBER.finditer(text)
    ]


def _in_words(text: str, values: dict[str, float]) -> list[Quantity]:
    return [
        Quantity(values[m.group().lower()], _unit_after(text[m.end() :]), m.group(), m.start(), m.end())
        for m in _WORD.finditer(text)
        if m.group().lower() in values
    ]


def _unit_after(rest: str) -> str:
    match = _UNIT.match(rest)
    return _UNITS.get(match.group(1).lower(), "") if match else ""


def _digits(value: float) -> int:
    """Significant digits: 1 of 200, 2 of 1.5."""
    return max(1, len(f"{value:.10g}".replace(".", "").strip("0")))
