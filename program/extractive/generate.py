"""Stage 3 without an LM: the best evidence, compressed, its abbreviations written out, never a word of our own."""

from __future__ import annotations

import re
from collections.abc import Sequence

import dspy

from data.case import Sentence
from program.extractive.abbreviations import expand
from program.extractive.sections import places, strip_mark
from program.extractive.text import terms

WORD_LIMIT = 75

_DATE = re.compile(r"\s*(?:\(?\b(?:on|since|from|until|at)\s+)?\[\*\*[^\]]*\*\*\]\)?")
_PARENTHESIS = re.compile(r"\s*\([^()]*\)")
_NAME = re.compile(r"\s*\(?\bDr\.(?:\s+___)?\)?|\b___\b")


class ExtractiveGenerate(dspy.Module):
    """question, evidence, note -> answer_sentences (at most 75 words together) and sources, the ids behind each."""

    def forward(self, question: str, evidence: Sequence[Sentence], note: str) -> dspy.Prediction:
        texts, sources = answer(question, evidence)
        return dspy.Prediction(answer_sentences=texts, sources=sources)


def answer(question: str, evidence: Sequence[Sentence]) -> tuple[list[str], list[list[str]]]:
    """The evidence that says most about the question, shortest form, in note order, within 75 words."""
    asked = set(terms(question))
    where = places([s.text for s in evidence])
    usable = [(s, t) for s, p in zip(evidence, where, strict=True) if not p.is_header and (t := compress(s.text))]
    usable = usable or [(s, t) for s in evidence if (t := compress(s.text))]
    ranked = sorted(range(len(usable)), key=lambda i: (-len(asked & set(terms(usable[i][0].text))), i))
    chosen, used = [], 0
    for i in ranked:
        size = len(usable[i][1].split())
        if used + size <= WORD_LIMIT:
            chosen.append(i)
            used += size
    if usable and not chosen:
        return [_cut(usable[ranked[0]][1])], [[usable[ranked[0]][0].id]]
    return [usable[i][1] for i in sorted(chosen)], [[usable[i][0].id] for i in sorted(chosen)]


def compress(text: str) -> str:
    """One note sentence without list mark, dates, names and asides, abbreviations written out, as a sentence."""
    text = strip_mark(text)
    text = _PARENTHESIS.sub("", _NAME.sub("", _DATE.sub("", text)))
    text = expand(text)
    text = re.sub(r"\s+([,;:.])", r"\1", " ".join(text.split())).strip(" ,;:-")
    if not re.search(r"\w", text):
        return ""
    text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?" else text + "."


def _cut(text: str) -> str:
    return " ".join(text.split()[:WORD_LIMIT]).rstrip(".,;:") + "."
