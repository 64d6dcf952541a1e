"""Candidate prompts, and the choice among them by the whole chain on cases that were not shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from archehr.data.case import Case
from archehr.optimize.cuts import fit_cut
from archehr.optimize.folds import Prompts, assemble
from archehr.optimize.optimizers.optimizer import Work
from archehr.optimize.optimizers.registry import optimizer_of
from archehr.optimize.scores import objective
from archehr.program.settings import PipelineSettings
from archehr.program.stages.registry import STAGES


@dataclass(frozen=True)
class Fitted:
    """What was chosen on some cases: prompts, settings with the cut, and the objective (0-100) of every candidate on
    those same cases, each answered without its own demos."""

    prompts: Prompts
    settings: PipelineSettings
    objectives: tuple[float, ...]


def propose(work: Work, cases: Sequence[Case]) -> list[Prompts]:
    """The prompts to choose from, made from `cases`, for the stages that any of these teaches: without, a stage keeps
    the base's own."""
    optimizer = optimizer_of(work.options.optimizer)
    stages = [s for s in work.options.stages if any(STAGES[s].has_gold(c) for c in cases)]
    compiled = [optimizer.compile(stage, cases, work) for stage in stages]
    return [dict(zip(stages, prompts, strict=True)) for prompts in zip(*compiled, strict=True)] or [{}]


def fit(work: Work, made: Sequence[Prompts], cases: Sequence[Case]) -> Fitted:
    """The best of the candidates `made` on `cases`, with its cut; of equals the first.

    The score stage answers first, its cut is fitted, and the rest of the chain runs on the evidence so chosen.
    """
    options, base, answering = work.options, work.base, work.answering
    results: list[tuple[float, Prompts, PipelineSettings]] = []
    for number, prompts in enumerate(made, 1):
        if len(made) > 1:
            answering.tell(f"candidate {number} of {len(made)}")
        settings = base.settings
        if "score" in options.stages:
            scored = answering.held_out(assemble(base, prompts, settings), cases, {"score"})
            settings = fit_cut(scored, cases, settings)
        reached = 0.0
        if len(made) > 1:
            weighed = [s.name for s in STAGES.values() if s.subtask in options.weights]
            records = answering.held_out(assemble(base, prompts, settings), cases, weighed)
            reached = objective(records, cases, options.weights)
        results.append((reached, prompts, settings))
    best = max(results, key=lambda r: r[0])
    return Fitted(best[1], best[2], tuple(r[0] for r in results) if len(made) > 1 else ())
