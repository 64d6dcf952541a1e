"""The comparison on a terminal: scores and differences, what each run took, and the notes that belong to them."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from archehr.metrics.components import SUBTASKS
from archehr.optimize.compare.compare import BETTER, WORSE, Comparison, Row
from archehr.optimize.compare.tables import cell, component_rows, heading, row_name, took_cells

WIDTH = 118  # where stdout is no terminal
STYLE = {BETTER: "bold green", WORSE: "bold red"}


def print_comparison(comparison: Comparison) -> None:
    """Two tables, then the notes, on stdout."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    title = [f"{comparison.data}, {len(comparison.cases)} cases, 95 % intervals over cases", comparison.against]
    console.print(escape("; ".join(filter(None, title))))
    scores = Table(box=None, pad_edge=False)
    scores.add_column("program", overflow="fold")
    for n in SUBTASKS:
        scores.add_column(heading(comparison, n))
    for row in comparison.rows:
        scores.add_row(escape(row_name(row, " (!)")), *(_cell(row, n) for n in SUBTASKS))
        scores.add_row()
    console.print(scores)
    if components := component_rows(comparison):
        parts = Table("component", *(escape(row.label) for row in comparison.rows), box=None, pad_edge=False)
        for name, cells in components:
            parts.add_row(escape(name), *(lines[0] for lines in cells))  # the differences stand in the files
        console.print(parts)
        console.print()
    took = Table("program", box=None, pad_edge=False)
    for name in ("calls", "tokens in", "tokens out", "cost", "seconds", "notices"):
        took.add_column(name, justify="right")
    for row in comparison.rows:
        took.add_row(escape(row.label), *took_cells(row))
    console.print(took)
    console.print()
    if comparison.setup:
        setup = Table("not the same in all", *(escape(row.label) for row in comparison.rows), box=None, pad_edge=False)
        for name, values in comparison.setup.items():
            setup.add_row(escape(name.removeprefix("settings.")), *map(escape, values))
        console.print(setup)
        console.print()
    for note in comparison.notes:
        console.print(escape(note), style="bold" if note in comparison.warnings else None)


def _cell(row: Row, subtask: int) -> str:
    lines = [escape(line) for line in cell(row, subtask)]
    style = STYLE.get(row.verdict(subtask))
    return "\n".join([*lines[:-1], f"[{style}]{lines[-1]}[/]"] if style else lines)
