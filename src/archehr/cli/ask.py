"""archehr ask: one note, one message, one answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archehr.terminal.options import (
    JsonOpt,
    LMOptions,
    NoAbstainOpt,
    PresetOpt,
    ProgramOpt,
    load,
    make,
    say,
    with_lm_options,
)


@with_lm_options
def ask(
    note: Annotated[Path, typer.Argument(metavar="NOTE", help="a text file with the note")],
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="the patient's message, or a file holding it")],
    *,
    question: Annotated[str | None, typer.Option(help="a clinician's question to work on instead")] = None,
    program: ProgramOpt = None,
    preset: PresetOpt = None,
    no_abstain: NoAbstainOpt = False,
    json: JsonOpt = False,
    lm_options: LMOptions,
) -> None:
    """Answer one message from one note; print the answer with its citations and the sentences cited.

    Nothing is kept on disk.
    """
    from archehr.data.notes import case_of
    from archehr.program.run.run import run_cases
    from archehr.terminal.display import fallbacks_in_words, print_answer

    told: list[str] = []
    case = case_of(note, message, question, notes=told)
    for line in told:
        say(line)
    lm = make(lm_options)
    loaded = load(program, lm, preset, no_abstain=no_abstain)
    result = run_cases([case], loaded, lm, question="given" if question else "own", tell=say)
    print_answer(case, result.records[0], as_json=json)
    if (line := fallbacks_in_words(result)) is not None:
        say(line)
        raise typer.Exit(1)
