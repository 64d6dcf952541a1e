"""CaseRecord: one finished case as it stands in the journal, what submissions are made of, and sums over records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dspy
from pydantic import BaseModel, ConfigDict, Field

from archehr.data.case import Case
from archehr.data.case_file import ids_of
from archehr.data.dataset import data_sha256
from archehr.data.hashes import case_hash
from archehr.data.submission import SUBTASKS
from archehr.program.prompts.provenance import Provenance
from archehr.program.types import AgreedScore, Link, SentenceScore, Verdict


class CaseRecord(BaseModel):
    """What the program said of one case. Parts that were not asked for, or had no input, are None. `unreached` are the
    stages that fell back because no LM could be reached."""

    model_config = ConfigDict(extra="forbid")

    case_id: str
    question: str | None = None
    scores: list[AgreedScore | SentenceScore] | None = None
    evidence: list[str] | None = None
    answer_sentences: list[str] | None = None
    answer: str | None = None
    declined: bool | None = None
    links: list[Link] | None = None
    verdicts: list[Verdict] | None = None
    given_links: list[Link] | None = None
    added: dict[str, dict[str, Any]] = Field(default_factory=dict)
    notices: list[dict[str, str]] = Field(default_factory=list)
    unreached: list[str] = Field(default_factory=list)
    usage: dict[str, Any] = Field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def of(
        cls,
        case: Case,
        prediction: dspy.Prediction,
        usage: Mapping[str, Any],
        seconds: float,
        unreached: Sequence[str] = (),
    ) -> CaseRecord:
        """The record of one prediction of GroundedQA."""
        parts = {name: prediction.get(name) for name in cls.model_fields if name in prediction}
        parts["notices"] = [n.as_dict() for n in prediction.notices]
        parts["unreached"] = list(unreached)
        return cls(case_id=case.id, usage=dict(usage), seconds=round(seconds, 3), **parts)


def submissions(records: Sequence[CaseRecord]) -> dict[int, dict[str, Any]]:
    """subtask -> {case id: prediction}, for every subtask that all records have an answer to."""
    made: dict[int, dict[str, Any]] = {n: {r.case_id: submitted(r, n) for r in records} for n in SUBTASKS}
    return {n: found for n, found in made.items() if found and all(p is not None for p in found.values())}


def submitted(record: CaseRecord, subtask: int) -> Any:
    """What a submission holds of a case, None where there is nothing.

    Subtask 4 holds the links of the given clinician answer sentences, or of the program's own where none are given.
    """
    if subtask == 4:
        return _pairs(record.given_links if record.given_links is not None else record.links)
    return {1: record.question, 2: record.evidence, 3: record.answer}[subtask]


class Tally:
    """Finished cases in sums, which a case can be taken out of again."""

    def __init__(self, records: Iterable[CaseRecord] = ()) -> None:
        self.cases = 0
        self.unreached: dict[str, None] = {}  # ids of cases for which no LM was reached, in the order they came
        self._notices: Counter[str] = Counter()
        self._links: Counter[str] = Counter()
        self._answered: Counter[int] = Counter()
        for record in records:
            self.add(record)

    def add(self, record: CaseRecord) -> None:
        self._count(record, 1)
        if record.unreached:
            self.unreached[record.case_id] = None

    def remove(self, record: CaseRecord) -> None:
        self._count(record, -1)
        self.unreached.pop(record.case_id, None)

    def _count(self, record: CaseRecord, by: int) -> None:
        self.cases += by
        for notice in record.notices:
            self._notices[notice["kind"]] += by
        if record.given_links is not None or record.links is not None:
            self._links["own" if record.given_links is None else "given"] += by
        for subtask in SUBTASKS:
            if submitted(record, subtask) is not None:
                self._answered[subtask] += by

    @property
    def notices(self) -> dict[str, int]:
        """How many there are of each kind, by kind."""
        return dict(sorted((+self._notices).items()))

    @property
    def links(self) -> str:
        """Whose answer the links of subtask 4 belong to: "given", "own", "mixed", or "none"."""
        kinds = list(+self._links)
        return "mixed" if len(kinds) > 1 else kinds[0] if kinds else "none"

    @property
    def subtasks(self) -> list[int]:
        """The subtasks that every case has an answer to."""
        return [n for n in SUBTASKS if self.cases and self._answered[n] == self.cases]

    @property
    def unanswered(self) -> dict[int, int]:
        """Subtask -> how many cases have no answer to it, where others have one."""
        return {n: self.cases - self._answered[n] for n in SUBTASKS if 0 < self._answered[n] < self.cases}


def fitted_cases(provenance: Provenance, cases: Sequence[Case]) -> list[str]:
    """The ids of `cases` that a program with this provenance was made with, as far as it tells."""
    if provenance.data_sha256 == data_sha256(cases):
        return list(ids_of(cases))
    known = set(provenance.case_sha256 or ())
    return [case.id for case in cases if case_hash(case) in known] if known else []


def _pairs(links: list[Link] | None) -> list[tuple[str, list[str]]] | None:
    return None if links is None else [(link.answer_id, link.evidence_ids) for link in links]
