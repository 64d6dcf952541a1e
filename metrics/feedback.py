"""Per-case metrics for optimisers: scores that need no model, acceptance of demos, and feedback in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from archehr.data.case import Case, DataError, Gold
from archehr.metrics.alignment import Pair
from archehr.metrics.keys import TextKey, key_of
from archehr.metrics.predictions import WORD_LIMIT, cut_words
from archehr.metrics.text import Unscorable, bleu, rouge_l_sum, sari


def question_score(question: str, case: Case) -> float:
    """ROUGE-Lsum (0-1) against the clinician's question: the one component of subtask 1 that needs no model.

    Cut at 15 words first, as the official script does. Raises DataError where the case has no reference.
    """
    return rouge_l_sum(cut_words(question, WORD_LIMIT[1]), _reference(case, 1).reference)


def answer_score(answer: str, case: Case) -> float:
    """Mean (0-1) of BLEU, ROUGE-Lsum and SARI against the clinician's answer: the half of the official overall score
    of subtask 3 that needs no model.

    Cut at 75 words first, as the official script does. Raises DataError where the case has no reference.
    """
    key = _reference(case, 3)
    text = cut_words(answer, WORD_LIMIT[3])
    try:
        overlap = bleu(text, key.reference)
    except Unscorable:
        overlap = 0.0
    return (overlap + rouge_l_sum(text, key.reference) + sari(key.source or "", text, key.reference) / 100) / 3


def accept(score: float, threshold: float) -> bool:
    """Whether a case scored well enough to become a demo. Raises DataError unless the threshold is above 0: at 0
    every wrong answer would pass."""
    if threshold <= 0:
        raise DataError(f"acceptance threshold {threshold}: it must be above 0")
    return score >= threshold


def evidence_feedback(predicted: Iterable[str], gold: Gold) -> str:
    """What was missed and what was picked in vain, in one or two sentences, by sentence id."""
    picked = set(predicted)
    essential, supplementary = gold.essential, gold.supplementary
    remarks = [
        ("Essential but not picked: sentence {}.", essential - picked),
        ("Picked but only supplementary: sentence {}.", picked & supplementary - essential),
        ("Picked but not relevant: sentence {}.", picked - essential - supplementary),
    ]
    return _said(remarks, "Exactly the essential sentences were picked.")


def alignment_feedback(links: Iterable[Pair], gold: Gold) -> str:
    """Which links are missing and which are wrong, by answer and note sentence id."""
    predicted, expected = set(links), gold.links or frozenset()
    remarks = [
        ("Missing links (answer sentence to note sentence): {}.", _arrows(expected - predicted)),
        (
            "Wrong links, the note sentence does not directly support the answer sentence: {}.",
            _arrows(predicted - expected),
        ),
    ]
    return _said(remarks, "Every link is right and none is missing.")


def _reference(case: Case, subtask: int) -> TextKey:
    key: TextKey | None = key_of(case, subtask)
    if key is None:
        raise DataError(f"case {case.id}: no reference for subtask {subtask}; leave the case out or add its reference")
    return key


def _said(remarks: Sequence[tuple[str, AbstractSet[str]]], otherwise: str) -> str:
    said = [template.format(", ".join(sorted(ids, key=_numeric))) for template, ids in remarks if ids]
    return " ".join(said) or otherwise


def _arrows(links: AbstractSet[Pair]) -> set[str]:
    return {f"{answer_id} to {evidence_id}" for answer_id, evidence_id in links}


def _numeric(text: str) -> tuple[list[int], str]:
    """Sorts "10" after "2"."""
    return [int(word) for word in text.split() if word.isdecimal()], text
