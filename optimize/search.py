"""Candidate prompts, and the choice among them by the whole chain on cases that were not shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from archehr.data.case import Case, DataError
from archehr.optimize.cuts import fit_cut
from archehr.optimize.demos import Demo, bootstrap, covering, fitting, labelled_demos, shuffled
from archehr.optimize.folds import Answering, Prompts, StagePrompt, assemble
from archehr.optimize.instructions import write_instructions
from archehr.optimize.scores import SUBTASK, objective
from archehr.program.pipeline import GroundedQA
from archehr.program.settings import PipelineSettings
from archehr.program.types import STAGES, StageName

OPTIMIZERS = ("labeled", "random", "bootstrap", "mipro", "gepa")

Pool = Mapping[StageName, Mapping[str, Demo]]


@dataclass(frozen=True)
class Options:
    """What an optimisation does. `demos` and `token_budget` are per stage; `weights` is subtask -> weight in the
    choice among candidates."""

    optimizer: str = "labeled"
    stages: tuple[StageName, ...] = STAGES
    demos: int = 4
    candidates: int = 4
    token_budget: int = 6000
    folds: str = "5"
    seed: int = 0
    weights: Mapping[int, float] = field(default_factory=lambda: {2: 1.0, 4: 1.0})


@dataclass(frozen=True)
class Fitted:
    """What was chosen on some cases: prompts, settings with the cut, and the objective (0-100) of every candidate on
    those same cases, each answered without its own demos."""

    prompts: Prompts
    settings: PipelineSettings
    objectives: tuple[float, ...]


def gather(options: Options, base: GroundedQA, cases: Sequence[Case], teacher: Answering) -> Pool:
    """Every demo there can be, by stage and case. Each depends on its own case alone, so that a fold may take those
    of its training cases as they are. Raises DataError for a stage without labels, or without an accepted trace."""
    pool: dict[StageName, Mapping[str, Demo]] = {}
    for stage in options.stages:
        pool[stage] = labelled_demos(stage, cases)
        if not pool[stage]:
            raise DataError(f"--stage {stage}: no case holds the labels that this stage is optimised on")
    if options.optimizer == "bootstrap":
        teacher.tell("the teacher answers every case")
        teacher.warm(base, cases, options.stages)
        for stage in options.stages:
            pool[stage] = bootstrap(stage, getattr(base, stage), cases, teacher.lm)
            teacher.tell(f"{stage}: {len(pool[stage])} of {len(labelled_demos(stage, cases))} replies accepted")
    return pool


def propose(
    options: Options, base: GroundedQA, pool: Pool, cases: Sequence[Case], answering: Answering, teacher: Answering
) -> list[Prompts]:
    """The prompts to choose from on `cases`. labeled: one set of gold demos, chosen for coverage; random: gold demos
    drawn by seed; bootstrap: accepted traces drawn by seed; mipro and gepa: what they end with."""
    if options.optimizer in ("mipro", "gepa"):
        written = {}
        for stage in options.stages:
            answering.tell(f"{options.optimizer}: {stage}")
            written[stage] = write_instructions(options, stage, base, cases, answering, teacher)
        return [written]
    return draw(options, pool, cases)


def draw(options: Options, pool: Pool, cases: Sequence[Case]) -> list[Prompts]:
    """The demo sets that `cases` allow; no LM is asked."""
    ids = {c.id for c in cases}
    usable = {stage: {i: d for i, d in demos.items() if i in ids} for stage, demos in pool.items()}
    most, budget, seed = options.demos, options.token_budget, options.seed
    if options.optimizer == "labeled":
        return [{s: StagePrompt(covering(s, demos, most, budget, seed)) for s, demos in usable.items()}]
    return [
        {
            stage: StagePrompt(fitting([demos[i] for i in shuffled(list(demos), seed, k)], most, budget))
            for stage, demos in usable.items()
        }
        for k in range(options.candidates)
    ]


def fit(
    options: Options, base: GroundedQA, made: Sequence[Prompts], cases: Sequence[Case], answering: Answering
) -> Fitted:
    """The best of the candidates `made` on `cases`, with its cut; of equals the first.

    The score stage answers first, its cut is fitted, and the rest of the chain runs on the evidence so chosen.
    """
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
            weighed = [s for s in STAGES if SUBTASK[s] in options.weights]
            records = answering.held_out(assemble(base, prompts, settings), cases, weighed)
            reached = objective(records, cases, options.weights)
        results.append((reached, prompts, settings))
    best = max(results, key=lambda r: r[0])
    return Fitted(best[1], best[2], tuple(r[0] for r in results) if len(made) > 1 else ())
