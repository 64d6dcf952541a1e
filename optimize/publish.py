"""The copy of a program file that holds no text of the data: demos by case id, to be filled from the user's own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from data.case import Case
from optimize.optimize import Optimised
from program.signatures import SIGNATURES
from program.state import ProgramFile, StageState, demo_sha256
from program.types import StageName

SHARED_WORDS = 6  # so many words in a row in an instruction and in the data are a quotation


def published(file: ProgramFile, optimised: Optimised, cases: Sequence[Case]) -> ProgramFile:
    """`file` with gold demos as {"from_case", "sha256"}. Left out, and said in its provenance: bootstrapped demos,
    which no data rebuilds, and instructions that quote the data. Stages that were not optimised keep their
    hand-written demos, which are from the synthetic sample."""
    stages = dict(file.stages)
    sources = dict(file.provenance["demo_case_ids"])
    left_out: dict[str, str] = {}
    said = {gram for case in cases for gram in _grams(_text_of(case))}
    for stage, prompt in optimised.fitted.prompts.items():
        kept = [d.kind == "labelled" for d in prompt.demos]
        demos = [
            {"from_case": d.case_id, "sha256": demo_sha256(dict(d.fields))}
            for d in prompt.demos
            if d.kind == "labelled"
        ]
        sources[stage] = [s for s, keep in zip(sources[stage], kept, strict=True) if keep]
        signature, quotes = _without_quotes(stage, stages[stage].signature, said)
        gone = [f"{kept.count(False)} bootstrapped demos"] if False in kept else []
        gone += ["instructions that quote the data"] if quotes else []
        if gone:
            left_out[stage] = ", ".join(gone)
        stages[stage] = StageState(signature=signature, demos=demos)
    provenance = {
        **file.provenance,
        "lm": _model_only(file.provenance["lm"]),
        "teacher_lm": _model_only(file.provenance.get("teacher_lm")),
        "demo_case_ids": sources,
        "published": {
            "demos": "case ids only; load with --demos-from DATA",
            "left_out": left_out or "nothing",
            "scores": "those of the full program" if left_out else "those of this program",
        },
    }
    return file.model_copy(update={"stages": stages, "provenance": {k: v for k, v in provenance.items() if v}})


def _without_quotes(stage: StageName, signature: dict[str, Any], said: set[str]) -> tuple[dict[str, Any], bool]:
    own = SIGNATURES[stage].instructions
    if signature["instructions"] == own or not said & set(_grams(signature["instructions"])):
        return signature, False
    return {**signature, "instructions": own}, True


def _grams(text: str) -> list[str]:
    words = re.findall(r"\w+", text.lower())
    return [" ".join(words[i : i + SHARED_WORDS]) for i in range(len(words) - SHARED_WORDS + 1)]


def _text_of(case: Case) -> str:
    answers = [a.text for a in case.answer_sentences]
    parts = [case.narrative, case.clinician_question or "", case.note or "", *(s.text for s in case.sentences)]
    return "\n".join([*parts, *answers, (case.gold.answer if case.gold else None) or ""])


def _model_only(identity: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The model without endpoint, and without the folder of a model file."""
    if identity is None:
        return None
    kind, _, path = str(identity["model"]).partition(":")
    name = f"{kind}:{PurePath(path).name}" if kind in ("gguf", "replay") else identity["model"]
    return {"model": name}
