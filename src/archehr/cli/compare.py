"""archehr compare: programs side by side, with intervals."""

from __future__ import annotations

import functools
import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from archehr.data.case import DataError
from archehr.terminal.flags import in_a_name
from archehr.terminal.lm_options import LMOptions, make_all, several, with_lm_options
from archehr.terminal.options import (
    AlignscoreOpt,
    BertscoreOpt,
    CasesOpt,
    DataArg,
    DataOptions,
    DemosFromOpt,
    JsonOpt,
    KeyOpt,
    RobertaOpt,
    SettingsOptions,
    SpacyOpt,
    UmlsOpt,
    keep_offline,
    read_data,
    say,
    with_data_options,
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
    lm: Annotated[
        list[str] | None,
        typer.Option(help="an LM; give several for a grid. STAGE=NAME is for one stage of all [$ARCHEHR_LM]"),
    ] = None,
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="send nothing; print the calls, tokens and dollars by program and stage")
    ] = False,
    json: JsonOpt = False,
    data_options: DataOptions,
    settings: SettingsOptions,
    lm_options: LMOptions,
) -> None:
    """Compare programs on the same cases: scores, paired differences, cost, and where they differ.

    Each is run with each LM in its own folder below --out, which the same command resumes.
    """
    from archehr.metrics.components import Resources
    from archehr.optimize.compare.runs import compare_to_folder, estimate_comparison
    from archehr.optimize.compare.tables import records_json
    from archehr.terminal.compare_display import print_comparison
    from archehr.terminal.display import RunDisplay, default_folder
    from archehr.terminal.estimate_display import print_comparison_estimate, say_until_when

    keep_offline(lm_options.local_only)
    asked = read_data(data, key, cases, data_options)
    if question not in ("own", "given"):
        raise DataError(f"--question {question}: it is own or given")
    scope = {"question": question} if question != "own" else {}
    folder = out or default_folder(
        asked.title, "compare", lm_options.settings_title(), settings.title(), in_a_name(scope)
    )
    shared: dict[str, Any] = {
        "make_lm": functools.partial(make_all, lm_options, budget=lm_options.budget()),
        "demo_cases": read_data(demos_from).cases if demos_from else None,
        "settings": settings.changes(),
        "views": views or [],
        "question": question,
        "fresh": fresh,
    }
    if dry_run:
        runs_made = estimate_comparison(asked, programs or [], several(lm or []), folder, **shared)
        print_comparison_estimate(runs_made, as_json=json)
        say_until_when(lm for its in runs_made.values() for lm in its.lms)
        return
    compared = compare_to_folder(
        asked,
        programs or [],
        several(lm or []),
        runs or [],
        folder,
        display=RunDisplay,
        tell=say,
        baseline=baseline,
        keep_demo_cases=keep_demo_cases,
        resources=Resources(bertscore_model, alignscore_checkpoint, roberta_model, umls_index, spacy_model),
        workers=workers,
        **shared,
    )
    if json:
        typer.echo(jsonlib.dumps(records_json(compared), indent=1))
    else:
        print_comparison(compared)
    typer.echo(f"{folder / 'comparison.html'}", err=json)
