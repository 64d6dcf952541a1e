"""The whole of `archehr optimize`: work folder, cache, optimisation, program file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import dspy

from data.case import Case, DataError
from optimize.files import ModelVersions, program_file
from optimize.folds import Answering
from optimize.optimize import Optimised, optimize
from optimize.publish import published
from optimize.search import OPTIMIZERS, Options
from program.batch import Interrupted
from program.lm.cache import configure_cache
from program.state import ProgramFile, save_program_file
from program.types import STAGES, StageName


def optimize_to_file(
    options: Options,
    cases: Sequence[Case],
    data_name: str,
    lm: dspy.LM,
    teacher_lm: dspy.LM,
    out: Path,
    *,
    publish: Path | None = None,
    workers: int = 8,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[Optimised, ProgramFile]:
    """Optimise and write `out`, and to `publish` the copy without text of the data.

    Replies are kept in `out`.work (or $ARCHEHR_CACHE), so that the same call after an interruption pays for none
    twice. Raises DataError, and what an LM call may raise.
    """
    if out.is_dir():
        raise DataError(f"{out}: is a folder; --out names the program file to write")
    folder = Path(os.environ.get("ARCHEHR_CACHE") or out.with_name(out.name + ".work"))
    configure_cache(folder)
    versions = ModelVersions(folder / "models.json")
    answering, teacher = Answering(lm, workers, tell), Answering(teacher_lm, workers, tell)
    try:
        optimised = optimize(options, cases, answering, teacher)
    except KeyboardInterrupt:
        raise Interrupted from None
    finally:
        models = versions.add([m for used in (lm, teacher_lm) for m in used.ledger.models()])
    file = program_file(optimised, options, cases, data_name, lm, teacher_lm, models)
    save_program_file(file, out)
    if publish is not None:
        save_program_file(published(file, optimised, cases), publish)
    if answering.cases_with_failures:
        tell(
            f"the LM failed on {answering.cases_with_failures} of {answering.cases_answered} answers; the extractive "
            "fallback was measured in its place"
        )
    tell(f"{out} may hold note text in its prompts, and {folder} holds replies to it: keep both as you keep the data")
    return optimised, file


def check_options(optimizer: str, stage: str) -> tuple[StageName, ...]:
    """The stages that --stage names. Raises DataError for an unknown stage or optimiser."""
    if optimizer not in OPTIMIZERS:
        raise DataError(f"--optimizer {optimizer}: there are {', '.join(OPTIMIZERS)}")
    if stage != "all" and stage not in STAGES:
        raise DataError(f"--stage {stage}: give all, {', '.join(STAGES)}")
    return tuple(s for s in STAGES if stage in ("all", s))
