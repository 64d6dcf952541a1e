"""What --dry-run prints: calls, tokens and dollars by stage, of a run, of a comparison's runs, of an optimisation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from archehr.terminal.display import print_columns
from archehr.terminal.options import say

if TYPE_CHECKING:
    from archehr.optimize.compare.runs import RunEstimate
    from archehr.program.run.estimate import StageEstimate

Stages = Mapping[str, "StageEstimate"]

NO_LM = "Nothing would be sent: this program asks no LM."
NOT_IN_IT = (
    "estimated at 4 characters a token with replies of usual length; thinking, retries and faulty replies come on top"
)
HEAD = ("stage", "LM", "calls", "tokens in", "shared", "tokens out", "dollars")


def print_estimate(stages: Stages, cases: int, done: int, *, as_json: bool) -> None:
    """Of a run, as a table (or JSON) on stdout: a row per stage and the sums."""
    if as_json:
        _print_json({"cases": cases, "done_before": done, "stages": _json(stages)})
    elif not stages and not done:
        print(NO_LM)
    else:
        print_columns([HEAD, *_rows(stages)])
        before = f"; {done} more are done already" if done else ""
        _print_sums(stages.values(), f"{cases} cases to answer{before}")


def print_comparison_estimate(runs: Mapping[str, RunEstimate], *, as_json: bool) -> None:
    """Of a comparison: the rows of each run that it would make, and of all."""
    if as_json:
        rows = {name: {"cases": r.cases, "done_before": r.done, "stages": _json(r.stages)} for name, r in runs.items()}
        _print_json({"runs": rows, "all": _json({"all": _sum(runs)})["all"]})
    elif not any(its.stages for its in runs.values()):
        print(NO_LM if not any(its.done for its in runs.values()) else "Nothing would be sent: all is done.")
    else:
        _print_parts("run", {name: its.stages for name, its in runs.items() if its.stages})
        done = sum(its.done for its in runs.values())
        before = f"; {done} more are done already" if done else ""
        cases = sum(its.cases for its in runs.values())
        _print_sums([_sum(runs)], f"{len(runs)} runs, {cases} cases to answer{before}")


def print_optimisation_estimate(parts: Mapping[str, Stages], line: str, *, as_json: bool) -> None:
    """Of an optimisation: the rows of each of its parts, and of all; `line` is the one that it begins with."""
    if as_json:
        rows = {part: _json(stages) for part, stages in parts.items()}
        _print_json({"parts": rows, "all": _json({"all": _all(parts)})["all"]})
    else:
        _print_parts("for", parts)
        _print_sums([_all(parts)], line)


def say_until_when(lms: Iterable[Any], *, batch: bool = False) -> None:
    """A line on each price that is known to end."""
    from archehr.program.run.estimate import price_of

    prices = {
        lm.model: price for lm in lms if (price := price_of(lm, batch=batch)) is not None and price.until is not None
    }
    for model, price in prices.items():
        say(f"{model}: ${price.input:g} in, ${price.output:g} out per million tokens until {price.until}")


def _print_parts(first: str, parts: Mapping[str, Stages]) -> None:
    rows: list[tuple[str, ...]] = [(first, *HEAD)]
    for part, stages in parts.items():
        rows += [(part if row == 0 else "", *cells) for row, cells in enumerate(_rows(stages))]
    rows.append(("all", "", *_row("", _all(parts))[1:]))
    print_columns(rows)


def _print_sums(estimates: Iterable[StageEstimate], what: str) -> None:
    from archehr.program.run.estimate import sum_of

    total = sum_of(estimates)
    print(f"\nNothing was sent. {what[0].upper()}{what[1:]}; {NOT_IN_IT}.")
    if total.cost is None:
        print("No price is known for an LM of these: give --price-in and --price-out per million tokens.")
    elif total.cost and total.saved:
        share = f"{_dollars(total.saved)} of it ({total.saved / total.cost:.0%})"
        print(f"A provider's prefix cache would save up to {share}.")


def _rows(stages: Stages) -> list[tuple[str, ...]]:
    from archehr.program.run.estimate import sum_of

    return [*(_row(stage, its) for stage, its in stages.items()), _row("all", sum_of(stages.values()))]


def _row(name: str, its: StageEstimate) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (its.calls, its.tokens_in, its.shared, its.tokens_out))
    return name, its.lm, *counts, _dollars(its.cost)


def _sum(runs: Mapping[str, RunEstimate]) -> StageEstimate:
    return _all({name: its.stages for name, its in runs.items()})


def _all(parts: Mapping[str, Stages]) -> StageEstimate:
    from archehr.program.run.estimate import sum_of

    return sum_of(its for stages in parts.values() for its in stages.values())


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.4f}"


def _json(stages: Stages) -> dict[str, Any]:
    return {stage: asdict(its) for stage, its in stages.items()}


def _print_json(value: Mapping[str, Any]) -> None:
    print(json.dumps(value, indent=1))
