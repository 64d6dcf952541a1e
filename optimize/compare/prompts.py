"""How the prompts of two programs differ, stage by stage: instructions line by line, demos, size."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from archehr.optimize.compare.compare import Comparison
from archehr.optimize.compare.program_run import ProgramRun
from archehr.optimize.optimize import prompt_tokens
from archehr.program.prompts.program_file import to_program
from archehr.program.stages.registry import PROMPTED
from archehr.program.types import StageName


@dataclass(frozen=True)
class DemoDifference:
    """One demo: where it is from ("" where the file does not say), whether the baseline has it too, its text."""

    source: str
    shared: bool
    text: str


@dataclass(frozen=True)
class StageDifference:
    """One stage of one program beside its baseline. `instructions` are (sign, line) pairs, with " " for a line both
    have, "+" for one only this program has, "-" for one only the baseline has; `tokens` are estimated, before a case
    is filled in."""

    label: str
    against: str | None
    tokens: int
    instructions: Sequence[tuple[Literal[" ", "+", "-"], str]]
    demos: Sequence[DemoDifference]
    demos_dropped: int

    @property
    def same_instructions(self) -> bool:
        return all(sign == " " for sign, _ in self.instructions)


def prompt_differences(comparison: Comparison) -> dict[StageName, list[StageDifference]]:
    """Stage or view -> one entry per row that has a prompt of it."""
    runs = {row.label: row.run for row in comparison.rows}
    differences: dict[StageName, list[StageDifference]] = {}
    named = dict.fromkeys(stage for row in comparison.rows if row.run.file for stage in row.run.file.stages)
    for stage in dict.fromkeys([*(name for name in PROMPTED if name in named), *named]):
        rows = [row for row in comparison.rows if row.run.file and stage in row.run.file.stages]
        differences[stage] = [_stage(stage, row.run, runs[row.against] if row.against else None) for row in rows]
    return differences


def _stage(stage: StageName, run: ProgramRun, base: ProgramRun | None) -> StageDifference:
    assert run.file is not None
    comparable = base if base and base.file and stage in base.file.stages else None
    ours = run.file.stages[stage]
    theirs = comparable.file.stages[stage] if comparable and comparable.file else ours
    sources = run.file.provenance.demo_case_ids.get(stage, ())
    demos = [
        DemoDifference(
            sources[i] if i < len(sources) else "", comparable is not None and demo in theirs.demos, _text(demo)
        )
        for i, demo in enumerate(ours.demos)
    ]
    return StageDifference(
        run.label,
        comparable.label if comparable else None,
        prompt_tokens(to_program(run.file), stage),
        _line_difference(str(theirs.signature["instructions"]), str(ours.signature["instructions"])),
        demos,
        sum(demo not in ours.demos for demo in theirs.demos),
    )


def _line_difference(before: str, after: str) -> list[tuple[Any, str]]:
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [(line[0], line[2:]) for line in lines if line[0] != "?"]


def _text(demo: Mapping[str, Any]) -> str:
    """A demo's fields as a person reads them; lists an entry a line."""
    parts = []
    for name, value in demo.items():
        if name == "case_sha256":
            continue
        text = "\n".join(map(_entry, value)) if isinstance(value, list) else str(value)
        parts.append(f"{name}:\n{text}")
    return "\n\n".join(parts)


def _entry(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    return "  ".join(f"{k} {', '.join(map(str, v)) or 'none' if isinstance(v, list) else v}" for k, v in value.items())
