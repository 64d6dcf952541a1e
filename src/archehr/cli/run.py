"""archehr run: answer every case of DATA and keep a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from archehr.data.case import DataError
from archehr.data.dataset import Dataset
from archehr.data.writers import EXPORTS
from archehr.terminal.flags import in_a_name
from archehr.terminal.lm_options import LMOptions, make, with_lm_options
from archehr.terminal.options import (
    CasesOpt,
    DataArg,
    DataOptions,
    DemosFromOpt,
    JsonOpt,
    KeyOpt,
    NoAbstainOpt,
    OutOpt,
    PresetOpt,
    ProgramOpt,
    SettingsOptions,
    keep_offline,
    load,
    read_data,
    say,
    with_data_options,
    with_settings_options,
)

ON_A_MACHINE = 256  # workers, where each is a thread of one process


def show_estimate(
    data: Dataset,
    program: Any,
    lms: Any,
    question: str,
    stages: Sequence[str],
    folder: Path | None,
    *,
    engine: str,
    as_json: bool,
) -> None:
    """What answering the cases that are not done in `folder` would take."""
    from archehr.program.run.engines.registry import engine_of
    from archehr.program.run.estimate import estimate, left_of
    from archehr.program.run.job import Job
    from archehr.program.stage_lms import with_lms
    from archehr.terminal.estimate_display import print_estimate, say_until_when

    program, lm = with_lms(program, lms)
    job = Job(program, lm, question, tuple(stages))  # type: ignore[arg-type]
    engine_of(engine, job, len(data.cases))  # what it cannot do is said now
    batch = engine == "batch"
    left = left_of(data.cases, folder)
    stages_taken = estimate(job, left, batch=batch) if left else {}
    print_estimate(stages_taken, len(left), len(data.cases) - len(left), as_json=as_json)
    say_until_when(job.lms, batch=batch)


def _scope(question: str, stages: str) -> dict[str, str]:
    """What is answered, where that is not the usual."""
    scope = {"question": question} if question != "own" else {}
    return scope if stages == "all" else {**scope, "stages": stages}


def _engine(name: str, ray_address: str | None) -> Any:
    """What run_cases takes as its engine."""
    if ray_address is None:
        return name
    if name != "ray":
        raise DataError("--ray-address is for --engine ray; give both, or neither")
    from archehr.program.run.engines.ray import RayEngine

    return RayEngine(ray_address)


def by_batches(engine: str) -> str:
    """The engine that --batch is short for. Raises DataError where another one is asked for."""
    if engine not in ("auto", "batch"):
        raise DataError(f"--batch and --engine {engine}: give one of them")
    return "batch"


@with_data_options
@with_lm_options
@with_settings_options
def run(
    data: DataArg,
    *,
    program: ProgramOpt = None,
    out: OutOpt = None,
    key: KeyOpt = None,
    cases: CasesOpt = None,
    question: Annotated[str, typer.Option(help="own or given: which question stages 2-4 work on")] = "own",
    stages: Annotated[str, typer.Option(help="reformulate,score,generate,align or some of them")] = "all",
    preset: PresetOpt = None,
    demos_from: DemosFromOpt = None,
    no_abstain: NoAbstainOpt = False,
    workers: Annotated[int, typer.Option(min=1, max=16384, help="cases answered at once")] = 8,
    engine: Annotated[
        str, typer.Option(help="threads, processes (without an LM), ray, or auto: processes for many cases")
    ] = "auto",
    ray_address: Annotated[
        str | None, typer.Option(help="HOST:PORT of the cluster for --engine ray, or auto on its nodes [this machine]")
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="through the LM provider's batch service: within a day, at half the price")
    ] = False,
    batch_bucket: Annotated[
        str | None, typer.Option(help="vertex_ai: gs://BUCKET/FOLDER for the files of --batch [$ARCHEHR_BATCH_BUCKET]")
    ] = None,
    batch_status: Annotated[
        bool, typer.Option("--batch-status", help="show the run folder's batch jobs, and do no more")
    ] = False,
    batch_cancel: Annotated[
        bool, typer.Option("--batch-cancel", help="cancel the run folder's batch jobs, and do no more")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="start over instead of resuming the run folder")] = False,
    export: Annotated[list[str] | None, typer.Option(help=f"also write {', '.join(EXPORTS)}; may be repeated")] = None,
    keep_fallbacks: Annotated[
        bool, typer.Option("--keep-fallbacks", help="do not answer again what was answered without the LM")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="send nothing; print the calls, tokens and dollars by stage")
    ] = False,
    json: JsonOpt = False,
    data_options: DataOptions,
    settings: SettingsOptions,
    lm_options: LMOptions,
) -> None:
    """Answer every case of DATA; write submissions, a journal, and scores if there is a key.

    The same command resumes an interrupted run, and answers again what a fallback answered because the LM could not
    be reached.
    """
    from archehr.program.run.run import run_cases
    from archehr.program.stages.registry import parse_stages
    from archehr.terminal.display import RunDisplay, default_folder, fallbacks_in_words, print_run

    keep_offline(lm_options.local_only)
    asked = read_data(data, key, cases, data_options)
    if question not in ("own", "given"):
        raise DataError(f"--question {question}: it is own or given")
    chosen_stages = parse_stages(stages)
    lm = make(lm_options, batch_bucket=batch_bucket)
    loaded = load(program, lm, preset, demos_from, no_abstain=no_abstain, settings=settings)
    folder = out or default_folder(
        asked.title,
        loaded.name,
        lm_options.title() if loaded.asks_lm else None,
        settings.title(),
        in_a_name({"preset": preset, "no_abstain": no_abstain}),
        in_a_name({"demos_from": demos_from, **_scope(question, stages)}),
    )
    if workers > ON_A_MACHINE and engine != "ray":
        raise DataError(f"--workers {workers}: more than {ON_A_MACHINE} are for --engine ray")
    engine = by_batches(engine) if batch else engine
    if batch_status or batch_cancel:
        from archehr.terminal.batch_display import show_jobs

        show_jobs(loaded, lm, folder, cancel=batch_cancel, as_json=json)
        return
    if dry_run:
        before = None if fresh else folder
        show_estimate(asked, loaded, lm, question, chosen_stages, before, engine=engine, as_json=json)
        return
    with RunDisplay(len(asked.cases)) as display:
        result = run_cases(
            asked,
            loaded,
            lm,
            out=folder,
            question=question,  # type: ignore[arg-type]
            stages=chosen_stages,
            workers=workers,
            engine=_engine(engine, ray_address),
            fresh=fresh,
            export=export or (),
            keep_fallbacks=keep_fallbacks,
            on_case=display.case_done,
            on_resume=display.done_before,
            tell=say,
        )
    print_run(result, as_json=json)
    if (line := fallbacks_in_words(result)) is not None:
        say(line)
        raise typer.Exit(1)
