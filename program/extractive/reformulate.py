"""Stage 1 without an LM: the message's own question sentence, condensed and put in the third person."""

from __future__ import annotations

import re

import dspy

from program.extractive.focus import asks
from program.extractive.text import terms

WORD_LIMIT = 15

_KIN = (
    r"(?:dad|father|papa|mom|mum|mother|mama|husband|wife|hubby|spouse|partner|fianc[eé]e?|boyfriend|girlfriend|son|daughter"
    r"|brother|sister|uncle|aunt|cousin|niece|nephew|grand(?:ma|pa|mother|father|son|daughter)|friend|baby|child|kid"
    r"|(?:father|mother|sister|brother|son|daughter)[- ]in[- ]law)"
)
_SOMEONE = re.compile(
    rf"\b(?:my|our|a|the)?\s*(?:\d+[- ]?(?:year|yr|yea)s?[- ]?old\s+)?{_KIN}(?:'s wife)?\b", re.IGNORECASE
)
_FIRST_PERSON = re.compile(rf"\b(?:i|i'?m|i'?ve|im|ive|me|my(?!\s+(?:own\s+)?{_KIN}\b))\b", re.IGNORECASE)
_THIRD_PERSON = re.compile(r"\b(?:he|she|him|her|his|hers)\b", re.IGNORECASE)

_SPELLING = {
    "dont": "don't", "cant": "can't", "doesnt": "doesn't", "didnt": "didn't", "wont": "won't", "isnt": "isn't",
    "wasnt": "wasn't", "wouldnt": "wouldn't", "couldnt": "couldn't", "shouldnt": "shouldn't", "im": "I'm", "ive": "I've",
    "u": "you", "w/": "with", "w/o": "without", "casues": "causes", "lungus": "lungs", "&": "and", "thru": "through",
}  # fmt: skip
_FILLER = re.compile(
    r"\b(?:please|pls|kindly|really|actually|exactly|honestly|basically|just|on earth|straight up|for real|or what|or not"
    r"|anyway|thank you|thanks|sir|doctor|dr|hello|hi)\b|\([^)]*\)",
    re.IGNORECASE,
)
_POSSESSIVE_HER = (
    r"her(?=\s+(?!(?:to|in|on|at|for|with|or|and|when|if|so|because|back|again|again|out|off|up|down|was|is)\b)[a-z])"
)


class ExtractiveReformulate(dspy.Module):
    """narrative -> question: one line, 1..15 words. The focus `phrases`, where the data has them, take the place of
    our own search for the question; the words stay the patient's."""

    def forward(self, narrative: str, phrases: tuple[str, ...] = ()) -> dspy.Prediction:
        return dspy.Prediction(question=reformulate(narrative, phrases))


def reformulate(narrative: str, phrases: tuple[str, ...] = ()) -> str:
    """The rule behind the stage: always one line of 1..15 words ending with a question mark."""
    source = ". ".join(p for p in phrases if p.strip()) or narrative
    about_self = is_about_writer(narrative)
    ranked = [a for a in asks(source) if a.marked or phrases]
    questions = [q for a in ranked[:4] if (q := third_person(a.text, about_self)) and len(q.split()) > 1]
    if not questions:
        return _from_topics(narrative)
    return _finish(questions, narrative)


def is_about_writer(narrative: str) -> bool:
    """Whether the writer is the patient, by who the message speaks of most and first."""
    opening = _SOMEONE.search(narrative[:160])
    others = len(_THIRD_PERSON.findall(narrative)) + (3 if opening else 0)
    return len(_FIRST_PERSON.findall(narrative)) >= others


def third_person(text: str, about_self: bool) -> str:
    """`text` without filler, with the patient named as "the patient" and asked about by somebody else."""
    text = " ".join(_SPELLING.get(w.lower(), w) for w in text.split())
    text = _FILLER.sub(" ", text)
    text = _calm(text)
    rules = _SELF_RULES if about_self else _OTHER_RULES
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    text = re.sub(r"\b(?:they|doctors|u guys)\b", "the team", text, flags=re.IGNORECASE)
    text = _name_once(text)
    return re.sub(r"\s+([,;:?.!])", r"\1", " ".join(text.split())).strip(' ,;:.!?-"')


def _rules(*pairs: tuple[str, str]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in pairs]


_SELF_RULES = _rules(
    (r"\bi'?m\b|\bi am\b", "the patient is"),
    (r"\bam i\b", "is the patient"),
    (r"\bi'?ve\b|\bi have\b", "the patient has"),
    (r"\bhave i\b", "has the patient"),
    (r"\bdo i\b", "does the patient"),
    (r"\bdon't i\b", "doesn't the patient"),
    (r"\bi don't\b", "the patient doesn't"),
    (r"\bi (need|want|feel|get|take|keep)\b", r"the patient \1s"),
    (r"\bdo you get\b", "does the patient get"),
    (r"\b(?:i|me|myself)\b", "the patient"),
    (r"\b(?:my|mine)\b", "the patient's"),
)
_OTHER_RULES = _rules(
    (rf"\b(?:my|our)\s+(?:{_KIN})'?s\b(?=\s+[a-z])", "the patient's"),
    (rf"\b(?:my|our)?\s*\b{_KIN}\b", "the patient"),
    (r"\b(?:should|shall) (?:we|i)(?: all)? be\b", "should the family be"),
    (r"\b(?:do|should) i\b", "should the family"),
    (r"\b(?:he|she|him)\b", "the patient"),
    (r"\bhis\b", "the patient's"),
    (_POSSESSIVE_HER, "the patient's"),
    (r"\bher\b", "the patient"),
    (r"\b(?:i|we|us|me)\b", "the family"),
    (r"\b(?:my|our)\b", "the family's"),
)


def _calm(text: str) -> str:
    """Shouting in lower case; what may be an acronym (2 to 5 capitals in a calm sentence) stays."""
    tokens = text.split()
    shouted = sum(w.isupper() and len(w) > 1 for w in tokens) > len(tokens) / 2
    calm = [w if not shouted and re.fullmatch(r"\W*[A-Z0-9&/-]{2,5}s?\W*", w) else w.lower() for w in tokens]
    keep = {"i": "I", "i'm": "I'm", "i've": "I've"}
    return re.sub(r"[!?]+(?=.)", ",", " ".join(keep.get(w, w) for w in calm))


def _name_once(text: str) -> str:
    """ "the patient" the first time, pronouns after that."""
    first, found, rest = text.partition("the patient")
    rest = re.sub(r"\bthe patient's\b", "their", rest)
    return first + found + rest


def _finish(questions: list[str], narrative: str) -> str:
    """Joins the second question where there is room, names the topic where the words alone do not."""
    question = questions[0]
    for extra in questions[1:]:
        if len(question.split()) + 1 + len(extra.split()) <= WORD_LIMIT and extra.lower() not in question.lower():
            question = f"{question}, and {extra}"
            break
    if not any(t.startswith("=") for t in terms(question)):
        question = f"{question} regarding {' and '.join(topics(narrative)[:2])}".removesuffix(" regarding ")
    return close(question)


def close(question: str) -> str:
    """At most 15 words, cut before a word that cannot end a question; first letter large; one question mark."""
    kept = question.split()[:WORD_LIMIT]
    if len(question.split()) > WORD_LIMIT:
        while len(kept) > 4 and re.sub(r"\W", "", kept[-1].lower()) in _CANNOT_END:
            kept.pop()
    text = " ".join(kept).strip(" ,;:.!?-") or "What explains the patient's condition"
    return text[0].upper() + text[1:] + "?"


_CANNOT_END = frozenset(
    "the a an of to for with and or but in on at by from if when as is was be that which their so".split()
)


def topics(narrative: str) -> list[str]:
    """The message's medical words and phrases, most telling first: those that name the rarer concepts, early."""
    found: dict[str, str] = {}
    for phrase in re.findall(r"[^\W\d_]+(?:[ -][^\W\d_]+)?", narrative.lower()):
        names = [t for t in terms(phrase) if t.startswith("=")]
        for name in names:
            found.setdefault(name, phrase)
    return list(dict.fromkeys(name[1:] for name in found))


def _from_topics(narrative: str) -> str:
    named = topics(narrative)[:3]
    about = ", ".join(named[:-1]) + " and " + named[-1] if len(named) > 1 else (named or ["the patient's condition"])[0]
    return close(f"What explains {about}, and what treatment is advised")
