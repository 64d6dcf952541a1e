"""Where the marks of the interval plots stand: scores on 0-100, differences around 0. Drawn by the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archehr.metrics.components import SUBTASKS
from archehr.metrics.intervals import Interval
from archehr.optimize.compare.compare import Comparison, Row
from archehr.optimize.compare.tables import heading
from archehr.optimize.compare.tables import signed as signed_points

WIDTH, LEFT, RIGHT = 360, 10, 350  # of one plot, and of its axis, in SVG units
LONGEST = 30  # characters of a label that leave room for its interval
ROW, TOP, BOTTOM = 38, 6, 26


@dataclass(frozen=True)
class Mark:
    """One row's interval: its label and value in words, its height and the three places on the axis."""

    label: str
    words: str
    verdict: str
    y: float
    low: float
    value: float
    high: float


@dataclass(frozen=True)
class Plot:
    """One axis with its marks. `ticks` are (place, text); `zero` is the place of 0 where it must be seen."""

    title: str
    marks: Sequence[Mark]
    ticks: Sequence[tuple[float, str]]
    zero: float | None

    @property
    def height(self) -> int:
        return TOP + ROW * len(self.marks) + BOTTOM


def plots(comparison: Comparison, letters: Mapping[str, str]) -> list[tuple[str, list[Plot]]]:
    """(heading, plots) per subtask that was scored: the scores and, where something is compared, the differences.

    Rows are called by their labels or, where one is too long, by their letters.
    """
    longest = max(len(f"{row.label} − {row.against}" if row.against else row.label) for row in comparison.rows)
    names = letters if longest > LONGEST else {label: label for label in letters}
    sections = []
    for subtask in SUBTASKS:
        scored = [(row, main[1]) for row in comparison.rows if (main := row.main(subtask))]
        compared = [(row, d) for row in comparison.rows if (d := row.difference(subtask))]
        if not scored:
            continue
        name = heading(comparison, subtask)
        figures = [_plot(f"{name}, 95 % intervals", scored, 0.0, 100.0, subtask, names, signed=False)]
        if compared:
            reach = max(10.0, *(max(abs(d.low), abs(d.high)) for _, d in compared))
            reach = 10 * -(-reach // 10)
            figures.append(_plot(f"{name}, difference in points", compared, -reach, reach, subtask, names, signed=True))
        sections.append((name, figures))
    return sections


def _plot(
    title: str,
    rows: Sequence[tuple[Row, Interval]],
    least: float,
    most: float,
    subtask: int,
    names: Mapping[str, str],
    *,
    signed: bool,
) -> Plot:
    def at(value: float) -> float:
        value = min(max(value, least), most)  # MEDCON and BERTScore may leave 0-100
        return round(LEFT + (value - least) / (most - least) * (RIGHT - LEFT), 1)

    words = signed_points if signed else "{:.1f}".format
    marks = [
        Mark(
            f"{names[row.label]} − {names[str(row.against)]}" if signed else names[row.label],
            f"{words(i.value)} ({words(i.low)} to {words(i.high)})",
            row.verdict(subtask) if signed else "",
            TOP + ROW * n + 26.0,
            at(i.low),
            at(i.value),
            at(i.high),
        )
        for n, (row, i) in enumerate(rows)
    ]
    ticks = [least, (least + most) / 2, most] if signed else [0.0, 25.0, 50.0, 75.0, 100.0]
    labels = [(at(t), f"{t:+.0f}" if signed and t else f"{t:.0f}") for t in ticks]
    return Plot(title, marks, labels, at(0.0) if signed else None)
