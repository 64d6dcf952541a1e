"""The program without an LM: every stage's twin, by the shipped models or by those of a file."""

from __future__ import annotations

from archehr.program.extractive import EXTRACTIVE_CUT
from archehr.program.extractive.fitted.file import FittedFile, shipped
from archehr.program.pipeline import GroundedQA
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages.registry import held


def extractive_program(settings: PipelineSettings | None = None, fitted: FittedFile | None = None) -> GroundedQA:
    """The same program without an LM, by the models of `fitted` or the shipped ones. Views are ways of asking an LM, so
    it has none but its own."""
    base = settings or PRESETS["default"]
    own = {"cut": EXTRACTIVE_CUT, "relaxed_cut": EXTRACTIVE_CUT - 1, "views": PRESETS["default"].views}
    chosen = base.model_copy(update=own)
    twins = {s.name: s.twin(chosen) if s.twin else None for s in held(chosen)}
    return GroundedQA(chosen, fitted or shipped(), **twins)
