"""archehr compare: programs side by side, with intervals."""

from __future__ import annotations

import functools
import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from archehr.data.case import DataError
from archehr.terminal.options import (
    AlignscoreOpt,
    BertscoreOpt,
    CasesOpt,
    DataArg,
    DataOptions,
    DemosFromOpt,
    JsonOpt,
    KeyOpt,
    LMOptions,
    RobertaOpt,
    SettingsOptions,
    SpacyOpt,
    UmlsOpt,
    by_stage,
    keep_offline,
    read_data,
    say,
    with_data_options,
    with_lm_options,
    with_settings_options,
)


@with_data_options
@with_lm_options
@with_settings_options
def compare(
    data: DataArg,
    programs: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROGRAM", help="default, zero_shot, handwritten, extractive, program files"),
    ] = None,
    *,
    lm: Annotated[list[str] | None, typer.Option(envvar="ARCHEHR_LM", help="an LM; give several for a grid")] = None,
    views: Annotated[
        list[str] | None, typer.Option(help="ways of asking for evidence that vote, as in run; give several to compare")
    ] = None,
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
    data_options: DataOptions,
    settings: SettingsOptions,
    lm_options: LMOptions,
) -> None:
    """Compare programs on the same cases: scores, paired differences, cost, and where they differ.

    Each is run with each LM in its own folder below --out, which the same command resumes.
    """
    from archehr.metrics.components import Resources
    from archehr.optimize.compare.runs import compare_to_folder
    from archehr.optimize.compare.tables import records_json
    from archehr.terminal.compare_display import print_comparison
    from archehr.terminal.display import RunDisplay, default_folder

    if own := [text for text in lm or [] if "" not in by_stage([text], default=None)]:
        raise DataError(f"--lm {own[0]}: compare takes one LM for all stages; use archehr run, then give its --runs")
    keep_offline(lm_options.local_only)
    asked = read_data(data, key, cases, data_options)
    if question not in ("own", "given"):
        raise DataError(f"--question {question}: it is own or given")
    folder = out or default_folder(asked.title, "compare", settings.title())
    compared = compare_to_folder(
        asked,
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
        demo_cases=read_data(demos_from).cases if demos_from else None,
        settings=settings.changes(),
        views=views or [],
        question=question,
        workers=workers,
        fresh=fresh,
    )
    if json:
        typer.echo(jsonlib.dumps(records_json(compared), indent=1))
    else:
        print_comparison(compared)
    typer.echo(f"{folder / 'comparison.html'}", err=json)
