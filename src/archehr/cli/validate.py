"""archehr validate: would the organisers accept a submission?"""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from archehr.data.submission import loader_fault, read_submission, validate_submission
from archehr.terminal.options import CasesOpt, DataOptions, JsonOpt, read_data, with_data_options
from archehr.terminal.submissions import submission_files

MOST_SHOWN = 40  # lines of a kind, where every case may have one


@with_data_options
def validate(
    submission: Annotated[Path, typer.Argument(help="a submission file, or a run folder")],
    data: Annotated[str, typer.Option(help="the data it answers")],
    subtask: Annotated[int | None, typer.Option(min=1, max=4, help="1-4 [read from the file name]")] = None,
    cases: CasesOpt = None,
    json: JsonOpt = False,
    *,
    data_options: DataOptions,
) -> None:
    """Is this submission acceptable? No key is needed. Exit 1 if it has faults."""
    wanted = read_data(data, wanted=cases, options=data_options).cases
    reports = {}
    for number, path in submission_files(submission, subtask).items():
        reports[path.name] = report = validate_submission(read_submission(path), wanted, number)
        if (fault := loader_fault(path)) is not None:
            report.faults.insert(0, fault)
        if not json:
            for kind, lines in (("fault", report.faults), ("warning", report.warnings)):
                for line in lines[:MOST_SHOWN]:
                    typer.echo(f"{path}: {kind}: {line}")
                if (more := len(lines) - MOST_SHOWN) > 0:
                    typer.echo(f"{path}: {more} more {kind}s; --json lists them all")
            typer.echo(f"{path}: subtask {number}: {'acceptable' if report.ok else 'not acceptable'}")
    if json:
        found = {name: {"ok": r.ok, "faults": r.faults, "warnings": r.warnings} for name, r in reports.items()}
        typer.echo(jsonlib.dumps(found, indent=1))
    if not all(r.ok for r in reports.values()):
        raise typer.Exit(1)
