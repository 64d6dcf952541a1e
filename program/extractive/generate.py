"""Stage 3 without an LM: the best evidence sentences in the note's own words and order, never a word less or more."""

from __future__ import annotations

import re
from collections.abc import Sequence

import dspy

from archehr.data.case import Sentence
from archehr.program.extractive.abbreviations import write_out
from archehr.program.extractive.cues import CUES, cue_row, what_is_asked
from archehr.program.extractive.sections import places, strip_mark, whole_sentences
from archehr.program.extractive.text import content_terms
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.types import Notice

# What a kind of cue is worth in an answer; kinds that are not here are worth nothing.
_WORTH = {"reason": 1.0, "decision": 0.7, "outlook": 0.7, "opinion": 0.5, "plan": 0.2, "trend": 0.3, "evidence": 0.2,
          "change": 0.2, "reason_asked": 0.7, "decision_asked": 0.7, "outlook_asked": 0.7, "plan_asked": 0.5,
          "arrival": -1.0, "standing": -1.0, "given": -0.4}  # fmt: skip

_MASK = r"(?:_{2,}|\[\*\*(?![\d-]+\*\*\])[^\[\]]*\*\*\])"  # a blank; what hides numbers is no blank
_MASKED_ASIDE = re.compile(rf"\s*\(\s*{_MASK}(?:[\s,;/]*{_MASK})*\s*\)")
_DATE = re.compile(r"\[\*\*(\d{4}-\d{1,2}-\d{1,2})\*\*\]")
# "[**1-2**] tablets" is a range: only words on both sides make month and day of it.
_DAY = re.compile(
    r"(?<![\w/])(on|since|until|through|dated)(\s+(?:the\s+)?)\[\*\*(\d{1,2}-\d{1,2})\*\*\]"
    r"(?=\s*(?:[.,;:)]|$)|\s+(?:and|but|for|with|without|after|before|when|which|where|due|showed)\b|\s+w/)",
    re.IGNORECASE,
)


class ExtractiveGenerate(dspy.Module):
    """question, evidence, note -> answer_sentences (within settings.answer_words together), sources, the evidence ids
    behind each, and notices. Empty only where the evidence holds nothing but white space."""

    def __init__(self, settings: PipelineSettings = PRESETS["default"]) -> None:
        super().__init__()
        self.settings = settings

    def forward(self, question: str, evidence: Sequence[Sentence], note: str) -> dspy.Prediction:
        answer_sentences, sources, notices = answer(question, evidence, self.settings.answer_words)
        return dspy.Prediction(answer_sentences=answer_sentences, sources=sources, notices=notices)


def answer(question: str, evidence: Sequence[Sentence], limit: int) -> tuple[list[str], list[list[str]], list[Notice]]:
    """The whole sentences that say most about the question, as many as fit, in note order, and the ids behind each.

    Where none fits, the best one is cut at its end, which a notice tells and "…" shows.
    """
    found = [(own_words(whole), ids) for whole, ids in _wholes(evidence)]
    sizes = [len(text.split()) for text, _ in found]
    worth = [_worth(question, text) for text, _ in found]
    best_first = sorted(range(len(found)), key=lambda i: (-worth[i], i))
    chosen: list[int] = []
    for i in best_first:
        if sum(sizes[j] for j in chosen) + sizes[i] <= limit:
            chosen.append(i)
    if best_first and not chosen:
        text, ids = found[best_first[0]]
        cut = Notice("generate", "cut_words", f"a sentence of {sizes[best_first[0]]} words cut to {limit}")
        return [" ".join(text.split()[:limit]).rstrip(".,;:") + "…"], [ids], [cut]
    return [found[i][0] for i in sorted(chosen)], [found[i][1] for i in sorted(chosen)], []


def own_words(text: str) -> str:
    """A note sentence without list and section mark and without asides that are nothing but a mask; abbreviations of
    one reading written out, masked dates without their brackets, first letter and full stop as a sentence has them.

    Every other word, number and blank stays, in its place: what a note says in an aside may turn its meaning round.
    """
    body = _MASKED_ASIDE.sub("", strip_mark(text)).strip(" \t\n,;:")
    body = _DAY.sub(r"\1\2\3", _DATE.sub(r"\1", body))
    return _as_sentence(write_out(" ".join((body or text).split())))


def _wholes(evidence: Sequence[Sentence]) -> list[tuple[str, list[str]]]:
    """The evidence, torn sentences joined, without headers and without what has no word, unless there is nothing
    else."""
    where = places([s.text for s in evidence])
    visible = [s for s in evidence if s.text.strip()]
    worded = [s for s in visible if re.search(r"[^\W_]", s.text)]
    headers = {s.id for s, place in zip(evidence, where, strict=True) if place.is_header}
    kept = [s for s in worded if s.id not in headers] or worded or visible
    wholes: dict[int, tuple[str, list[str]]] = {}
    for number, sentence in zip(whole_sentences([s.text for s in kept]), kept, strict=True):
        text, ids = wholes.get(number, ("", []))
        wholes[number] = (f"{text} {sentence.text}".strip(), [*ids, sentence.id])
    return list(wholes.values())


def _worth(question: str, text: str) -> float:
    cues = dict(zip(CUES, cue_row(text, what_is_asked(question)), strict=True))
    shared = len(set(content_terms(question)) & set(content_terms(text)))
    return sum(_WORTH.get(name, 0.0) * count for name, count in cues.items()) + 0.3 * shared


def _as_sentence(text: str) -> str:
    if re.match(r"[a-z]{2,}(?![A-Za-z\d])", text):  # "pH" and "eGFR" keep their small letter
        text = text[0].upper() + text[1:]
    text = text.rstrip(" ,;:")
    return text if re.search(r"""[.!?…]["')\]]*$""", text) else f"{text}."
