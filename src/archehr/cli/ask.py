"""archehr ask: one note, one message, one answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archehr.data.readers import what_data_is
from archehr.terminal.lm_options import LMOptions, make, with_lm_options
from archehr.terminal.options import (
    DataOptions,
    JsonOpt,
    NoAbstainOpt,
    PresetOpt,
    ProgramOpt,
    SettingsOptions,
    load,
    say,
    with_data_options,
    with_settings_options,
)

NOTE = f"a note (text, HTML, RTF, PDF, DOCX), or {what_data_is()}"


@with_data_options
@with_lm_options
@with_settings_options
def ask(
    note: Annotated[Path, typer.Argument(metavar="NOTE", help=NOTE)],
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="the patient's message, or a file holding it")],
    *,
    case_id: Annotated[str | None, typer.Option("--case", help="which case, where NOTE holds several")] = None,
    question: Annotated[str | None, typer.Option(help="a clinician's question to work on instead")] = None,
    program: ProgramOpt = None,
    preset: PresetOpt = None,
    no_abstain: NoAbstainOpt = False,
    json: JsonOpt = False,
    data_options: DataOptions,
    settings: SettingsOptions,
    lm_options: LMOptions,
) -> None:
    """Answer one message from one note; print the answer with its citations and the sentences cited.

    Nothing is kept on disk.
    """
    from archehr.data.notes import case_of
    from archehr.program.run.run import run_cases
    from archehr.terminal.display import AskDisplay, fallbacks_in_words, print_answer
    from archehr.terminal.stops import ASKED_ONCE, telling

    told: list[str] = []
    options = data_options.read_options()
    case = case_of(note, message, question=question, case_id=case_id, options=options, notes=told)
    for line in told:
        say(line)
    lm = make(lm_options)
    loaded = load(program, lm, preset, no_abstain=no_abstain, settings=settings)
    with telling(ASKED_ONCE), AskDisplay(case, lm):
        result = run_cases([case], loaded, lm, question="given" if question else "own", tell=say)
    print_answer(case, result.records[0], as_json=json)
    if (fallen_back := fallbacks_in_words(result)) is not None:
        say(fallen_back)
        raise typer.Exit(1)
