"""The comparison as a DataFrame (and CSV), as Markdown and as JSON: the same numbers, flags and notes in each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from archehr.metrics.components import SHORT, SUBTASKS
from archehr.metrics.intervals import Difference, Interval
from archehr.optimize.compare.compare import Comparison, Row

if TYPE_CHECKING:
    import pandas as pd

TOOK = ("calls", "cache_hits", "tokens_in", "tokens_out", "cost", "spent")


def frame(comparison: Comparison) -> pd.DataFrame:
    """A row per program and LM, unrounded: scores and differences (0-100) with 95 % intervals, verdicts, precision
    and recall, every component, what it took; `flags` and `notes` as text; the main score of each case alone."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                **_record(row, comparison),
                "flags": "; ".join(row.flags),
                "notes": "; ".join(comparison.notes),
                **{f"st{n}_case_{i}": score for n in row.scores for i, score in row.case_scores(n).items()},
            }
            for row in comparison.rows
        ]
    )


def records_json(comparison: Comparison) -> dict[str, Any]:
    """What `--json` prints. Holds no note text."""
    return {
        "data": comparison.data,
        "cases": [c.id for c in comparison.cases],
        "excluded": dict(comparison.excluded),
        "rows": [
            {
                **_record(row, comparison),
                "flags": list(row.flags),
                "folder": str(row.run.folder),
                "leaderboard": {f"subtask_{n}": row.scores[n].leaderboard for n in row.scores},
                "case_scores": {f"subtask_{n}": row.case_scores(n) for n in row.scores},
                "missing": {f"subtask_{n}": row.scores[n].missing for n in row.scores if row.scores[n].missing},
            }
            for row in comparison.rows
        ],
        "setup": {name: list(values) for name, values in comparison.setup.items()},
        "notes": list(comparison.notes),
    }


def markdown(comparison: Comparison) -> str:
    """A table to paste, its flags and notes below it."""
    header = [
        "program",
        *(heading(comparison, n) for n in SUBTASKS),
        "calls",
        "tokens in",
        "out",
        "cost",
        "s",
        "notices",
    ]
    caption = "; ".join(filter(None, ["95 % intervals over cases", comparison.against]))
    lines = [f"# {comparison.data}, {len(comparison.cases)} cases", "", f"{caption}.", ""]
    lines += [_md(header), _md(["---"] * len(header))]
    for row in comparison.rows:
        cells = ["<br>".join(cell(row, n)) for n in SUBTASKS]
        lines.append(_md([row_name(row, " **!**"), *cells, *took_cells(row)]))
    labels = [row.label for row in comparison.rows]
    if components := component_rows(comparison):
        lines += ["", _md(["component", *labels]), _md(["---"] * (len(labels) + 1))]
        lines += [_md([name, *("<br>".join(cell) for cell in cells)]) for name, cells in components]
    lines += ["", *(f"- {note}" for note in comparison.notes)]
    if comparison.setup:
        lines += ["", _md(["not the same in all", *labels]), _md(["---"] * (len(labels) + 1))]
        lines += [_md([name, *values]) for name, values in comparison.setup.items()]
    return "\n".join(lines) + "\n"


def heading(comparison: Comparison, subtask: int) -> str:
    """ "ST2 strict F1": the subtask and the score it is judged by."""
    first = next((main for row in comparison.rows if (main := row.main(subtask))), None)
    return f"ST{subtask} {SHORT[first[0]]}" if first else f"ST{subtask}"


def cell(row: Row, subtask: int) -> list[str]:
    """The lines of one table cell: score with interval; P and R; difference with interval; the verdict."""
    main, difference = row.main(subtask), row.difference(subtask)
    if main is None:
        return ["-"]
    lines = [_bounded(main[1])]
    if beside := SUBTASKS[subtask].beside:
        lines.append(" ".join(f"{k} {row.scores[subtask].leaderboard[v]:.1f}" for k, v in beside.items()))
    return [*lines, _bounded(difference), row.verdict(subtask)] if difference else lines


def component_rows(comparison: Comparison) -> list[tuple[str, list[list[str]]]]:
    """("ST3 bleu", the lines of each program's cell) for every component that a program has: score with interval,
    difference with interval. They are not judged: a word for each would call some better by chance."""
    rows = []
    for n in SUBTASKS:
        names = dict.fromkeys(name for row in comparison.rows if n in row.scores for name in row.scores[n].components)
        rows += [(f"ST{n} {name}", [_component_cell(row, n, name) for row in comparison.rows]) for name in names]
    return rows


def _component_cell(row: Row, subtask: int, name: str) -> list[str]:
    score, difference = _component(row, subtask, name)
    return [_bounded(part) for part in (score, difference) if part] or ["-"]


def _component(row: Row, subtask: int, name: str) -> tuple[Interval | None, Difference | None]:
    score = row.scores[subtask].intervals.get(name) if subtask in row.scores else None
    return score, row.differences.get(subtask, {}).get(name)


def _bounded(interval: Interval) -> str:
    """A score, or a difference with its signs, and its interval."""
    words = signed if isinstance(interval, Difference) else "{:.1f}".format
    return f"{words(interval.value)} ({words(interval.low)} to {words(interval.high)})"


def signed(points: float) -> str:
    """A difference with its sign; one that rounds to 0 has none."""
    return f"{points:+.1f}" if abs(points) >= 0.05 else "0.0"


def row_name(row: Row, mark: str) -> str:
    """The row's label, marked where flags say that its numbers mean less than they seem to."""
    return row.label + (mark if row.flags else "")


def took_cells(row: Row) -> list[str]:
    """Calls, tokens in and out, cost, seconds, notices."""
    took = row.took
    cost = "unknown" if took.cost is None else f"${took.cost:.4f}"
    counts = (f"{n:,}" for n in (took.calls, took.tokens_in, took.tokens_out))
    return [*counts, cost, f"{took.seconds:.1f}", str(sum(took.notices.values()))]


def _record(row: Row, comparison: Comparison) -> dict[str, Any]:
    record: dict[str, Any] = {
        "row": row.label,
        "program": row.run.program,
        "lm": row.run.lm,
        "against": row.against,
        "cases": len(comparison.cases),
    }
    for subtask in SUBTASKS:
        record |= {f"st{subtask}_{name}": value for name, value in _numbers(row, subtask)}
    took = row.took
    record |= {name: getattr(took, name) for name in TOOK}
    return record | {"seconds": took.seconds, "notices": sum(took.notices.values())}


def _numbers(row: Row, subtask: int) -> Iterator[tuple[str, Any]]:
    main, difference = row.main(subtask), row.difference(subtask)
    yield "score", main[0] if main else None
    yield from _parts("", main[1] if main else None, difference)
    yield "verdict", row.verdict(subtask) or None
    for part, name in SUBTASKS[subtask].beside.items():
        yield part.lower(), row.scores[subtask].leaderboard[name] if main else None
    for name in row.scores[subtask].components if main else ():
        yield from _parts(f"{name}_", *_component(row, subtask, name))


def _parts(name: str, score: Interval | None, difference: Difference | None) -> Iterator[tuple[str, Any]]:
    for prefix, source in ((name, score), (f"{name}difference_", difference)):
        for part in ("value", "low", "high"):
            yield f"{prefix}{part}", getattr(source, part) if source else None


def _md(cells: list[str]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"
