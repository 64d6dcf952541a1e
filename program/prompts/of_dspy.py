"""Programs that DSPy's own optimisers or `save` wrote, read as ours are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archehr.data.case import DataError
from archehr.program import dspy_state
from archehr.program.pipeline import GroundedQA
from archehr.program.settings import PipelineSettings
from archehr.program.signature_hash import PIPELINE_NAMES


def is_of_dspy(raw: Any) -> bool:
    """Whether parsed JSON is a state of dspy.Module.save of our stages."""
    names = {f"{stage}.predict" for stage in PIPELINE_NAMES}
    return isinstance(raw, dict) and "format" not in raw and bool(names & raw.keys())


def saved_by_dspy(raw: Mapping[str, Any], path: Path, settings: PipelineSettings | None) -> GroundedQA:
    """The program of a state that DSPy saved. Raises DataError where it was saved of another one."""
    program = GroundedQA()
    dspy_state.check_fields(raw, program, path)
    without_lms = {n: {**raw[n], "lm": None} for n, _ in program.named_predictors() if "lm" in raw[n]}
    try:
        program.load_state({**raw, **without_lms})
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: not a whole state of dspy.Module.save ({type(error).__name__}); save it again"
        ) from None
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if settings is not None:
        program.use_settings(settings)
    return program
