"""CaseRecord: one finished case as it stands in the journal, and what submissions are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dspy
from pydantic import BaseModel, ConfigDict

from archehr.data.case import Case
from archehr.data.dataset import case_sha256, data_sha256
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
    added: dict[str, dict[str, Any]] = {}
    notices: list[dict[str, str]] = []
    unreached: list[str] = []
    usage: dict[str, Any] = {}
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
    """subtask -> {case id: prediction}, for every subtask that all records have an answer to.

    Subtask 4 holds the links of the given clinician answer sentences, or of the program's own where none are given.
    """
    made: dict[int, dict[str, Any]] = {
        1: {r.case_id: r.question for r in records},
        2: {r.case_id: r.evidence for r in records},
        3: {r.case_id: r.answer for r in records},
        4: {r.case_id: _pairs(r.given_links if r.given_links is not None else r.links) for r in records},
    }
    return {n: found for n, found in made.items() if found and all(p is not None for p in found.values())}


def answer_linked(records: Sequence[CaseRecord]) -> str:
    """Whose answer the links of subtask 4 belong to: "given", "own", "mixed", or "none"."""
    kinds = {
        "given" if r.given_links is not None else "own"
        for r in records
        if r.given_links is not None or r.links is not None
    }
    return "none" if not kinds else kinds.pop() if len(kinds) == 1 else "mixed"


def fitted_cases(provenance: Provenance, cases: Sequence[Case]) -> list[str]:
    """The ids of `cases` that a program with this provenance was made with, as far as it tells."""
    if provenance.data_sha256 == data_sha256(cases):
        return [case.id for case in cases]
    known = set(provenance.case_sha256 or ())
    return [case.id for case, sha in zip(cases, case_sha256(cases), strict=True) if sha in known] if known else []


def _pairs(links: list[Link] | None) -> list[tuple[str, list[str]]] | None:
    return None if links is None else [(link.answer_id, link.evidence_ids) for link in links]
