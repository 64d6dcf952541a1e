"""Words as the extractive stages compare them: abbreviations written out, stemmed, with the concepts they name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from archehr.program.extractive.abbreviations import expand
from archehr.program.extractive.concepts import read_concepts

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")

_BRITISH = re.compile(r"aem|faec|paed|oedem|oesoph|oestr|rrhoe|tumour")  # "anaemia", "oedema"

_STOP_WORDS = """
a an the and or but if of in on at to for from by with as is are was were be been being am do does did done doing
have has had having i me my mine we us our you your he him his she her hers it its they them their this that these
those there here what which who whom whose how when where why will would can could should shall may might must not
no nor so than then too very just also into over under up down about after before during while because until s t
don dont didn didnt doesn doesnt isn isnt wasn wasnt won wont can't cant i'm im ive i've patient doctor doctors dr
hospital told said say says saying got get getting one two please thank thanks know think hello hi any some all
more most other only own same now still even ever day days time like going went go back mr ms mrs per
"""


def words(text: str) -> list[str]:
    """Lower-case words and numbers, in order."""
    return [w.lower().replace("’", "'") for w in _WORD.findall(text)]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A light English stem: plural, -ed, -ing, -ly off; enough to join "bleeding", "bleeds" and "bleed"."""
    if word.endswith("'s"):
        word = word[:-2]
    word = _BRITISH.sub(lambda match: match[0].replace("ae", "e").replace("oe", "e").replace("our", "or"), word)
    if (len(word) <= 4 and not word.endswith("s")) or word == "scared":  # is no scar
        return word
    for suffix, replacement in (
        ("sses", "ss"),
        ("ies", "y"),
        ("ied", "y"),
        ("ing", ""),
        ("edly", ""),
        ("ed", ""),
        ("ly", ""),
        ("es", ""),
        ("s", ""),
    ):
        if word.endswith(suffix) and not word.endswith(("ss", "us", "is", "eed")) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)] + replacement
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sle":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def stems(text: str) -> list[str]:
    """Stems of every word of `text`, abbreviations written out, stop words included."""
    return [stem(w) for w in words(expand(text))]


def is_stop_word(stemmed: str) -> bool:
    """Whether a stem is an everyday word that says nothing about what a text is about."""
    return stemmed in _STOP_STEMS


@lru_cache(maxsize=20_000)
def terms(text: str) -> tuple[str, ...]:
    """What `text` is about: the stems of its content words and the concepts ("=kidney") they name."""
    found, written = stems(text), expand(text)
    kept = [s for s in found if not is_stop_word(s)]
    named = _concepts(found) if written == text else _concepts(found) | _concepts([stem(w) for w in words(text)])
    return tuple(kept + sorted(named))


@lru_cache(maxsize=20_000)
def content_terms(text: str) -> tuple[str, ...]:
    """Stemmed words and concepts without numbers and single letters, which match by accident."""
    return tuple(t for t in terms(text) if len(t) > 1 and not t[0].isdigit())


@dataclass(frozen=True, slots=True)
class Unit:
    """A thing that a text names, in one word or several: the stems of its words and the concepts it is an entry of."""

    stems: frozenset[str]
    concepts: frozenset[str]

    @property
    def terms(self) -> frozenset[str]:
        """Both together."""
        return self.stems | self.concepts


@lru_cache(maxsize=5_000)
def units(text: str) -> tuple[Unit, ...]:
    """The things `text` names, each once, in order: of overlapping entries of the table of concepts the longest, and
    every other content word. No numbers and single letters."""
    found, index = stems(text), _concept_index()
    named: dict[Unit, None] = {}
    start = 0
    while start < len(found):
        sizes = range(_longest_beginning().get(found[start], 1), 0, -1)
        size = next((n for n in sizes if tuple(found[start : start + n]) in index), 1)
        entry = tuple(found[start : start + size])
        concepts = index.get(entry, frozenset())
        content = frozenset(s for s in entry if not is_stop_word(s) and len(s) > 1 and not s[0].isdigit())
        if content or concepts:
            named[Unit(content, concepts)] = None
        start += size
    return tuple(named)


def named_by(phrase: str) -> frozenset[str]:
    """The concepts that `phrase` as a whole is an entry of."""
    return _concept_index().get(tuple(stems(phrase)), frozenset())


def all_concepts() -> frozenset[str]:
    """Every concept of the table."""
    return frozenset(name for names in _concept_index().values() for name in names)


# "colectomy", "arthroplasty" are surgery; a "colostomy" is what it leaves.
_IS_CUT_OUT, _SURGERY = re.compile(r"\w(?:ectom|otom|plast)y$"), "=surgery"


@cache
def _concept_index() -> dict[tuple[str, ...], frozenset[str]]:
    return read_concepts(stems)


@cache
def _longest_beginning() -> dict[str, int]:
    """First word of an entry -> of how many words the longest is."""
    longest: dict[str, int] = {}
    for entry in _concept_index():
        longest[entry[0]] = max(longest.get(entry[0], 0), len(entry))
    return longest


def _concepts(found: list[str]) -> set[str]:
    index, names = _concept_index(), set[str]()
    for start, first in enumerate(found):
        if _IS_CUT_OUT.search(first):
            names.add(_SURGERY)
        for size in range(1, _longest_beginning().get(first, 0) + 1):
            names |= index.get(tuple(found[start : start + size]), frozenset())
    return names


_STOP_STEMS = frozenset(stem(w) for w in _STOP_WORDS.split())
