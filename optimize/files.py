"""The program file of an optimisation, and its copy without note text, whose demos are case ids."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from archehr.data.case import Case
from archehr.data.dataset import Dataset, case_sha256, data_sha256
from archehr.data.files import write_private
from archehr.data.joined import data_label
from archehr.metrics.intervals import bootstrap
from archehr.optimize.calls import BASELINES
from archehr.optimize.optimize import Optimised
from archehr.optimize.optimizers.optimizer import Options
from archehr.program.prompts.fitted_cut import evidence_prompts
from archehr.program.prompts.program_file import ProgramFile, StageState, demo_sha256, to_file
from archehr.program.prompts.provenance import Provenance, provenance_of
from archehr.program.stage_lms import LMs, each, given_identity, lm_for
from archehr.program.stages.registry import PROMPTED, prompted
from archehr.program.stages.stage import predictor
from archehr.program.stages.views.vote import views_in_words
from archehr.program.types import StageName

SHARED_WORDS = 6  # so many words in a row in an instruction and in the data are a quotation


def program_file(
    optimised: Optimised,
    options: Options,
    data: Dataset,
    lm: LMs,
    teacher_lm: LMs,
    models: Sequence[str],
) -> ProgramFile:
    """The optimised program with where it comes from and how it scored. Everything but `created` is a function of
    the options, the data and the LM's replies. `models` are the model versions that replied."""
    label = data_label(data.name)
    asked = (lm_for(lm, view.name) for view in optimised.program.settings.views)
    views = [one.model for one in asked if one is not None]
    provenance = Provenance(
        made_by="archehr optimize",
        optimizer=options.optimizer,
        options={
            "stages": list(options.stages),
            "demos": list(options.demos_tried) or options.demos,
            **({"demos_of": dict(options.demos_of)} if options.demos_of else {}),
            **({"views": [str(view) for view in options.views]} if options.views else {}),
            "demo_tokens": options.token_budget,
            "candidates": options.candidates,
            "folds": options.folds,
            "seed": options.seed,
            "weights": {str(n): w for n, w in options.weights.items()},
        },
        lm=given_identity(lm),
        teacher_lm=given_identity(teacher_lm) if teacher_lm is not lm else None,
        model_version=sorted(models),
        versions={p: importlib.metadata.version(p) for p in ("archehr-dspy", "dspy")},
        data=label,
        data_sha256=data_sha256(data.cases),
        case_sha256=case_sha256(data.cases),
        demo_case_ids=_demo_sources(optimised, label, teacher_lm),
        prompt_tokens_estimated=dict(optimised.prompt_tokens),
        candidate_objectives=[round(x, 2) for x in optimised.fitted.objectives],
        scores=scores_json(optimised),
        votes=_votes_json(optimised),
        cut_fitted_to={"prompts": evidence_prompts(optimised.program), "lm": ", ".join(dict.fromkeys(views))},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return to_file(optimised.program, provenance_of(optimised.program, provenance))


def _votes_json(optimised: Optimised) -> dict[str, Any] | None:
    """Subtask 2 out of sample by calls a case, where several views were to choose from."""
    rows = {
        str(votes): {
            "strict_micro_f1": _rounded(bootstrap(table)["strict_micro_f1"].as_dict()),
            "views": views_in_words(optimised.fitted.by_votes[votes]),
        }
        for votes, table in optimised.by_votes.items()
    }
    return rows or None


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


def _demo_sources(optimised: Optimised, label: str, teacher_lm: LMs) -> dict[str, list[str]]:
    """Stage -> where each demo is from, in the order shown; those of untouched stages are the hand-written ones."""
    base = optimised.base_provenance.demo_case_ids
    sources: dict[str, list[str]] = {}
    for stage in prompted(optimised.program):
        if stage in optimised.fitted.prompts:
            demos = optimised.fitted.prompts[stage].demos
            teacher = lm_for(teacher_lm, stage)
            kinds = {"labelled": "labelled", "bootstrapped": f"bootstrapped from {teacher.model if teacher else ''}"}
            sources[stage] = [f"{label} {d.case_id} ({kinds[d.kind]})" for d in demos]
        elif predictor(getattr(optimised.program, stage), stage).demos:
            sources[stage] = list(base.get(stage, ()))
    return sources


def note_models(path: Path, lm: LMs, teacher_lm: LMs) -> list[str]:
    """The model versions that ever replied to these LMs' calls, sorted; those of this session are added to `path`,
    for replies from the cache name none."""
    try:
        versions = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        versions = {}
    key = json.dumps([given_identity(lm), given_identity(teacher_lm)], sort_keys=True)
    models = (model for one in each(lm) + each(teacher_lm) for model in one.ledger.models())
    versions[key] = sorted({*versions.get(key, ()), *models})
    write_private(path, json.dumps(versions) + "\n")
    return list(versions[key])


def published(file: ProgramFile, optimised: Optimised, cases: Sequence[Case]) -> ProgramFile:
    """`file` with gold demos as {"from_case", "sha256"}. Left out, and said in its provenance: bootstrapped demos,
    which no data rebuilds, and instructions that quote the data. Stages that were not optimised keep their
    hand-written demos, which are from the synthetic sample."""
    stages = dict(file.stages)
    sources = dict(file.provenance.demo_case_ids)
    left_out: dict[str, str] = {}
    grams = {gram for case in cases for gram in _grams(_text_of(case))}
    for stage, prompt in optimised.fitted.prompts.items():
        gold = [d.kind == "labelled" for d in prompt.demos]
        demos = [
            {"from_case": d.case_id, "sha256": demo_sha256(dict(d.fields))}
            for d in prompt.demos
            if d.kind == "labelled"
        ]
        sources[stage] = [s for s, keep in zip(sources[stage], gold, strict=True) if keep]
        signature, quotes = _without_quotes(stage, stages[stage].signature, grams)
        gone = [f"{gold.count(False)} bootstrapped demos"] if False in gold else []
        gone += ["instructions that quote the data"] if quotes else []
        if gone:
            left_out[stage] = ", ".join(gone)
        stages[stage] = StageState(signature=signature, demos=demos)
    update = {
        "lm": _model_only(file.provenance.lm),
        "teacher_lm": _model_only(file.provenance.teacher_lm),
        "demo_case_ids": sources,
        "published": {
            "demos": "case ids only; load with --demos-from DATA",
            "left_out": left_out or "nothing",
            "scores": "those of the full program" if left_out else "those of this program",
        },
    }
    return file.model_copy(update={"stages": stages, "provenance": file.provenance.model_copy(update=update)})


def _without_quotes(stage: StageName, signature: dict[str, Any], grams: set[str]) -> tuple[dict[str, Any], bool]:
    own = PROMPTED[stage].signature.instructions
    if signature["instructions"] == own or not grams & set(_grams(signature["instructions"])):
        return signature, False
    return {**signature, "instructions": own}, True


def _grams(text: str) -> list[str]:
    words = re.findall(r"\w+", text.lower())
    return [" ".join(words[i : i + SHARED_WORDS]) for i in range(len(words) - SHARED_WORDS + 1)]


def _text_of(case: Case) -> str:
    answers = [a.text for a in case.answer_sentences]
    parts = [case.narrative, case.clinician_question or "", case.note or "", *(s.text for s in case.sentences)]
    gold = [case.gold.answer or "", case.gold.remark or ""] if case.gold else []
    return "\n".join([*parts, *answers, *gold])


def _model_only(identity: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The model without endpoint, and without the folder of a model file."""
    if identity is None:
        return None
    kind, _, path = str(identity["model"]).partition(":")
    name = f"{kind}:{PurePath(path).name}" if kind in ("gguf", "replay") else identity["model"]
    stages = {stage: _model_only(its) for stage, its in identity.get("stages", {}).items()}
    return {"model": name, "stages": stages} if stages else {"model": name}
