"""The whole of `archehr optimize`: work folder, cache, optimisation, program file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from archehr.data.case import Case, DataError
from archehr.data.dataset import Dataset
from archehr.optimize.calls import affordable, base_program, calls_told
from archehr.optimize.files import note_models, program_file, published
from archehr.optimize.folds import Answering
from archehr.optimize.optimize import Optimised, optimize
from archehr.optimize.optimizers.optimizer import Options
from archehr.optimize.optimizers.registry import optimizer_of
from archehr.optimize.scores import parse_weights, subtasks_of
from archehr.program.batch import Interrupted
from archehr.program.extractive.fitted.file import KIND, FittedFile
from archehr.program.lm.cache import MODELS, cache_folder, configure_cache
from archehr.program.prompts.program_file import ProgramFile, save_program_file
from archehr.program.prompts.provenance import Provenance
from archehr.program.run.records import fitted_cases
from archehr.program.settings import PipelineSettings, ViewUse, parse_views
from archehr.program.stage_lms import LMs, each, with_lms
from archehr.program.stages.registry import STAGES, VIEWS, parse_stages, used_views
from archehr.program.stages.stage import Stage
from archehr.program.stages.views.extractive import by_name
from archehr.program.types import StageName

DEFAULT_DEMOS = 4
SAMPLES = 3  # of each view that `auto` tries, where the LM's replies to one prompt can differ
ALL_DEMOS = 10_000  # more than there are: as many as fit


def optimize_to_file(
    options: Options,
    data: Dataset,
    lm: LMs,
    teacher_lm: LMs,
    out: Path,
    *,
    publish: Path | None = None,
    workers: int = 8,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[Optimised, ProgramFile]:
    """Optimise and write `out`, and to `publish` the copy without text of the data. `lm` is one LM, or several by
    stage that share a ledger.

    Replies are kept in the user's cache (archehr.program.lm.cache), so that the same call after an interruption pays
    for none twice. Raises DataError, and what an LM call may raise.
    """
    check_target(out, "--out")
    if publish is not None:
        check_target(publish, "--publish")
        if publish.resolve() == out.resolve():
            raise DataError(f"--publish {publish}: --out writes the full program there; name another file")
    options = labelled_part(options, data.cases, tell)
    options = affordable(options, [c for c in data.cases if any(STAGES[s].measures(c) for s in options.stages)], tell)
    if options.fitted and (seen := fitted_cases(Provenance.model_validate(options.fitted.provenance), data.cases)):
        raise DataError(
            f"--views: the fitted models have learned from {len(seen)} of these {len(data.cases)} cases, so that their "
            "votes would be memory; optimise on other cases, or name extractive"
        )
    with_lms(base_program(options), lm)  # raises for a stage or view that there is not
    folder = cache_folder()
    configure_cache(folder)

    def progress(line: str) -> None:
        note_models(folder / MODELS, lm, teacher_lm)  # as it goes, so that a kill forgets none
        tell(line)

    answering = Answering(lm, workers, progress)
    teacher = Answering(teacher_lm, workers, progress)
    try:
        with calls_told(getattr(each(lm)[0], "ledger", None), lambda: answering.expected_calls, tell):
            optimised = optimize(options, tuple(data.cases), answering, teacher)
    except KeyboardInterrupt:
        raise Interrupted from None
    finally:
        models = note_models(folder / MODELS, lm, teacher_lm)
    file = program_file(optimised, options, data, lm, teacher_lm, models)
    save_program_file(file, out)
    if publish is not None:
        save_program_file(published(file, optimised, data.cases), publish)
    for line in _remarks(options, optimised, answering):
        tell(line)
    for line in dict.fromkeys(note for one in each(lm) + each(teacher_lm) for note in one.ledger.notes()):
        tell(line)
    tell(f"{out} may hold note text in its prompts, and {folder} holds replies to it: keep both as you keep the data")
    return optimised, file


def check_target(path: Path, option: str) -> None:
    """Raises DataError for a path that holds something else than a program file, before anything is paid for."""
    if path.is_dir():
        raise DataError(f"{path}: is a folder; {option} names the program file to write")
    if path.exists() and not _was_a_program(path):
        raise DataError(f"{path}: exists and is no program file; name another {option}")


def _was_a_program(path: Path) -> bool:
    """Whether a file is a program of this version or of another, which is to be made again."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(raw, dict) and "format" in raw and ("stages" in raw or raw.get("kind") == KIND)


def _remarks(options: Options, optimised: Optimised, answering: Answering) -> Iterator[str]:
    for stage, prompt in optimised.fitted.prompts.items():
        most = options.demos_of.get(stage, 0 if options.demos_tried else options.demos)
        if len(prompt.demos) < most < ALL_DEMOS and not optimizer_of(options.optimizer).searches:
            found = f"{stage}: {len(prompt.demos)} demos"
            yield f"{found}, no more are accepted and fit --demo-tokens {options.token_budget}"
    if failures := answering.cases_with_failures:
        yield f"the LM failed in {failures} of {answering.cases_answered} answers; its fallback was measured there"


def parse_demos(text: str) -> tuple[int, ...]:
    """ "4,8,all" -> the numbers of demos to try, ALL_DEMOS for all that fit; those of one stage left out, and
    DEFAULT_DEMOS where there are no others. Raises DataError."""
    parts = [part for part in text.replace(" ", "").split(",") if "=" not in part] or [str(DEFAULT_DEMOS)]
    return tuple(dict.fromkeys(_demo_number(part, text) for part in parts))


def demos_by_stage(text: str, prompts: Sequence[StageName]) -> dict[StageName, int]:
    """ "8,score_b=4" -> {"score_b": 4}: the stages and views with a number of their own. Raises DataError."""
    own = [part.split("=", 1) for part in text.replace(" ", "").split(",") if "=" in part]
    if unknown := [name for name, _ in own if name not in prompts]:
        raise DataError(f"--demos {text}: no prompt of {unknown[0]} is chosen; these are: {', '.join(prompts)}")
    return {name: _demo_number(number, text) for name, number in own}


def _demo_number(part: str, text: str) -> int:
    if part != "all" and not part.isdecimal():
        raise DataError(f"--demos {text}: give a number, or several with commas, for example 4,8,all or 8,score_b=4")
    return ALL_DEMOS if part == "all" else int(part)


def parse_candidates(
    text: str | None, stages: Sequence[StageName], samples: int = 1
) -> tuple[tuple[ViewUse, ...], FittedFile | None]:
    """The views to choose from: for "auto" all, each that asks an LM in up to so many samples; none for None. And the
    fitted models that one of them names. Raises DataError."""
    if text is None:
        return (), None
    if "score" not in stages:
        raise DataError(f"--views {text}: they are of stage score; name it in --stage, or leave --views out")
    every = ["score", *(name for name, view in VIEWS.items() if view.asks_lm)]
    free = [name for name, view in VIEWS.items() if not view.asks_lm]
    named = parse_views(",".join([*(f"{name}*{samples}" for name in every), *free]) if text == "auto" else text)
    settings, fitted = by_name(PipelineSettings(views=named), None)
    used_views(settings)
    return settings.views, fitted


def labelled_part(options: Options, cases: Sequence[Case], tell: Callable[[str], None]) -> Options:
    """`options` with the stages that some case can measure; what is left out, and why, is told case by case.

    Raises DataError where no stage is left.
    """
    kept, lacking = [], []
    for stage in (STAGES[name] for name in options.stages):
        measured = [case for case in cases if stage.measures(case)]
        if measured:
            kept.append(stage.name)
            for line in _left_out(stage, cases, measured):
                tell(line)
        elif stage.labels is None:
            lacking.append(f"{stage.name} has no labels to learn from")
        else:
            lacking.append(f"{stage.name} needs {stage.labels.measured_field or stage.labels.field}")
    if not kept:
        raise DataError(f"no case holds the labels that any stage is optimised on: {'; '.join(lacking)}")
    for line in lacking:
        tell(f"{line}, which no case has; left as it is")
    weights = {n: weight for n, weight in options.weights.items() if n in subtasks_of(kept)}
    return replace(options, stages=tuple(kept), weights=weights or parse_weights(None, kept))


def _left_out(stage: Stage, cases: Sequence[Case], measured: Sequence[Case]) -> Iterator[str]:
    assert stage.labels is not None
    field = stage.labels.measured_field or stage.labels.field
    if without := [case.id for case in cases if case not in measured]:
        yield f"{stage.name}: case {', '.join(without)} left out, without {field}"
    if shown := [case.id for case in measured if not stage.has_gold(case)]:
        yield f"{stage.name}: case {', '.join(shown)} scored but no demo, without {stage.labels.field}"


def check_options(optimizer: str, stage: str) -> tuple[StageName, ...]:
    """The stages that --stage names. Raises DataError for an unknown stage or optimiser."""
    optimizer_of(optimizer)
    return parse_stages(stage, "--stage")
