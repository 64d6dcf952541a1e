"""archehr optimize: pick demos, instructions and the cut; write a program file."""

from __future__ import annotations

import json as jsonlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from archehr.data.case import DataError
from archehr.data.dataset import Dataset
from archehr.data.joined import join
from archehr.terminal.estimate_display import NO_LM
from archehr.terminal.lm_options import LMOptions, make, make_one, with_lm_options
from archehr.terminal.options import (
    CasesOpt,
    DataOptions,
    JsonOpt,
    KeyOpt,
    read_data,
    say,
    with_data_options,
)


@with_data_options
@with_lm_options
def optimize(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA…", help="a folder, an .xml file, sample/dev …; several are joined")
    ],
    *,
    out: Annotated[Path, typer.Option(help="the program file to write")],
    program: Annotated[
        str, typer.Option(help="handwritten: choose its prompts; extractive: fit the program without an LM")
    ] = "handwritten",
    labels: Annotated[Path | None, typer.Option(help="extractive: learn from this run of an LM, not from gold")] = None,
    start_from: Annotated[str | None, typer.Option(help="extractive: shipped, to learn from its cases too")] = None,
    optimizer: Annotated[str, typer.Option(help="labeled, random, bootstrap, mipro, gepa")] = "labeled",
    stage: Annotated[str, typer.Option(help="all, or some of reformulate,score,generate,align")] = "all",
    teacher_lm: Annotated[str | None, typer.Option(help="the LM that bootstraps and proposes [--lm]")] = None,
    demos: Annotated[
        str,
        typer.Option(
            help="most demos per stage, several to choose from, as 4,8,all, and those of one, as score_b=4; 0 chooses "
            "the cut alone"
        ),
    ] = "4",
    views: Annotated[
        str | None,
        typer.Option(
            help="ways of asking for evidence to choose a vote from: auto (all, in up to 3 samples), or "
            "score,answer_first*2; score_b is score once more with other demos or, by --lm score_b=NAME, another LM"
        ),
    ] = None,
    demo_tokens: Annotated[int, typer.Option(min=0, help="most estimated tokens of demos per stage")] = 6000,
    candidates: Annotated[int, typer.Option(min=1, help="demo sets (or instructions) to choose from")] = 4,
    folds: Annotated[str, typer.Option(help="loo, or a number of folds for the out-of-sample scores")] = "5",
    publish: Annotated[Path | None, typer.Option(help="also write a copy that holds no text of the data")] = None,
    weights: Annotated[str | None, typer.Option(help="what candidates are chosen by [2=1,4=1]")] = None,
    key: KeyOpt = None,
    cases: CasesOpt = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="cases answered at once")] = 8,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="send nothing; print the calls, tokens and dollars by part and stage")
    ] = False,
    json: JsonOpt = False,
    data_options: DataOptions,
    lm_options: LMOptions,
) -> None:
    """Choose demos, instructions and the cut on labelled cases, or fit the program without an LM; write a program file.

    --seed also draws the candidates. The same command resumes an interrupted optimisation.
    """
    from archehr.optimize.optimizers.optimizer import Options
    from archehr.optimize.report import report
    from archehr.optimize.scores import parse_weights
    from archehr.optimize.session import (
        SAMPLES,
        check_options,
        demos_by_stage,
        labelled_part,
        optimize_to_file,
        parse_candidates,
        parse_demos,
    )
    from archehr.program.lm import accepts_temperature
    from archehr.program.stage_lms import each
    from archehr.terminal.display import usage_in_words
    from archehr.terminal.stops import CACHED, telling

    if key is not None and len(data) > 1:
        raise DataError("--key is the key of one DATA; with several, each has its own beside it")
    asked = join([read_data(name, key, None, data_options) for name in data], say).only(cases)
    if program == "extractive" and dry_run:
        typer.echo(NO_LM)
        return
    if program == "extractive":
        _fit(asked, json, out=out, labels=labels, start_from=start_from, publish=publish)
        return
    if program != "handwritten" or labels or start_from:
        raise DataError("--program is handwritten or extractive; --labels and --start-from need --program extractive")
    stages = check_options(optimizer, stage)
    tried = parse_demos(demos)
    lm = make(lm_options)
    if lm is None:
        raise DataError("an optimisation asks an LM; name one with --lm (knn works offline)")
    views_to_try, fitted = parse_candidates(views, stages, SAMPLES if accepts_temperature(each(lm)[0]) else 1)
    chosen = Options(
        optimizer,
        stages,
        max(tried),
        candidates,
        demo_tokens,
        folds,
        lm_options.seed or 0,
        parse_weights(weights, stages),
        tried if len(tried) > 1 else (),
        views=views_to_try,
        fitted=fitted,
        max_calls=lm_options.max_calls,
    )
    chosen = replace(chosen, demos_of=demos_by_stage(demos, chosen.prompts))
    teacher = make_one(lm_options, teacher_lm, beside=each(lm)[0]) if teacher_lm else lm
    if dry_run:
        _show_estimate(labelled_part(chosen, asked.cases, say), asked, lm, teacher, as_json=json)
        return
    with telling(CACHED):
        found, file = optimize_to_file(chosen, asked, lm, teacher, out, publish=publish, workers=workers, tell=say)
    say(f"LM use: {usage_in_words(each(lm)[0].ledger.totals())}")
    typer.echo(jsonlib.dumps(file.provenance.told(), indent=1) if json else report(found))
    typer.echo(f"{out}", err=json)


def _show_estimate(options: Any, data: Dataset, lm: Any, teacher: Any, *, as_json: bool) -> None:
    from archehr.optimize.calls import affordable, estimate_optimisation, expected_calls, measured_cases
    from archehr.program.stage_lms import each
    from archehr.terminal.estimate_display import print_optimisation_estimate, say_until_when

    options = affordable(options, measured_cases(options, data.cases), say)
    parts = estimate_optimisation(options, data.cases, lm, teacher)
    line = expected_calls(options, measured_cases(options, data.cases))
    print_optimisation_estimate(parts, line, as_json=as_json)
    say_until_when(each(lm) + each(teacher))


def _fit(data: Dataset, json: bool, **options: Any) -> None:
    from archehr.optimize.students.session import fit_to_file

    report, file = fit_to_file(data, tell=say, **options)
    typer.echo(jsonlib.dumps(file.provenance, indent=1) if json else report)
    typer.echo(f"{options['out']}", err=json)
