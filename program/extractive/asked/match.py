"""How much each note sentence speaks of a short question: of the things it names, and in the way it asks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, Self

from archehr.program.extractive.asked.general import DOSE, GENERAL, families
from archehr.program.extractive.sections import joined, places
from archehr.program.extractive.text import Unit, content_terms, units

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

# What a sentence has of a thing asked about that it does not name in the same words: by another name, by the heading it
# stands under, by what it goes on with ("It cleared by"). To stand under a heading that names it counts anyway.
_OTHER_NAME, _HEADING, _GOES_ON, _UNDER = 0.8, 0.6, 0.6, 0.3
_GOING_ON = re.compile(r"(?:it|this|that|these|those|they|both|such|which)\b", re.IGNORECASE)
_GENERAL_WEIGHT = 0.25  # of words that ask of any illness
_IN_THE_WAY_ASKED = 0.6  # what a sentence gains that answers in the way that is asked

# A way of asking, and how the sentences speak that answer it.
_WAYS = [
    (  # why
        r"\bwhy\b|\bcaus|what (?:made|hurt|brought|led)|how come|\breasons?\b|c[oa]me from|\bfor what\b",
        r"because|due to|d/t|2/2|attribut|thought to|\bfelt\b|likely|\bcaus|provok|precipita|trigger"
        r"|\bgiven (?:the|\w+ and)|(?:in|i/s/o).{0,5}setting|secondary|\bfrom\b|\bfor\b|\bsince\b|in view of"
        r"|\bas (?:the|it|s?he|this|there)\b"
        r"|contraindicat|not (?:indicated|advised|needed)|\brisk|related|consistent|c/w|raise[sd]|interaction|could not"
        r"|induced|failed|contribut",
    ),
    (  # when, how long
        r"\bwhen\b|how (?:long|often|soon|many (?:more )?(?:days?|weeks?|months?|times))",
        r"(?:\d|\b(?:an?|one|two|three|four|five|six)\b) ?(?:d|h|hours?|hrs?|days?|wks?|weeks?|mos?|months?|y|years?)\b"
        r"|x ?\d|tomorrow|today|tonight|\bdaily"
        r"|\bevery\b|\bweekly|until|through|\bin (?:the )?am\b|\bonce\b|\bif\b|\bq\d|\d-\d|scheduled|\bnext\b|twice"
        r"|after|\bstop",
    ),
    (  # may I
        r"^\W*(?:can|may|should|could|must)\b|\b(?:can|may|should) (?:i|he|she|we|they)\b|\b(?:safe|dangerous)\b"
        r"|^\W*is it (?:ok|okay|all ?right)\b",
        r"\bno\b|\bnot\b|avoid|\bstop|should|\bmay\b|\bcan\b|advis|safe|compatible|limit|\bkeep\b|recommend|\brisk"
        r"|proceed|tolerat|restart|resume|until|hold|objection",
    ),
    (  # how much
        r"how (?:much|many|high|low|bad)|how (?:do|should|must|to)\b.*\btake|what dose|dos(?:e|age)\b|\blevel"
        r"|what(?:'s| is) (?:my|his|her|the)\b",
        r"\d",
    ),
    (  # what was done for it
        r"\bwhat (?:can|did|do|will|was|were|are|is)\b.*\b(?:gi?ven?|gave|do|done|use|used|treat|treated|put)\b"
        r"|\bhow (?:is|was|are|were)\b.*\btreated",
        rf"{DOSE.pattern}|start|\bgiven\b|instilled|underwent|placed|treated|received|prescribed|applied|increased",
    ),
    (  # how likely
        r"\bchances?\b|\bodds\b|how likely|\brisk of",
        r"%|percent|\brisk|likely|\bodds\b|chance",
    ),
    (  # is it so
        r"^\W*(?:(?:so|and|but) )?(?:do|does|did|is|are|was|were|has|have|am)\b|\b(?:normal|ok|okay|alright)\W*$",
        r"\bno\b|\bnot\b|without|negative|normal|positive|suspicious|unlikely|diagnos|consistent|c/w|unremarkable"
        r"|ruled out|impression|likely|probabl|\bis\b|excluded|felt|maintained|intact",
    ),
]
_PATTERNS = [(re.compile(asked, re.IGNORECASE), re.compile(said, re.IGNORECASE)) for asked, said in _WAYS]

MATCH_WEIGHT = 8.0  # log-odds of the sentence that speaks most of what a question alone asks
MOST_USUAL = 2.0  # sentences that answer it
ALONE, STORY = 20, 50  # words, up to which a message is a question alone, and from which it tells a story


@dataclass(frozen=True)
class Asked:
    """`alone` is how much a message is a question alone (0..1), `match` what each note sentence has of it (0..1), all 0
    where `alone` is."""

    alone: float
    match: Matrix

    @classmethod
    def of(cls, question: str, narrative: str, texts: Sequence[str]) -> Self:
        """By the question worked on and the message that it comes from."""
        import numpy as np

        alone = how_alone(narrative)
        whole = question if question == narrative else f"{question} {narrative}"
        return cls(alone, match(whole, texts) if alone else np.zeros(len(texts)))

    @property
    def usual(self) -> float:
        """How many sentences usually answer a question alone: as many as speak of it, MOST_USUAL at most."""
        return min(float(self.match.sum()) or MOST_USUAL, MOST_USUAL)

    @property
    def log_odds(self) -> Matrix:
        """What the match counts for each sentence."""
        counted: Matrix = self.alone * MATCH_WEIGHT * self.match
        return counted


def how_alone(narrative: str) -> float:
    """1 for a message of at most ALONE words, 0 for one of STORY and more."""
    return min(max((STORY - len(narrative.split())) / (STORY - ALONE), 0.0), 1.0)


def match(question: str, texts: Sequence[str]) -> Matrix:
    """(len(texts),) 0..1: how much of what `question` asks each sentence speaks of, 1 being the best of the note. All
    0 where the note names nothing of it. At least one text; the parts of a torn sentence share what it has."""
    import numpy as np

    parts, texts = joined(texts)
    where = places(texts)
    found = [frozenset(content_terms(text)) for text in texts]
    note = Counter(term for terms in found for term in terms)
    as_in_note = families(note)
    titles = {place.title: frozenset(content_terms(place.title)) for place in where}
    goes_on = [bool(_GOING_ON.match(text)) for text in texts]
    ways = [said for asked, said in _PATTERNS if asked.search(question)]
    scores = np.zeros(len(texts))
    for unit in units(question):
        named = [_named(unit, terms, as_in_note) for terms in found]
        if "=medication" in unit.concepts:  # a list of medicines has their doses
            named = [max(own, _OTHER_NAME * bool(DOSE.search(text))) for own, text in zip(named, texts, strict=True)]
        around = _around(named, goes_on, [_named(unit, titles[place.title], as_in_note) for place in where])
        spread = sum(strength > 0 for strength in named)
        rarity = log((len(texts) + 1) / (spread + 0.5))
        scores += np.array(around) * rarity * (_GENERAL_WEIGHT if unit.terms <= GENERAL else 1.0)
    in_the_way = np.array([any(said.search(text) for said in ways) for text in texts], dtype=float)
    scores *= 1 + _IN_THE_WAY_ASKED * in_the_way
    scores[[place.is_header for place in where]] = 0
    best: Matrix = (scores / max(scores.max(), 1e-9))[parts]
    return best


def _named(unit: Unit, terms: frozenset[str], as_in_note: Callable[[str], str]) -> float:
    """1 where all words of a thing are among the terms, less where another name of it is, else 0."""
    if unit.stems and all(as_in_note(stem) in terms for stem in unit.stems):
        return 1.0
    return _OTHER_NAME if unit.concepts & terms else 0.0


def _around(named: Sequence[float], goes_on: Sequence[bool], titles: Sequence[float]) -> list[float]:
    """The same, with what the heading and the sentence gone on with say for each sentence."""
    before = [0.0, *named[:-1]]
    return [
        max(own + _UNDER * title if own else _HEADING * title, _GOES_ON * last * on)
        for own, title, last, on in zip(named, titles, before, goes_on, strict=True)
    ]
