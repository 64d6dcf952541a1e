"""Stage 3 without an LM: the best evidence, compressed, its abbreviations written out, never a word of our own."""

from __future__ import annotations

import re
from collections.abc import Sequence

import dspy

from archehr.data.case import Sentence
from archehr.program.extractive.abbreviations import expand
from archehr.program.extractive.cues import CUES, cue_row, what_is_asked
from archehr.program.extractive.features import content_terms, whole_sentences
from archehr.program.extractive.sections import places, strip_mark

WORD_LIMIT = 75

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
# What a kind of cue is worth in an answer; kinds that are not here are worth nothing.
_WORTH = {"reason": 1.0, "decision": 0.7, "outlook": 0.7, "opinion": 0.5, "plan": 0.2, "trend": 0.3, "evidence": 0.2,
          "change": 0.2, "reason_asked": 0.7, "decision_asked": 0.7, "outlook_asked": 0.7, "plan_asked": 0.5,
          "arrival": -1.0, "standing": -1.0, "given": -0.4}  # fmt: skip

_DATE = re.compile(r"\[\*\*(?:\d{4}-)?(\d{1,2})-(\d{1,2})\*\*\]")
_MASK = re.compile(r"\[\*\*.*?\*\*\]|_{2,}")
_DOCTOR = re.compile(
    r"\s*\((?:by )?Drs?\.\s*_*\s*(?:,[^()]*)?\)|,?\s*(?:\b(?:by|with|from|per)\s+)?\bDrs?\.(?:\s+_{2,})?,?"
)
_ASIDE = re.compile(r"\s*\(([^()]*)\)")
_DANGLING = re.compile(r"\b(?:on|by|of|at|since|from|until|through|with|and|to|the)(?=\s*[,;.)]|\s*$)", re.IGNORECASE)


class ExtractiveGenerate(dspy.Module):
    """question, evidence, note -> answer_sentences (1..75 words together) and sources, the evidence ids behind each.
    Both are empty where the evidence holds no word."""

    def forward(self, question: str, evidence: Sequence[Sentence], note: str) -> dspy.Prediction:
        answer_sentences, sources = answer(question, evidence)
        return dspy.Prediction(answer_sentences=answer_sentences, sources=sources)


def answer(question: str, evidence: Sequence[Sentence]) -> tuple[list[str], list[list[str]]]:
    """The sentences that say most about the question, compressed, in note order, and the ids behind each."""
    found = [(text, ids) for whole, ids in _wholes(evidence) if (text := compress(whole))]
    sizes = [len(text.split()) for text, _ in found]
    chosen: list[int] = []
    for i in sorted(range(len(found)), key=lambda i: (-_worth(question, found[i][0]), i)):
        if sum(sizes[j] for j in chosen) + sizes[i] <= WORD_LIMIT:
            chosen.append(i)
    if found and not chosen:  # every sentence is longer than an answer may be
        text, ids = found[0]
        return [_close(" ".join(text.split()[:WORD_LIMIT]))], [ids]
    return [found[i][0] for i in sorted(chosen)], [found[i][1] for i in sorted(chosen)]


def compress(text: str) -> str:
    """One note sentence without list mark, masked names, asides of numbers; dates and abbreviations written out.
    Empty where no word is left."""
    text = _DATE.sub(_month_and_day, strip_mark(text))
    text = _MASK.sub("", _DOCTOR.sub(" ", text))
    text = _ASIDE.sub(lambda aside: aside[0] if _tells(aside[1]) else "", text)
    text = _DANGLING.sub("", expand(text))
    text = re.sub(r"\(\s*\)|\s+(?=[,;:.)])", "", " ".join(text.split()))
    text = re.sub(r"([,;:])(?:\s*[,;:])+", r"\1", text).strip(" ,;:-")
    return _close(text) if re.search(r"\w", text) else ""


def _wholes(evidence: Sequence[Sentence]) -> list[tuple[str, list[str]]]:
    """The evidence without headers (unless there is nothing else), torn sentences joined."""
    where = places([s.text for s in evidence])
    kept = [s for s, place in zip(evidence, where, strict=True) if not place.is_header] or list(evidence)
    wholes: dict[int, tuple[str, list[str]]] = {}
    for number, sentence in zip(whole_sentences([s.text for s in kept]), kept, strict=True):
        text, ids = wholes.get(number, ("", []))
        wholes[number] = (f"{text} {sentence.text}".strip(), [*ids, sentence.id])
    return list(wholes.values())


def _worth(question: str, text: str) -> float:
    cues = dict(zip(CUES, cue_row(text, what_is_asked(question)), strict=True))
    shared = len(set(content_terms(question)) & set(content_terms(text)))
    return sum(_WORTH.get(name, 0.0) * count for name, count in cues.items()) + 0.3 * shared


def _month_and_day(date: re.Match[str]) -> str:
    month, day = int(date[1]), int(date[2])
    return f"{MONTHS[month - 1]} {day}" if 1 <= month <= 12 and 1 <= day <= 31 else ""


def _tells(aside: str) -> bool:
    """Whether an aside says something in words: values, doses and doctors' names go."""
    return len(aside.split()) >= 3 and not re.search(r"\d", aside)


def _close(text: str) -> str:
    text = text.rstrip(",;:- ")
    if text[0].isascii():  # the capital of "ß" is another word
        text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?" else f"{text}."
