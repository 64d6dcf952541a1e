"""Which LM each stage asks: its own where it has one, as dspy.Module.set_lm gives it, else the run's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import dspy

from archehr.data.case import DataError
from archehr.program.dspy_state import dump_prompt
from archehr.program.pipeline import GroundedQA
from archehr.program.stages.registry import PROMPTED, STAGES, prompted
from archehr.program.stages.stage import has_prompt, predictor
from archehr.program.types import StageName

LMs: TypeAlias = "dspy.BaseLM | Mapping[StageName, dspy.BaseLM] | None"


def with_lms(program: GroundedQA, lms: LMs) -> tuple[GroundedQA, dspy.BaseLM | None]:
    """The program, copied where `lms` maps stages to LMs of their own, and the LM of the other stages, filed under "".

    Raises DataError for a name that is no stage, and for a stage that asks no LM.
    """
    if not isinstance(lms, Mapping):
        return program, lms
    own = {stage: lm for stage, lm in lms.items() if stage}
    if own:
        program = program.deepcopy()
    for stage, lm in own.items():
        if stage not in PROMPTED:
            raise DataError(f"--lm {stage}=…: no stage {stage}; the stages are {', '.join(STAGES)}")
        module = getattr(program, stage, None)
        if module is None or not has_prompt(module):
            remedy = "; ask for it with --views or --verify" if program.asks_lm and stage not in STAGES else ""
            raise DataError(f"--lm {stage}=…: this program's {stage} stage asks no LM{remedy}")
        module.set_lm(lm)
    return program, lms.get("")


def each(lms: LMs) -> list[dspy.BaseLM]:
    """The LMs given, each once."""
    given = lms.values() if isinstance(lms, Mapping) else [lms]
    return list({id(lm): lm for lm in given if lm is not None}.values())


def lm_for(lms: LMs, stage: StageName) -> dspy.BaseLM | None:
    """The LM that a stage asks: its own, else that of the others."""
    return lms.get(stage, lms.get("")) if isinstance(lms, Mapping) else lms


def fitting(lms: LMs, program: GroundedQA) -> LMs:
    """`lms` without those of stages that the program does not have: some programs of several use fewer views."""
    if not isinstance(lms, Mapping):
        return lms
    return {stage: lm for stage, lm in lms.items() if not stage or has_prompt(getattr(program, stage, None))}


def stage_lms(program: GroundedQA, lm: dspy.BaseLM | None) -> dict[StageName, dspy.BaseLM | None]:
    """The LM of every stage that asks one."""
    return {stage: predictor(getattr(program, stage)).lm or lm for stage in prompted(program)}


def voting_twice(program: GroundedQA, lm: dspy.BaseLM | None) -> tuple[StageName, StageName] | None:
    """Two views that ask the same LM the same, whose votes would be one; None where all differ."""
    lms, seen = stage_lms(program, lm), dict[str, StageName]()
    for name in (view.name for view in program.settings.views if view.name in lms):
        asked = [dump_prompt(predictor(getattr(program, name))), lm_identity(lms[name])]
        before = seen.setdefault(json.dumps(asked, sort_keys=True, default=str), name)
        if before != name:
            return before, name
    return None


def lms_identity(program: GroundedQA, lm: dspy.BaseLM | None) -> dict[str, Any] | None:
    """The LMs of a run as far as they shape answers: the identity of the one that most stages ask, with those of the
    others under `stages`."""
    found = {stage: lm_identity(its) for stage, its in stage_lms(program, lm).items()}
    known = [its for its in found.values() if its is not None]
    if not known:
        return None
    main = lm_identity(lm)
    if main is None or main not in known:
        main = max(known, key=known.count)
    others = {stage: its for stage, its in found.items() if its != main}
    return {**main, "stages": others} if others else main


def given_identity(lms: LMs) -> dict[str, Any] | None:
    """The LMs given as far as they shape answers: the identity of the one for all stages (of the first, where there is
    none), with those named for a stage under `stages`."""
    if not isinstance(lms, Mapping):
        return lm_identity(lms)
    main = lm_identity(lms.get("", next(iter(lms.values()), None)))
    others = {stage: lm_identity(lm) for stage, lm in lms.items() if stage}
    return {**main, "stages": others} if main is not None and others else main


def lm_identity(lm: dspy.BaseLM | None) -> dict[str, Any] | None:
    """One LM as far as it shapes answers: name, endpoint and sampling settings; never a key."""
    if lm is None:
        return None
    settings = {k: v for k, v in lm.kwargs.items() if k not in ("api_key", "metadata")}
    return {"model": lm.model, **settings, **(lm.kwargs.get("metadata") or {})}


def in_words(identity: Mapping[str, Any] | None) -> str:
    """ "gemini/A (score: gemini/B)" """
    if identity is None:
        return "no LM"
    others = ", ".join(f"{stage}: {its['model']}" for stage, its in identity.get("stages", {}).items())
    return f"{identity['model']} ({others})" if others else str(identity["model"])
