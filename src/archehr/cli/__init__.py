"""The `archehr` command: one file a command; what they share is in archehr.terminal."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from archehr import __version__
from archehr.cli.ask import ask
from archehr.cli.cache import cache
from archehr.cli.compare import compare
from archehr.cli.optimize import optimize
from archehr.cli.review import review
from archehr.cli.run import run
from archehr.cli.score import score
from archehr.cli.show import show
from archehr.cli.validate import validate
from archehr.data.case import DataError
from archehr.terminal.options import say

COMMANDS = (run, ask, validate, score, show, optimize, compare, review, cache)

app = typer.Typer(
    name="archehr",
    help="Answer a patient's question from a clinical note, and show the evidence.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in COMMANDS:
    app.command()(command)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"archehr {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; bad input and unusable LMs end in one line and exit 2, interruptions in 130."""
    from archehr.terminal.stops import explain_stop

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
