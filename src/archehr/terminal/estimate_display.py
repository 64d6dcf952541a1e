"""What a run would take, as a table: `archehr run --dry-run`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from archehr.terminal.display import print_columns

if TYPE_CHECKING:
    from archehr.program.run.estimate import StageEstimate

NOT_IN_IT = (
    "estimated at 4 characters a token with replies of usual length; thinking, retries and faulty replies come on top"
)


def print_estimate(estimates: Mapping[str, StageEstimate], cases: int, done: int, *, as_json: bool) -> None:
    """The table (or JSON) on stdout: a row per stage and the sums."""
    if as_json:
        stages = {stage: asdict(its) for stage, its in estimates.items()}
        print(json.dumps({"cases": cases, "done_before": done, "stages": stages}, indent=1))
        return
    if not estimates and not done:
        print("Nothing would be sent: this program asks no LM.")
        return
    rows: list[tuple[str, ...]] = [("stage", "LM", "calls", "tokens in", "shared", "tokens out", "dollars")]
    rows += [(stage, its.lm, *_numbers(its.calls, its.tokens_in, its.shared, its.tokens_out), _dollars(its.cost))
             for stage, its in estimates.items()]  # fmt: skip
    sums = [sum(getattr(its, n) for its in estimates.values()) for n in ("calls", "tokens_in", "shared", "tokens_out")]
    cost = _sum([its.cost for its in estimates.values()])
    rows.append(("all", "", *_numbers(*sums), _dollars(cost)))
    print_columns(rows)
    before = f"; {done} more are done already" if done else ""
    print(f"\nNothing was sent. {cases} cases to answer{before}; {NOT_IN_IT}.")
    saved = _sum([its.saved for its in estimates.values()])
    if cost is None:
        print("No price is known for an LM of these: give --price-in and --price-out per million tokens.")
    elif cost and saved:
        print(f"A provider's prefix cache would save up to {_dollars(saved)} of it ({saved / cost:.0%}).")


def _numbers(*counts: int) -> tuple[str, ...]:
    return tuple(f"{count:,}" for count in counts)


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.4f}"


def _sum(costs: list[float | None]) -> float | None:
    numbers = [cost for cost in costs if cost is not None]
    return sum(numbers) if len(numbers) == len(costs) else None
