"""Whether a program's cut was fitted to the LM and the prompts that it is run with: a cut moves with both."""

from __future__ import annotations

import hashlib
import json

import dspy

from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import to_file
from archehr.program.stages.stage import predictor


def evidence_prompts(program: GroundedQA) -> str:
    """sha256 of what decides which scores an LM gives: the views that the program uses, their prompts and demos."""
    file = to_file(program).model_dump(mode="json")["stages"]
    used = {view.name: [view.samples, file[view.name]] for view in program.settings.views}
    return hashlib.sha256(json.dumps(used, sort_keys=True).encode()).hexdigest()


def cut_of_another(program: GroundedQA, lm: dspy.BaseLM | None) -> str | None:
    """What to tell the user where the program's cut was fitted to another LM or to other prompts, else None."""
    fitted = program.provenance.cut_fitted_to if hasattr(program, "provenance") else None
    if fitted is None or not program.asks_lm:
        return None
    lms = [predictor(getattr(program, view.name)).lm or lm for view in program.settings.views]
    asked = ", ".join(dict.fromkeys(its.model for its in lms if its is not None))
    if not asked:
        return None
    other = [f"{fitted['lm']}, not {asked}"] if fitted["lm"] != asked else []
    other += ["other prompts or demos"] if fitted["prompts"] != evidence_prompts(program) else []
    if not other:
        return None
    return (
        f"the cut of {program.name} was fitted to {' and '.join(other)}: it may take too much or too little as "
        "evidence; fit it anew with archehr optimize"
    )
