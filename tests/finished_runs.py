"""Finished runs for comparisons, made without answering a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from archehr.data.case import Case
from archehr.data.dataset import data_sha256, read_cases
from archehr.optimize.compare.program_run import ProgramRun
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program, to_file
from archehr.program.prompts.provenance import Provenance
from archehr.program.run.manifest import Manifest
from archehr.program.run.records import CaseRecord
from archehr.program.types import Link

TEST = read_cases("sample/test")


def run_of(
    label: str,
    cases: Sequence[Case] = TEST,
    evidence: Callable[[Case], Sequence[str]] = lambda c: [s.id for s in c.sentences[:3]],
    demos: Mapping[str, Sequence[Any]] | None = None,
    provenance: Provenance | Mapping[str, Any] | None = None,
    program: GroundedQA | None = None,
    **manifest: Any,
) -> ProgramRun:
    """A finished run whose evidence is chosen by a rule; links follow it, questions and answers are the same in all."""
    records = {
        c.id: CaseRecord(
            case_id=c.id,
            question="Why was the patient treated?",
            evidence=list(evidence(c)),
            answer_sentences=["The patient was treated."],
            answer="The patient was treated.",
            links=[Link(answer_id="1", evidence_ids=list(evidence(c)))],
            given_links=[Link(answer_id=a.id, evidence_ids=list(evidence(c))[:1]) for a in c.answer_sentences],
            usage={"calls": 5, "cache_hits": 0, "tokens_in": 100, "tokens_out": 10, "cost": 0.01},
        )
        for c in cases
    }
    file = to_file(program or load_program("zero_shot"), Provenance.model_validate(dict(provenance or {})))
    for stage, shown in (demos or {}).items():
        file.stages[stage].demos.extend(shown)
    told = {
        "data": "sample/test",
        "data_sha256": data_sha256(cases),
        "program": label,
        "program_hash": label,
        "lm": {"model": "fake"},
        "question": "own",
        "stages": ["reformulate", "score", "generate", "align"],
        "settings": {"cut": 5},
        "sessions": [{"started": "2026-01-01", "seconds": 1.5}, {"started": "2026-01-02", "seconds": 2.0}],
    }
    return ProgramRun(label, Path(f"runs/{label}"), Manifest.model_validate(told | manifest), records, file)
