"""The check that needs no LM: every number, date and name of an answer sentence stands in what it cites."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from archehr.program.extractive.abbreviations import expand
from archehr.program.extractive.text import stem, words

_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {word: float(i) for i, word in enumerate(_WORDS)} | {w: 10.0 * i for i, w in enumerate(_TENS, 2)}
_VALUES |= {"once": 1.0, "twice": 2.0, "thrice": 3.0, "both": 2.0, "half": 0.5, "dozen": 12.0, "hundred": 100.0}
_ORDINALS = {"first": 1.0, "second": 2.0, "third": 3.0, "fourth": 4.0, "fifth": 5.0, "sixth": 6.0, "seventh": 7.0}
_LATIN = {"qd": 1.0, "bid": 2.0, "tid": 3.0, "qid": 4.0, "single": 1.0, "double": 2.0, "triple": 3.0, "pair": 2.0}
_MONTHS = {
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
_OFTEN_NO_NUMBER = ("one", "once", "both", "half")
_ABOUT = re.compile(
    r"\b(?:about|around|nearly|almost|approximately|roughly|over|under|above|below|than|least|most)\s+\S{0,2}$", re.I
)
_NUMBER = re.compile(r"(?<![\w.])\.\d+|\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
# The unit of a range stands at its end: "six to twelve months", "5-10 mg".
_UNIT = re.compile(r"[\s-]*(?:(?:to|or|and|-)\s*[\w.]+[\s-]+)?([A-Za-z]+|%)")
_WORD = re.compile(r"[A-Za-z]+")
# How the names of drug substances end, after the WHO's stems of international nonproprietary names.
# A word with a capital that does not begin a sentence; in capitals throughout it is an abbreviation.
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{3,}\b")
_DRUG_ENDINGS = """
olol pril sartan statin mycin micin cillin oxacin azole cycline parin xaban gatran grel dipine azepam azolam barbital
profen proxen triptan setron tidine semide thiazide gliptin gliflozin glutide formin mab tinib vir platin rubicin taxel
sone solone onide afil zosin oxetine triptyline azine apine peridone caine codone morphone fentanil mustine trexate
penem bactam fungin dronate lukast buterol meterol tropium relin lactone amide idone arone nercept bercept tacept
traline pram gabalin limus thyroxine
"""
_DRUGS = "aspirin clopidogrel digoxin gabapentin heparin insulin lithium morphine acetaminophen warfarin"
_DRUG = re.compile(rf"\b(?:\w{{2,}}(?:{'|'.join(_DRUG_ENDINGS.split())})|{'|'.join(_DRUGS.split())})\b", re.IGNORECASE)


class Quantity(NamedTuple):
    """A number and the unit after it, "" where there is none that is known."""

    value: float
    unit: str


def unfounded(sentence: str, cited: Sequence[str], note: Sequence[str]) -> list[str]:
    """What an answer sentence states without ground, as it stands there: numbers and dates that no note sentence it
    cites holds, and names that the whole note does not hold.

    Formats do not matter: "10 mg" is "10mg", "twice" is "2 times" and BID, "June 3" is "6/3", 24 months are two years;
    "about 3 liters" is 3.2 L. A number without a known unit is found in one with any; one with a unit is not found in
    another unit. "one" is no number, for it is more often a pronoun. Names are asked of the whole note, for a sentence
    often names the drug that the one before it is about.
    """
    known = " ".join(cited)
    there = list(_quantities(f"{known} {expand(known)}"))
    months = {int(q.value) for q in there} | {_MONTHS[w] for w in words(known) if w in _MONTHS}
    missing = [shown for shown, q, about in _asked(sentence) if not _stands(q, there, about)]
    missing += [shown for shown, month in _months(sentence) if month not in months]
    return list(dict.fromkeys([*missing, *_missing_names(sentence, " ".join(note))]))


def _stands(asked: Quantity, there: Sequence[Quantity], about: bool) -> bool:
    return any(_same(asked, q, about) for q in there)


def _same(asked: Quantity, found: Quantity, about: bool) -> bool:
    value = found.value
    if asked.unit in _DAYS and found.unit in _DAYS:
        value *= _DAYS[found.unit] / _DAYS[asked.unit]
        about = about or asked.unit != found.unit  # a month is not always 30 days
    elif asked.unit and found.unit and asked.unit != found.unit:
        return False
    if about and value:  # as many digits as the answer gives
        value = round(value, _digits(asked.value) - 1 - math.floor(math.log10(value)))
    return abs(value - asked.value) < 1e-9


def _digits(value: float) -> int:
    """Significant digits: 1 of 200, 2 of 1.5."""
    return max(1, len(f"{value:.10g}".replace(".", "").strip("0")))


def _asked(sentence: str) -> Iterator[tuple[str, Quantity, bool]]:
    """The quantities that an answer states, and whether it says "about": digits that are no part of a word, and
    number words but "one"."""
    for match in _NUMBER.finditer(sentence):
        before = sentence[: match.start()]
        if not re.search(r"[A-Za-z]-?$", before):  # L5, B12, COVID-19: names, not numbers
            quantity = Quantity(_value(match.group()), _unit_after(sentence[match.end() :]))
            yield match.group(), quantity, _says_about(before)
    for match in _WORD.finditer(sentence):
        word = match.group().lower()
        if word in _VALUES and word not in _OFTEN_NO_NUMBER:
            quantity = Quantity(_VALUES[word], _unit_after(sentence[match.end() :]))
            yield match.group(), quantity, _says_about(sentence[: match.start()])


def _says_about(before: str) -> bool:
    return _ABOUT.search(before) is not None


def _quantities(text: str) -> Iterator[Quantity]:
    """Every number that can be read in a text."""
    for match in _NUMBER.finditer(text):
        yield Quantity(_value(match.group()), _unit_after(text[match.end() :]))
    for match in _WORD.finditer(text.lower()):
        word = match.group()
        value = {**_VALUES, **_ORDINALS, **_LATIN}.get(word)
        if value is not None:
            yield Quantity(value, _unit_after(text[match.end() :]))


def _value(digits: str) -> float:
    return float(digits.replace(",", ""))


def _unit_after(rest: str) -> str:
    match = _UNIT.match(rest)
    return _UNITS.get(match.group(1).lower(), "") if match else ""


def _months(sentence: str) -> Iterator[tuple[str, int]]:
    """Months that the answer names; "may" and "march" only with a capital."""
    for match in _WORD.finditer(sentence):
        word = match.group()
        if word.lower() in _MONTHS and word[0].isupper() and (word != "May" or match.start() > 0) and len(word) > 2:
            yield word, _MONTHS[word.lower()]


def _missing_names(sentence: str, note: str) -> list[str]:
    """Drugs, and words that a capital inside the sentence makes a name, which the note does not hold."""
    there = {stem(w) for w in [*words(note), *words(expand(note))]}
    names = [*_DRUG.findall(sentence), *_NAME.findall(sentence)]
    return [name for name in names if stem(name.lower()) not in there and name.lower() not in _MONTHS]
