"""archehr: a patient's question answered from a clinical note, with the evidence for every statement.

The public API; each name is imported at first use, so that `archehr --help` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archehr.data.dataset import read_cases
    from archehr.data.notes import case_of
    from archehr.metrics.feedback import metric
    from archehr.program.lm import make_lm
    from archehr.program.pipeline import GroundedQA
    from archehr.program.prompts.program_file import load_program, save_program
    from archehr.program.run.export import to_frame
    from archehr.program.run.run import run_cases

__version__ = "0.2.0.dev0"
__all__ = [
    "GroundedQA",
    "case_of",
    "load_program",
    "make_lm",
    "metric",
    "read_cases",
    "run_cases",
    "save_program",
    "to_frame",
]

_HOMES = {
    "GroundedQA": "archehr.program.pipeline",
    "case_of": "archehr.data.notes",
    "load_program": "archehr.program.prompts.program_file",
    "make_lm": "archehr.program.lm",
    "metric": "archehr.metrics.feedback",
    "read_cases": "archehr.data.dataset",
    "run_cases": "archehr.program.run.run",
    "save_program": "archehr.program.prompts.program_file",
    "to_frame": "archehr.program.run.export",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'archehr' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
