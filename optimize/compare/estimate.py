"""What a comparison would take, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from archehr.data.case import Case
from archehr.data.dataset import Dataset
from archehr.optimize.compare.runs import Names, finished_runs, planned_runs
from archehr.program.pipeline import QuestionSource
from archehr.program.prompts.program_file import load_program
from archehr.program.run.estimate import StageEstimate, estimate, left_of
from archehr.program.run.job import Job
from archehr.program.stage_lms import LMs, each, with_lms
from archehr.program.stages.registry import STAGES


@dataclass(frozen=True)
class RunEstimate:
    """Of one run: `cases` to answer, `done` before, what the stages would take, and the LMs asked."""

    cases: int
    done: int
    stages: Mapping[str, StageEstimate]
    lms: Sequence[dspy.BaseLM]


def estimate_comparison(
    data: Dataset,
    programs: Sequence[str],
    lms: Sequence[Names],
    out: Path,
    *,
    make_lm: Callable[[Any], LMs],
    demo_cases: Sequence[Case] | None = None,
    settings: Mapping[str, Any] | None = None,
    question: QuestionSource = "own",
    fresh: bool = False,
) -> dict[str, RunEstimate]:
    """By run folder what `compare_to_folder` would take; programs that ask no LM, and finished runs, take nothing.

    Programs whose prompts are the same share replies through the cache, which is not reckoned with. Raises DataError
    as the comparison would before its first call.
    """
    finished = finished_runs(programs)
    loaded = [load_program(name, settings or None, demo_cases) for name in programs if name not in finished]
    found: dict[str, RunEstimate] = {}
    for program, names, folder in planned_runs(loaded, lms, out / "runs"):
        made = make_lm(names) if names else None
        own, lm = with_lms(program, made)
        left = left_of(data.cases, None if fresh else folder)
        taken = estimate(Job(own, lm, question, tuple(STAGES)), left) if left and own.asks_lm else {}
        found[folder.name] = RunEstimate(len(left), len(data.cases) - len(left), taken, each(made))
    return found
