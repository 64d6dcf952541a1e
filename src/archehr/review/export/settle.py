"""Which reading of a finished case counts, and the case with its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from archehr.data.case import AnswerSentence, Case, Gold
from archehr.program.declining import NOT_ANSWERED
from archehr.review.agreement import Reviews
from archehr.review.history import CaseReview
from archehr.review.journal import ADJUDICATED
from archehr.review.labels import AnswerLine


@dataclass(frozen=True)
class Reviewed:
    """A case with the labels that count, and who gave them."""

    case: Case
    reviewer: str
    review: CaseReview

    @property
    def facts(self) -> dict[str, Any]:
        """What the official form has no place for."""
        labels = self.review.labels
        return {
            "reviewer": self.reviewer,
            "not_answered": labels.not_answered,
            "harm": labels.harm,
            "remark": labels.remark.strip(),
            "blind": self.review.opened.blind,
            "seconds": round(self.review.seconds, 1),
        }


def settled(
    cases: Mapping[str, Case], reviews: Mapping[str, Reviews], adjudicated: Reviews, only: str | None = None
) -> tuple[list[Reviewed], list[str]]:
    """The labelled cases, in order, and the ids of those that reviewers read differently and nobody has adjudicated.

    What was adjudicated counts before what a reviewer said; `only` takes one reviewer's readings as they are.
    """
    readings, open_ids = [], []
    for case_id, case in cases.items():
        by = {name: finished[case_id] for name, finished in reviews.items() if case_id in finished}
        if only is not None:
            by = {name: review for name, review in by.items() if name == only}
        elif case_id in adjudicated:
            by = {ADJUDICATED: adjudicated[case_id]}
        if not by:
            continue
        (name, first), *others = by.items()
        if all(first.labels.same_reading(other.labels) for _, other in others):
            readings.append(Reviewed(labelled(case, first), name, first))
        else:
            open_ids.append(case_id)
    return readings, open_ids


def labelled(case: Case, review: CaseReview) -> Case:
    """The case with the reviewed question, answer sentences and gold."""
    labels = review.labels
    lines = (AnswerLine(id="1", text=NOT_ANSWERED),) if labels.not_answered else labels.answer
    answer = tuple(AnswerSentence(line.id, line.text.strip(), line.links) for line in lines)
    relevance = {i: mark for i, mark in labels.marks.items() if mark is not None}
    return replace(
        case,
        clinician_question=labels.question.strip(),
        answer_sentences=tuple(AnswerSentence(a.id, a.text) for a in answer),
        gold=Gold(relevance, " ".join(a.text for a in answer), answer),
    )
