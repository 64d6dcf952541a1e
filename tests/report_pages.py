"""Finished cases for reports: the sample's, answered once without an LM, under as many ids as a test asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from archehr.data.case import Case
from archehr.data.dataset import read_cases
from archehr.program.extractive_program import extractive_program
from archehr.program.run.manifest import Manifest
from archehr.program.run.records import CaseRecord
from archehr.program.run.report import write_report
from archehr.program.run.run import run_cases
from archehr.program.types import Link, Notice

Pair = tuple[Case, CaseRecord]


@cache
def answered() -> tuple[tuple[Pair, ...], Manifest]:
    """The cases of sample/test that the extractive program answers, and the manifest of that run."""
    cases = read_cases("sample/test")
    result = run_cases(cases, extractive_program())
    pairs = zip(cases, result.records, strict=True)
    return tuple(p for p in pairs if not p[1].declined), result.manifest


def many(count: int) -> Iterator[Pair]:
    """`count` finished cases, one after the other, with ids "1", "2", …"""
    pairs, _ = answered()
    for number in range(count):
        case, record = pairs[number % len(pairs)]
        name = str(number + 1)
        yield replace(case, id=name), record.model_copy(update={"case_id": name})


def with_notices(record: CaseRecord, *notices: Notice) -> CaseRecord:
    return record.model_copy(update={"notices": [*record.notices, *(n.as_dict() for n in notices)]})


def without_support(record: CaseRecord) -> CaseRecord:
    """The record with an answer whose first sentence cites nothing."""
    assert record.links
    return record.model_copy(update={"links": [Link(answer_id="1", evidence_ids=[]), *record.links[1:]]})


def written(pairs: Sequence[Pair], folder: Path, scores: dict[str, Any] | None = None, **manifest: Any) -> Path:
    """report.html of these finished cases."""
    folder.mkdir(parents=True, exist_ok=True)
    told = answered()[1].model_copy(update={"data": "sample/test", "cases_done": len(pairs), **manifest})
    write_report(told, scores or {}, (c for c, _ in pairs), (r for _, r in pairs), folder / "report.html")
    return folder / "report.html"


def scored(means: dict[str, float]) -> dict[str, Any]:
    """A scores.json of subtask 2 in which each case alone has this score."""
    cases = {i: {"strict_micro_f1": value} for i, value in means.items()}
    board = {"strict_micro_f1": 50.0}
    return {"subtask_2": {"leaderboard": board, "intervals": {}, "missing": {}, "case_scores": cases}}
