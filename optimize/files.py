"""The program file of an optimisation, and its copy without note text."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dspy

from data.case import Case
from data.submission import write_private
from optimize.calls import BASELINES
from optimize.optimize import Optimised
from optimize.search import Options
from program.records import case_sha256, data_sha256
from program.run import lm_identity
from program.state import ProgramFile, predictor, to_file
from program.types import STAGES


def program_file(
    optimised: Optimised,
    options: Options,
    cases: Sequence[Case],
    data_name: str,
    lm: dspy.LM,
    teacher_lm: dspy.LM,
    models: Sequence[str],
) -> ProgramFile:
    """The optimised program with where it comes from and how it scored. Everything but `created` is a function of
    the options, the data and the LM's replies. `models` are the model versions that replied."""
    label = data_label(data_name)
    provenance = {
        "made_by": "archehr optimize",
        "optimizer": options.optimizer,
        "options": {
            "stages": list(options.stages),
            "demos": options.demos,
            "demo_tokens": options.token_budget,
            "candidates": options.candidates,
            "folds": options.folds,
            "seed": options.seed,
            "weights": {str(n): w for n, w in options.weights.items()},
        },
        "lm": lm_identity(lm),
        "teacher_lm": lm_identity(teacher_lm) if teacher_lm is not lm else None,
        "model_version": sorted(models),
        "versions": {p: importlib.metadata.version(p) for p in ("archehr-dspy", "dspy")},
        "data": label,
        "data_sha256": data_sha256(cases),
        "case_sha256": case_sha256(cases),
        "demo_case_ids": _demo_sources(optimised, label, teacher_lm),
        "prompt_tokens_estimated": dict(optimised.prompt_tokens),
        "candidate_objectives": [round(x, 2) for x in optimised.fitted.objectives],
        "scores": scores_json(optimised),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return to_file(optimised.program, {k: v for k, v in provenance.items() if v is not None})


def data_label(data_name: str) -> str:
    """A name for DATA that tells no path of this machine."""
    return data_name.rstrip("/") if data_name.startswith("sample/") else Path(data_name).stem


def scores_json(optimised: Optimised) -> dict[str, Any]:
    """Headline scores (0-100) with 95 % intervals, by table and subtask, and gains over the baselines."""
    scores: dict[str, Any] = {}
    for name in optimised.tables:
        scores[name] = {
            f"subtask_{n}": {"score": score, **_rounded(interval.as_dict())}
            for n, (score, interval) in optimised.intervals(name).items()
        }
    for name in BASELINES:
        gains = optimised.gains(name)
        scores[f"out_of_sample_minus_{name}"] = {f"subtask_{n}": _rounded(g.as_dict()) for n, g in gains.items()}
    return scores


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in values.items()}


def _demo_sources(optimised: Optimised, label: str, teacher_lm: dspy.LM) -> dict[str, list[str]]:
    """Stage -> where each demo is from, in the order shown; those of untouched stages are the hand-written ones."""
    kept = optimised.base_provenance.get("demo_case_ids", {})
    sources: dict[str, list[str]] = {}
    for stage in STAGES:
        if stage in optimised.fitted.prompts:
            demos = optimised.fitted.prompts[stage].demos
            kinds = {"labelled": "labelled", "bootstrapped": f"bootstrapped from {teacher_lm.model}"}
            sources[stage] = [f"{label} {d.case_id} ({kinds[d.kind]})" for d in demos]
        elif predictor(optimised.program, stage).demos:
            sources[stage] = list(kept.get(stage, ()))
    return sources


def note_models(path: Path, lm: dspy.LM, teacher_lm: dspy.LM) -> list[str]:
    """The model versions that ever replied to these LMs' calls, sorted; those of this session are added to `path`,
    for replies from the cache name none."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    asked = json.dumps([lm_identity(lm), lm_identity(teacher_lm)], sort_keys=True)
    known[asked] = sorted({*known.get(asked, ()), *lm.ledger.models(), *teacher_lm.ledger.models()})
    write_private(path, json.dumps(known) + "\n")
    return list(known[asked])
