"""archehr show: a program's prompts as they are sent, or the weights of one that was fitted."""

from __future__ import annotations

from typing import Annotated

import typer

from archehr.data.case import Case, DataError, shown_ids
from archehr.terminal.options import DataOptions, DemosFromOpt, JsonOpt, read_data, with_data_options


@with_data_options
def show(
    program: Annotated[str, typer.Argument(help="a built-in program or a program file")],
    stage: Annotated[str | None, typer.Option(help="only this stage")] = None,
    case: Annotated[str | None, typer.Option(help="fill the prompts in from this case")] = None,
    data: Annotated[str, typer.Option(help="the data that --case is in")] = "sample/dev",
    demos_from: DemosFromOpt = None,
    json: JsonOpt = False,
    *,
    data_options: DataOptions,
) -> None:
    """Print the messages of each stage as they are sent, or, without an LM, the weights of what was fitted."""
    from archehr.program.prompts.show import show_program

    chosen = _case(case, data, data_options) if case else None
    filling = read_data(demos_from).cases if demos_from else None
    typer.echo(show_program(program, stage=stage, case=chosen, as_json=json, demo_cases=filling))


def _case(wanted: str, data: str, options: DataOptions) -> Case:
    cases = {case.id: case for case in read_data(data, options=options).cases}
    if wanted not in cases:
        raise DataError(f"--case {wanted}: {data} has {shown_ids(cases)}; name the data that holds it with --data")
    return cases[wanted]
