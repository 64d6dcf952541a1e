"""Per-case metrics for optimisers: scores that need no model, acceptance of demos, and feedback in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from archehr.data.case import Case, DataError, Gold
from archehr.metrics.alignment import Pair, alignment_f1, link_pairs, scored_links
from archehr.metrics.evidence import strict_f1
from archehr.metrics.keys import TextKey, key_of
from archehr.metrics.predictions import WORD_LIMIT, cut_words
from archehr.metrics.scorers.text import Unscorable, bleu, rouge_l_sum, sari


def question_score(question: str, case: Case) -> float:
    """ROUGE-Lsum (0-1) against the clinician's question: the one component of subtask 1 that needs no model.

    Cut at 15 words first, as the official script does. Raises DataError where the case has no reference.
    """
    key: TextKey = _reference(case, 1)
    return rouge_l_sum(cut_words(question, WORD_LIMIT[1]), key.reference)


def answer_score(answer: str, case: Case) -> float:
    """Mean (0-1) of BLEU, ROUGE-Lsum and SARI against the clinician's answer: the half of the official overall score
    of subtask 3 that needs no model.

    Cut at 75 words first, as the official script does. Raises DataError where the case has no reference.
    """
    key: TextKey = _reference(case, 3)
    text = cut_words(answer, WORD_LIMIT[3])
    try:
        overlap = bleu(text, key.reference)
    except Unscorable:
        overlap = 0.0
    return (overlap + rouge_l_sum(text, key.reference) + sari(key.source or "", text, key.reference) / 100) / 3


# From which score on a case is good enough to become a demo, by subtask.
GOOD_ENOUGH = {1: 0.3, 2: 0.6, 3: 0.3, 4: 0.7}
# What each subtask scores of a prediction, and how.
_PARTS: Mapping[int, tuple[str, Callable[[Any, Case], float]]] = {
    1: ("question", question_score),
    2: ("evidence", lambda ids, case: strict_f1(ids, case.gold or Gold())),
    3: ("answer", answer_score),
    4: ("links", lambda links, case: alignment_f1(link_pairs(links), case.gold or Gold())),
}


def metric(subtask: int, threshold: float | None = None) -> Callable[..., float]:
    """A metric for dspy.Evaluate and DSPy's optimisers: `metric(example, prediction, trace=None)`.

    `example.case` is a Case with gold and `prediction` what GroundedQA gave for it. The result is the score (0-1) of
    the case in `subtask` that needs no model: ROUGE-Lsum of the question (1), strict F1 of the evidence (2), mean of
    BLEU, ROUGE-Lsum and SARI of the answer (3), F1 of the links (4). An optimiser that looks for demos passes the
    trace: then it is whether the score reaches `threshold` (by default 0.3, 0.6, 0.3 and 0.7) and the LM did not fail.

    Raises DataError for another subtask or a threshold that is not above 0; the metric, for a case without the gold or
    a prediction without the part that `subtask` scores (dspy.Evaluate stops there with max_errors=1, else counts 0).

    Example:
        >>> import archehr, dspy
        >>> case = archehr.read_cases("sample/test")[3]
        >>> example = dspy.Example(case=case).with_inputs("case")
        >>> 0 < archehr.metric(2)(example, archehr.load_program("extractive")(case=case)) <= 1
        True

    With dspy.Evaluate: `dspy.Evaluate(devset=[example, …], metric=archehr.metric(2))(program)`.
    """
    if subtask not in _PARTS:
        raise DataError(f"metric({subtask!r}): there are subtasks 1, 2, 3 and 4")
    least = GOOD_ENOUGH[subtask] if threshold is None else threshold
    accept(0.0, least)  # refuses a threshold of 0 now, not at the first case
    name, score_of = _PARTS[subtask]

    def scored(
        example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> float:
        case: Case = example.case
        _reference(case, subtask)
        part = scored_links(prediction) if subtask == 4 else getattr(prediction, name, None)
        if part is None:
            raise DataError(f"case {case.id}: the program gave no {name}, which subtask {subtask} scores")
        score = score_of(part, case)
        if trace is None or pred_name is not None:  # GEPA passes both, and wants the number
            return score
        failed = any(notice.kind == "lm_failed" for notice in getattr(prediction, "notices", ()))
        return accept(score, least) and not failed

    scored.__name__ = f"subtask_{subtask}"  # heads the table that dspy.Evaluate shows
    return scored


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
    return _joined(remarks, "Exactly the essential sentences were picked.")


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
    return _joined(remarks, "Every link is right and none is missing.")


def _reference(case: Case, subtask: int) -> Any:
    key = key_of(case, subtask)
    if key is None:
        raise DataError(f"case {case.id}: no reference for subtask {subtask}; leave the case out or add its reference")
    return key


def _joined(remarks: Sequence[tuple[str, AbstractSet[str]]], otherwise: str) -> str:
    sentences = [template.format(", ".join(sorted(ids, key=_numeric))) for template, ids in remarks if ids]
    return " ".join(sentences) or otherwise


def _arrows(links: AbstractSet[Pair]) -> set[str]:
    return {f"{answer_id} to {evidence_id}" for answer_id, evidence_id in links}


def _numeric(text: str) -> tuple[list[int], str]:
    """Sorts "10" after "2"."""
    return [int(word) for word in text.split() if word.isdecimal()], text
