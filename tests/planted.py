"""True answer sentences with their gold citations, and the same with one false statement planted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from archehr.data.case import AnswerSentence, Case

DRUGS = ("metoprolol", "atorvastatin", "omeprazole", "sertraline", "gabapentin", "ciprofloxacin", "rivaroxaban")
CAUSES = (
    "an allergic reaction", "a viral infection", "poor adherence to treatment", "a metastatic tumor",
    "an earlier head injury", "a congenital defect", "excessive alcohol use",
)  # fmt: skip
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip
NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
DRUG = re.compile(
    r"\b[A-Za-z]+(?:olol|pril|sartan|statin|mycin|cillin|oxacin|azole|parin|xaban|tinib|mab|sone|solone|semide|azide|apine|azine|idine|umine|pentin"
    r"|arin|lactone|formin|triptan|gliflozin|limus)\b"
)


@dataclass(frozen=True)
class Planted:
    """One sentence of a case's answer, true or made false."""

    case: Case
    sentence: AnswerSentence
    text: str

    @property
    def cited(self) -> list[str]:
        return [s.id for s in self.case.sentences if s.id in (self.sentence.citations or ())]

    @property
    def cited_texts(self) -> list[str]:
        return [s.text for s in self.case.sentences if s.id in self.cited]


def true_sentences(cases: Sequence[Case]) -> list[Planted]:
    """Every sentence of the reference answers that has citations."""
    return [Planted(c, a, a.text) for c in cases if c.gold for a in c.gold.answer_sentences if a.citations]


def planted(kind: str, cases: Sequence[Case]) -> Iterator[Planted]:
    """One per case: the first sentence of its answer in which a false statement of this kind can be planted. A wrong
    number or day is one that the cited sentences do not happen to hold for something else."""
    for case in cases:
        for true in true_sentences([case]):
            draw = int(hashlib.sha256(case.id.encode()).hexdigest(), 16)
            tried = (PLANTS[kind](true.text, draw + k) for k in range(12))
            made = next((m for m in tried if m and m != true.text and not _by_chance(m, true)), None)
            if made is not None:
                yield Planted(case, true.sentence, made)
                break


def every_number(cases: Sequence[Case]) -> Iterator[Planted]:
    """Every number of every true sentence, in digits or a word, made wrong in up to six ways."""
    number = re.compile(rf"(?<![\w.,/-])\d+(?:\.\d+)?(?![\w/]|\.\d)|\b(?:{'|'.join(NUMBER_WORDS)})\b")
    for true in true_sentences(cases):
        for found in number.finditer(true.text):
            for wrong in _wrong_ways(found.group()):
                made = true.text[: found.start()] + wrong + true.text[found.end() :]
                if not _by_chance(made, true):
                    yield Planted(true.case, true.sentence, made)


def _wrong_ways(number: str) -> list[str]:
    if number in NUMBER_WORDS:
        at = NUMBER_WORDS.index(number)
        return [NUMBER_WORDS[(at + k) % len(NUMBER_WORDS)] for k in range(1, 7)]
    value = float(number)
    return [f"{v:g}" for v in (value + 1, value - 1, value + 7, value * 2 + 3, value * 10, value / 10)]


def _by_chance(made: str, true: Planted) -> bool:
    new = set(re.findall(r"\w+", made)) - set(re.findall(r"\w+", true.text))
    there = " ".join(true.cited_texts)
    values = {w: str(n) for n, w in enumerate(NUMBER_WORDS, 2)}
    return any(re.search(rf"(?<!\d){values.get(w, w)}(?!\d)", there) for w in new if w.isdigit() or w in values)


def _number(text: str, draw: int) -> str | None:
    digits = re.search(r"(?<![\w.,/-])\d+(?:\.\d+)?(?![\w/]|\.\d)", text)
    if digits and not re.search(rf"(?:{'|'.join(MONTHS)}) $", text[: digits.start()]):
        value = float(digits.group())
        wrong = (value + 1, value * 2 + 3, value * 10, value + 7)[draw % 4]
        return text[: digits.start()] + f"{wrong:g}" + text[digits.end() :]
    word = re.search(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b", text)
    if word is None:
        return None
    other = NUMBER_WORDS[(NUMBER_WORDS.index(word.group()) + 1 + draw % 9) % len(NUMBER_WORDS)]
    return text[: word.start()] + other + text[word.end() :]


def _date(text: str, draw: int) -> str | None:
    named = re.search(rf"\b({'|'.join(MONTHS)}) (\d+)\b", text)
    if named is None:
        return None
    if draw % 2:
        wrong = f"{named.group(1)} {(int(named.group(2)) + 3 + draw % 11) % 28 + 1}"
    else:
        wrong = f"{MONTHS[(MONTHS.index(named.group(1)) + 1 + draw % 10) % 12]} {named.group(2)}"
    return text[: named.start()] + wrong + text[named.end() :]


def _drug(text: str, draw: int) -> str | None:
    named = DRUG.search(text)
    return None if named is None else text[: named.start()] + DRUGS[draw % len(DRUGS)] + text[named.end() :]


def _negation(text: str, draw: int) -> str | None:
    if re.search(r"\b(?:not|no|without|never)\b", text):
        for pattern, put in ((r"\bwas not\b", "was"), (r"\bwere not\b", "were"), (r"\bis not\b", "is"),
                             (r"\bwill not be\b", "will be"), (r"\bno\b ", "a "),
                             (r"\bwithout\b", "with")):  # fmt: skip
            if re.search(pattern, text):
                return re.sub(pattern, put, text, count=1)
        return None
    return re.sub(r"\b(was|were|is|are|will|should|can)\b", r"\1 not", text, count=1)


def _cause(text: str, draw: int) -> str | None:
    cause = CAUSES[draw % len(CAUSES)]
    stated = re.search(r"\b(?:because of|due to|caused by|attributed to)\b [^,.]+", text)
    if stated is not None:
        return text[: stated.start()] + f"caused by {cause}" + text[stated.end() :]
    return text.rstrip(". ") + f", caused by {cause}."


PLANTS: dict[str, Callable[[str, int], str | None]] = {
    "wrong number": _number,
    "wrong date": _date,
    "swapped drug": _drug,
    "negation turned": _negation,
    "invented cause": _cause,
}
