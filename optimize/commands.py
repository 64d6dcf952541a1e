"""The commands `archehr optimize` and `archehr compare`."""

from __future__ import annotations

import functools
import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from data.case import DataError
from data.shared_task import read_cases
from program.options import (
    AlignscoreOpt,
    BertscoreOpt,
    CasesOpt,
    DataArg,
    DemosFromOpt,
    JsonOpt,
    KeyOpt,
    LMOptions,
    RobertaOpt,
    SpacyOpt,
    UmlsOpt,
    keep_offline,
    make,
    read_data,
    say,
    with_lm_options,
)


@with_lm_options
def optimize(
    data: DataArg,
    *,
    out: Annotated[Path, typer.Option(help="the program file to write")],
    optimizer: Annotated[str, typer.Option(help="labeled, random, bootstrap, mipro, gepa")] = "labeled",
    stage: Annotated[str, typer.Option(help="all, reformulate, score, generate or align")] = "all",
    teacher_lm: Annotated[str | None, typer.Option(help="the LM that bootstraps and proposes [--lm]")] = None,
    demos: Annotated[int, typer.Option(min=0, help="most demos per stage; with 0 only the cut is chosen")] = 4,
    demo_tokens: Annotated[int, typer.Option(min=0, help="most estimated tokens of demos per stage")] = 6000,
    candidates: Annotated[int, typer.Option(min=1, help="demo sets (or instructions) to choose from")] = 4,
    folds: Annotated[str, typer.Option(help="loo, or a number of folds for the out-of-sample scores")] = "5",
    publish: Annotated[Path | None, typer.Option(help="also write a copy that holds no text of the data")] = None,
    weights: Annotated[str | None, typer.Option(help="what candidates are chosen by [2=1,4=1]")] = None,
    key: KeyOpt = None,
    cases: CasesOpt = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="cases answered at once")] = 8,
    json: JsonOpt = False,
    lm_options: LMOptions,
) -> None:
    """Choose demos, instructions and the cut on labelled cases; write a program file.

    --seed also draws the candidates. The same command resumes an interrupted optimisation.
    """
    from optimize.report import report
    from optimize.scores import parse_weights
    from optimize.search import Options
    from optimize.session import check_options, optimize_to_file
    from program.display import usage_in_words

    stages = check_options(optimizer, stage)
    chosen = Options(
        optimizer, stages, demos, candidates, demo_tokens, folds, lm_options.seed or 0, parse_weights(weights, stages)
    )
    _, wanted = read_data(data, key, cases)
    lm = make(lm_options)
    if lm is None:
        raise DataError("an optimisation asks an LM; name one with --lm (knn works offline)")
    teacher = make(lm_options, teacher_lm, beside=lm) if teacher_lm else lm
    found, file = optimize_to_file(chosen, wanted, data, lm, teacher, out, publish=publish, workers=workers, tell=say)
    say(f"LM use: {usage_in_words(lm.ledger.totals())}")
    typer.echo(jsonlib.dumps(file.provenance, indent=1) if json else report(found))
    typer.echo(f"{out}", err=json)


@with_lm_options
def compare(
    data: DataArg,
    programs: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROGRAM", help="zero_shot, handwritten, extractive, program files"),
    ] = None,
    *,
    lm: Annotated[list[str] | None, typer.Option(envvar="ARCHEHR_LM", help="an LM; give several for a grid")] = None,
    runs: Annotated[list[Path] | None, typer.Option(help="a finished run folder, taken as it is")] = None,
    baseline: Annotated[str | None, typer.Option(help="what the others are compared with [the first]")] = None,
    out: Annotated[Path | None, typer.Option(help="where the tables and the page go [runs/compare-DATA]")] = None,
    question: Annotated[str, typer.Option(help="own or given: which question stages 2-4 work on")] = "own",
    keep_demo_cases: Annotated[
        bool, typer.Option("--keep-demo-cases", help="do not leave out cases that a program has as demos")
    ] = False,
    demos_from: DemosFromOpt = None,
    key: KeyOpt = None,
    cases: CasesOpt = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="cases answered at once")] = 8,
    bertscore_model: BertscoreOpt = None,
    alignscore_checkpoint: AlignscoreOpt = None,
    roberta_model: RobertaOpt = None,
    umls_index: UmlsOpt = None,
    spacy_model: SpacyOpt = "en_core_web_sm",
    fresh: Annotated[bool, typer.Option("--fresh", help="answer again instead of resuming the runs in --out")] = False,
    json: JsonOpt = False,
    lm_options: LMOptions,
) -> None:
    """Compare programs on the same cases: scores, paired differences, cost, and where they differ.

    Each is run with each LM in its own folder below --out, which the same command resumes.
    """
    from metrics.tables import Resources
    from optimize.compare_display import print_comparison
    from optimize.compare_runs import compare_to_folder
    from optimize.compare_tables import records_json
    from program.display import RunDisplay, default_folder

    keep_offline(lm_options.local_only)
    everything, wanted = read_data(data, key, cases)
    if question not in ("own", "given"):
        raise DataError(f"--question {question}: it is own or given")
    folder = out or default_folder(data, "compare", None)
    compared = compare_to_folder(
        wanted,
        programs or [],
        lm or [],
        runs or [],
        folder,
        make_lm=functools.partial(lm_options.make, budget=lm_options.budget()),
        display=RunDisplay,
        tell=say,
        baseline=baseline,
        keep_demo_cases=keep_demo_cases,
        resources=Resources(bertscore_model, alignscore_checkpoint, roberta_model, umls_index, spacy_model),
        demo_cases=read_cases(demos_from) if demos_from else None,
        all_cases=everything,
        data_name=data,
        question=question,
        workers=workers,
        fresh=fresh,
    )
    if json:
        typer.echo(jsonlib.dumps(records_json(compared), indent=1))
    else:
        print_comparison(compared)
    typer.echo(f"{folder / 'comparison.html'}", err=json)
