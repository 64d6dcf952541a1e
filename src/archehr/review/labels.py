"""Labels: what a reviewer says of one case, what the program said beforehand, and what is still missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict

from archehr.data.case import Case, Relevance
from archehr.data.submission import WORD_LIMITS
from archehr.program.declining import NOT_ANSWERED
from archehr.program.run.records import CaseRecord
from archehr.program.types import Link

LEAST_SUPPLEMENTARY = 3  # a score from here up, below the cut, is marked supplementary beforehand

Harm = Literal["none", "could mislead", "could harm"]


class AnswerLine(BaseModel):
    """One answer sentence and the ids of the note sentences that support it, in note order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    text: str
    links: tuple[str, ...] = ()


class Labels(BaseModel):
    """A reviewer's reading of one case. `marks` holds every note sentence, None where it is not marked yet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = ""
    marks: dict[str, Relevance | None] = {}
    answer: tuple[AnswerLine, ...] = ()
    not_answered: bool = False
    harm: Harm | None = None
    remark: str = ""
    finished: bool = False

    @property
    def essential(self) -> frozenset[str]:
        """Ids of the sentences marked essential: the evidence."""
        return frozenset(i for i, mark in self.marks.items() if mark is Relevance.ESSENTIAL)

    @property
    def lines(self) -> tuple[AnswerLine, ...]:
        """The answer as it counts: none of it where the note does not answer."""
        return () if self.not_answered else self.answer

    def same_reading(self, other: Labels) -> bool:
        """Whether both would be exported as the same labels; a remark and a grade of harm are nobody else's."""
        mine, theirs = (
            (r.question.strip(), r.marks, r.not_answered, [(a.text.strip(), a.links) for a in r.lines])
            for r in (self, other)
        )
        return mine == theirs


def faults(labels: Labels) -> list[str]:
    """What keeps a case from being finished."""
    return list(_faults(labels))


def _faults(labels: Labels) -> Iterator[str]:
    if not labels.question.strip():
        yield "The question is empty."
    if unmarked := [i for i, mark in labels.marks.items() if mark is None]:
        yield f"{len(unmarked)} note sentences are not marked, the first is {unmarked[0]}."
    if labels.not_answered and labels.essential:
        yield f"The note does not answer this, yet {_listed(labels.essential)} is marked essential."
    if not labels.not_answered and not labels.answer:
        yield "There is no answer sentence."
    for line in labels.lines:
        if not line.text.strip():
            yield f"Answer sentence {line.id} is empty."


def doubts(labels: Labels) -> list[str]:
    """What a reviewer may want to look at again before finishing."""
    return list(_doubts(labels))


def _doubts(labels: Labels) -> Iterator[str]:
    if (words := len(labels.question.split())) > WORD_LIMITS[1]:
        yield f"The question has {words} words; {WORD_LIMITS[1]} count."
    if (words := sum(len(line.text.split()) for line in labels.lines)) > WORD_LIMITS[3]:
        yield f"The answer has {words} words; {WORD_LIMITS[3]} count."
    for line in labels.lines:
        if odd := [i for i in line.links if labels.marks.get(i) is Relevance.NOT_RELEVANT]:
            yield f"Answer sentence {line.id} cites {_listed(odd)}, marked not relevant."


def said_beforehand(case: Case, record: CaseRecord | None, cut: int) -> Labels:
    """The labels a case starts from: the program's where there is a run, else the key's, else none.

    A question that the data gives stays: it is an input of the task, not the program's.
    """
    if record is None:
        return _said_by_key(case)
    declined = record.answer == NOT_ANSWERED or any(n["kind"] == "not_answered" for n in record.notices)
    return Labels(
        question=case.clinician_question or record.question or "",
        marks=_marks_of(case, record, cut),
        answer=() if declined else _lines_of(case, record),
        not_answered=declined,
    )


def _marks_of(case: Case, record: CaseRecord, cut: int) -> dict[str, Relevance | None]:
    if record.evidence is None:
        return dict.fromkeys(s.id for s in case.sentences)
    scores = {s.id: s.score for s in record.scores or ()}
    evidence = set(record.evidence)

    def mark(sentence_id: str) -> Relevance:
        if sentence_id in evidence:
            return Relevance.ESSENTIAL
        return Relevance.SUPPLEMENTARY if scores.get(sentence_id, 0) >= LEAST_SUPPLEMENTARY else Relevance.NOT_RELEVANT

    return {s.id: mark(s.id) for s in case.sentences}


def _lines_of(case: Case, record: CaseRecord) -> tuple[AnswerLine, ...]:
    """The program's own answer, or the given one where the run only aligned that."""
    if record.answer_sentences is not None:
        texts = {str(i): text for i, text in enumerate(record.answer_sentences, 1)}
        return _lines(case, texts, record.links)
    return _lines(case, {a.id: a.text for a in case.answer_sentences}, record.given_links)


def _lines(case: Case, texts: dict[str, str], links: list[Link] | None) -> tuple[AnswerLine, ...]:
    cited = {link.answer_id: set(link.evidence_ids) for link in links or ()}
    return tuple(
        AnswerLine(id=i, text=text, links=in_note_order(case, cited.get(i, set()))) for i, text in texts.items()
    )


def _said_by_key(case: Case) -> Labels:
    gold = case.gold
    relevance = (gold.relevance if gold else None) or {}
    citations = {a.id: set(a.citations or ()) for a in gold.answer_sentences} if gold else {}
    declined = [a.text for a in case.answer_sentences] == [NOT_ANSWERED]
    return Labels(
        question=case.clinician_question or "",
        marks={s.id: relevance.get(s.id) for s in case.sentences},
        answer=()
        if declined
        else tuple(
            AnswerLine(id=a.id, text=a.text, links=in_note_order(case, citations.get(a.id, set())))
            for a in case.answer_sentences
        ),
        not_answered=declined,
    )


def in_note_order(case: Case, ids: set[str]) -> tuple[str, ...]:
    """The note's ids among `ids`, in note order."""
    return tuple(s.id for s in case.sentences if s.id in ids)


def _listed(ids: frozenset[str] | list[str]) -> str:
    return ", ".join(sorted(ids, key=lambda i: (len(i), i)))
