"""The door: the public API (read_cases, GroundedQA, load_program, make_lm, run_cases) and the `archehr` command."""

from __future__ import annotations

import json as jsonlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from data.case import DataError
from data.shared_task import read_cases, select_cases
from data.submission import read_submission, validate_submission
from optimize.commands import compare, optimize
from program.options import (
    AlignscoreOpt,
    BertscoreOpt,
    CasesOpt,
    DataArg,
    DemosFromOpt,
    JsonOpt,
    KeyOpt,
    LMOptions,
    LocalOnlyOpt,
    OutOpt,
    PresetOpt,
    ProgramOpt,
    RobertaOpt,
    SpacyOpt,
    UmlsOpt,
    keep_offline,
    load,
    make,
    read_data,
    say,
    with_lm_options,
)

if TYPE_CHECKING:
    from program.lm import make_lm
    from program.pipeline import GroundedQA
    from program.run import RunResult, run_cases
    from program.state import load_program

__version__ = "0.1.0"
__all__ = ["GroundedQA", "load_program", "make_lm", "read_cases", "run_cases"]

_LAZY = {
    "GroundedQA": "program.pipeline",
    "load_program": "program.state",
    "make_lm": "program.lm",
    "run_cases": "program.run",
}


def __getattr__(name: str) -> Any:
    """The API that needs DSPy is imported at first use, so that `archehr --help` stays quick."""
    if name not in _LAZY:
        raise AttributeError(f"module 'archehr' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


app = typer.Typer(
    name="archehr",
    help="Answer a patient's question from a clinical note, and show the evidence.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
@with_lm_options
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
    workers: Annotated[int, typer.Option(min=1, max=256, help="cases answered at once")] = 8,
    fresh: Annotated[bool, typer.Option("--fresh", help="start over instead of resuming the run folder")] = False,
    json: JsonOpt = False,
    lm_options: LMOptions,
) -> None:
    """Answer every case of DATA; write submissions, a journal, and scores if there is a key.

    The same command resumes an interrupted run.
    """
    from program.display import RunDisplay, default_folder, print_run
    from program.run import run_cases
    from program.types import parse_stages

    everything, wanted = read_data(data, key, cases)
    if question not in ("own", "given"):
        raise DataError(f"--question {question}: it is own or given")
    chosen_stages = parse_stages(stages)
    lm = make(lm_options)
    loaded = load(program, lm, preset, demos_from)
    folder = out or default_folder(data, loaded.name, lm_options.lm)
    with RunDisplay(len(wanted)) as display:
        result: RunResult = run_cases(
            wanted,
            loaded,
            lm,
            out=folder,
            all_cases=everything,
            data_name=data,
            question=question,  # type: ignore[arg-type]
            stages=chosen_stages,
            workers=workers,
            fresh=fresh,
            on_case=display.case_done,
            tell=say,
        )
    print_run(result, as_json=json)
    if (why := result.why_lm_never_answered()) is not None:
        say(f"no LM call succeeded ({why}): all answers of this run are fallbacks, not the LM's; mend it, add --fresh")
        raise typer.Exit(1)


@app.command()
@with_lm_options
def ask(
    note: Annotated[Path, typer.Argument(metavar="NOTE", help="a text file with the note")],
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="the patient's message, or a file holding it")],
    *,
    question: Annotated[str | None, typer.Option(help="a clinician's question to work on instead")] = None,
    program: ProgramOpt = None,
    preset: PresetOpt = None,
    json: JsonOpt = False,
    lm_options: LMOptions,
) -> None:
    """Answer one message from one note; print the answer with its citations and the sentences cited.

    Nothing is kept on disk.
    """
    from data.notes import case_of
    from program.display import print_answer
    from program.run import run_cases

    case = case_of(note, message, question)
    lm = make(lm_options)
    result = run_cases([case], load(program, lm, preset), lm, question="given" if question else "own")
    print_answer(case, result.records[0], as_json=json)
    if (why := result.why_lm_never_answered()) is not None:
        say(f"no LM call succeeded ({why}): this answer is the fallback, not the LM's")
        raise typer.Exit(1)


@app.command()
def validate(
    submission: Annotated[Path, typer.Argument(help="a submission file, or a run folder")],
    data: Annotated[str, typer.Option(help="the data it answers")],
    subtask: Annotated[int | None, typer.Option(min=1, max=4, help="1-4 [read from the file name]")] = None,
    cases: CasesOpt = None,
    json: JsonOpt = False,
) -> None:
    """Is this submission acceptable? No key is needed. Exit 1 if it has faults."""
    _, wanted = read_data(data, wanted=cases)
    files = sorted(submission.glob("submission_subtask_?.json")) if submission.is_dir() else [submission]
    if not files:
        raise DataError(f"{submission}: the folder holds no submission_subtask_N.json; did its run finish?")
    reports = {}
    for path in files:
        number = subtask or _subtask_of(path)
        reports[path.name] = report = validate_submission(read_submission(path), wanted, number)
        if not json:
            for line in report.faults:
                typer.echo(f"{path}: fault: {line}")
            for line in report.warnings:
                typer.echo(f"{path}: warning: {line}")
            typer.echo(f"{path}: subtask {number}: {'acceptable' if report.ok else 'not acceptable'}")
    if json:
        found = {name: {"ok": r.ok, "faults": r.faults, "warnings": r.warnings} for name, r in reports.items()}
        typer.echo(jsonlib.dumps(found, indent=1))
    if not all(r.ok for r in reports.values()):
        raise typer.Exit(1)


def _subtask_of(path: Path) -> int:
    digits = [c for c in path.stem if c in "1234"]
    if "subtask" not in path.stem or len(digits) != 1:
        raise DataError(f"{path}: which subtask is it? pass --subtask 1, 2, 3 or 4")
    return int(digits[0])


@app.command()
def score(
    submission: Annotated[Path, typer.Argument(help="a submission file")],
    subtask: Annotated[int, typer.Option(min=1, max=4, help="1 question, 2 evidence, 3 answer, 4 alignment")],
    data: Annotated[str | None, typer.Option(help="the data it answers, with its key")] = None,
    key: KeyOpt = None,
    cases: CasesOpt = None,
    as_official: Annotated[bool, typer.Option("--as-official", help="as the official scorer, faults included")] = False,
    bertscore_model: BertscoreOpt = None,
    alignscore_checkpoint: AlignscoreOpt = None,
    roberta_model: RobertaOpt = None,
    umls_index: UmlsOpt = None,
    spacy_model: SpacyOpt = "en_core_web_sm",
    local_only: LocalOnlyOpt = False,
    json: JsonOpt = False,
) -> None:
    """The official scores of a submission, with 95 % intervals over cases."""
    from metrics.score import score_file
    from metrics.tables import Resources
    from program.display import print_scores

    keep_offline(local_only)
    resources = Resources(bertscore_model, alignscore_checkpoint, roberta_model, umls_index, spacy_model)
    result = score_file(
        submission, subtask, data=data, key=key, cases=cases, as_official=as_official, resources=resources
    )
    for note in result.notes:
        say(note)
    print_scores(result, as_json=json)


@app.command()
def show(
    program: Annotated[str, typer.Argument(help="zero_shot, handwritten, or a program file")],
    stage: Annotated[str | None, typer.Option(help="only this stage")] = None,
    case: Annotated[str | None, typer.Option(help="fill the prompts in from this case")] = None,
    data: Annotated[str, typer.Option(help="the data that --case is in")] = "sample/dev",
    demos_from: DemosFromOpt = None,
    json: JsonOpt = False,
) -> None:
    """Print the messages of each stage as they are sent."""
    from program.show import show_program

    chosen = select_cases(read_cases(data), case)[0] if case else None
    filling = read_cases(demos_from) if demos_from else None
    typer.echo(show_program(program, stage=stage, case=chosen, as_json=json, demo_cases=filling))


app.command()(optimize)
app.command()(compare)


def main() -> None:
    """Run the command; bad input and unusable LMs end in one line and exit 2, interruptions in 130."""
    from program.stops import explain_stop

    try:
        app()
    except DataError as error:
        say(f"archehr: {error}")
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        stop = explain_stop(error)
        if stop is None:
            raise
        say(f"archehr: {stop.line}")
        sys.exit(stop.exit_code)


if __name__ == "__main__":
    main()
