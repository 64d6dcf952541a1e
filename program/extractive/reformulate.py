"""Stage 1 without an LM: the message's own question, condensed and put in the third person."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import dspy

from archehr.program.extractive.focus import asks
from archehr.program.extractive.person import is_about_writer, third_person
from archehr.program.extractive.text import all_concepts, named_by, terms

WORD_LIMIT = 15

# Concepts that say how it went or what was done about it, not what the patient has.
_GENERAL = """
recover|permanent|again|stop|start|follow up|remove|cause|risk|weeks|months|machine|unlikely|confirmed|worsened
side effect|controlled|medication|family|second doctor|appointment|imaging|blood test|recovered|reversible|emergency
stable|too much|not enough|second dose|genetic|independent|damage|died|oral|walk|fall|weight|pain|movement|feeling|diet
transfuse|transfusion|end of life|missed|words|language
""".strip().replace("\n", "|")
_CANNOT_END = """
the a an of to for with and or but in on at by from if when as is was be that which their so would will can does did has
because who all
""".split()
_QUESTION = re.compile(
    r"(?:why|what|how|when|which|where|who|is|are|was|were|will|would|can|could|should|shall|does|did|has|have)\b", re.I
)


class ExtractiveReformulate(dspy.Module):
    """narrative -> question: one line, 1..15 words. The focus `phrases`, where the data has them, take the place of
    our own search for the question; the words stay the patient's."""

    def forward(self, narrative: str, phrases: tuple[str, ...] = ()) -> dspy.Prediction:
        return dspy.Prediction(question=reformulate(narrative, phrases))


def reformulate(narrative: str, phrases: tuple[str, ...] = ()) -> str:
    """The rule behind the stage: always one line of 1..15 words with one question mark, at its end."""
    source = "\n".join(p for p in phrases if p.strip()) or narrative
    about_writer = is_about_writer(narrative)
    ranked = [a for a in asks(source) if a.marked]
    questions = [q for a in ranked[:4] if (q := third_person(a.text, about_writer)) and len(q.split()) > 1]
    if not questions:
        return _ask_about_topics(narrative)
    question = questions[0]
    for extra in questions[1:]:
        if _QUESTION.match(extra) and len(f"{question} and {extra}".split()) <= WORD_LIMIT:
            question = f"{question}, and {extra[0].lower()}{extra[1:]}"
            break
    return close(question if set(terms(question)) & _medical() else _with_topics(question, narrative))


def close(question: str) -> str:
    """At most 15 words, cut where a clause ends or at least not before a word that leans on the next."""
    kept = question.split()[:WORD_LIMIT]
    if len(question.split()) > WORD_LIMIT:
        clauses = [i for i in range(5, len(kept)) if kept[i - 1].endswith(",") or kept[i] in ("and", "because")]
        kept = kept[: clauses[-1]] if clauses else kept
        while len(kept) > 4 and re.sub(r"\W", "", kept[-1].lower()) in _CANNOT_END:
            kept.pop()
    text = " ".join(kept).strip(" ,;:.!?-") or "What explains the patient's condition"
    return text[0].upper() + text[1:] + "?"


def topics(narrative: str) -> list[str]:
    """The message's own medical phrases, those of the concepts it names most often first."""
    tokens = re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", narrative.lower())
    counts = Counter(t for t in terms(narrative) if t in _medical())
    found: dict[str, frozenset[str]] = {}
    start = 0
    while start < len(tokens):
        phrase, names = _longest_phrase(tokens[start : start + 3])
        counts.update(names)
        if names and not any(names & known for known in found.values()):
            found[phrase] = names
        start += len(phrase.split()) or 1
    return sorted(found, key=lambda phrase: -max(counts[name] for name in found[phrase]))


def _longest_phrase(tokens: list[str]) -> tuple[str, frozenset[str]]:
    """The longest run from the first token on that names a medical concept, and those concepts."""
    for size in range(len(tokens), 0, -1):
        phrase = " ".join(tokens[:size])
        if names := named_by(phrase) & _medical():
            return phrase, names
    return "", frozenset()


def _with_topics(question: str, narrative: str) -> str:
    """ "Could this be normal" -> "Could this be normal, given fever and rash", as far as there is room."""
    named = topics(narrative)
    for count in (2, 1):
        longer = f"{question}, given {_list(named[:count])}"
        if named and len(longer.split()) <= WORD_LIMIT:
            return longer
    return question


def _ask_about_topics(narrative: str) -> str:
    named = _list(topics(narrative)[:3])
    return close(f"What explains {named}, and what treatment is advised" if named else "")


def _list(phrases: list[str]) -> str:
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases)


@cache
def _medical() -> frozenset[str]:
    return all_concepts() - {f"={name}" for name in _GENERAL.split("|")}
