"""Candidate prompts, and the choice among them by the whole chain on cases that were not shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from archehr.data.case import Case
from archehr.optimize.cuts import fit_cut, scored_pairs
from archehr.optimize.folds import Prompts, StagePrompt, assemble
from archehr.optimize.optimizers.optimizer import Work
from archehr.optimize.optimizers.registry import optimizer_of
from archehr.optimize.scores import objective
from archehr.optimize.views import Mixture, best_mixtures, best_of, voted_by
from archehr.program.run.records import CaseRecord
from archehr.program.settings import PipelineSettings
from archehr.program.stages.registry import PROMPTED, STAGES, has_gold
from archehr.program.types import StageName


@dataclass(frozen=True)
class Fitted:
    """What was chosen on some cases: prompts, settings with the cut, and the objective (0-100) of every candidate on
    those same cases, each answered without its own demos; `by_votes` are the settings best at
    each number of replies, where several views were to choose from."""

    prompts: Prompts
    settings: PipelineSettings
    objectives: tuple[float, ...]
    by_votes: Mapping[int, PipelineSettings] = field(default_factory=dict)


def propose(work: Work, cases: Sequence[Case]) -> list[Prompts]:
    """The prompts to choose from, made from `cases`, for the stages and views that any of these teaches: without, one
    keeps the base's own."""
    optimizer, options = optimizer_of(work.options.optimizer), work.options
    stages = [s for s in options.prompts if any(has_gold(s, c) for c in cases)]
    made: list[Prompts] = []
    for demos in options.demos_tried or (options.demos,):
        compiled: dict[StageName, Sequence[StagePrompt]] = {}
        for stage in stages:
            sized = replace(work, options=replace(options, demos=options.demos_of.get(stage, demos)))
            compiled[stage] = optimizer.compile(stage, _left_for(stage, compiled, cases), sized)
        made += [dict(zip(stages, prompts, strict=True)) for prompts in zip(*compiled.values(), strict=True)]
    return made or [{}]


def _left_for(
    stage: StageName, compiled: Mapping[StageName, Sequence[StagePrompt]], cases: Sequence[Case]
) -> Sequence[Case]:
    """A view that votes once more, as score_b, is shown other cases than before, as far as there are others."""
    same = [name for name in compiled if PROMPTED[name].signature is PROMPTED[stage].signature]
    shown = {demo.case_id for name in same for prompt in compiled[name] for demo in prompt.demos}
    left = [case for case in cases if case.id not in shown]
    return left if any(has_gold(stage, case) for case in left) else cases


def fit(work: Work, made: Sequence[Prompts], cases: Sequence[Case]) -> Fitted:
    """The best of the candidates `made` on `cases`, with its cut; of equals the first.

    The score stage answers first, its cut is fitted, and the rest of the chain runs on the evidence so chosen.
    """
    options, base, answering = work.options, work.base, work.answering
    results: list[tuple[float, Prompts, PipelineSettings, Mapping[int, PipelineSettings]]] = []
    for number, prompts in enumerate(made, 1):
        if len(made) > 1:
            answering.tell(f"candidate {number} of {len(made)}")
        settings: PipelineSettings = base.settings
        by_votes: Mapping[int, PipelineSettings] = {}
        if "score" in options.stages:
            scored = answering.held_out(assemble(base, prompts, settings), cases, {"score"})
            settings, by_votes = fit_evidence(scored, cases, settings)
        reached = 0.0
        if len(made) > 1:
            weighed = [s.name for s in STAGES.values() if s.subtask in options.weights]
            records = answering.held_out(assemble(base, prompts, settings), cases, weighed)
            reached = objective(records, cases, options.weights)
        results.append((reached, prompts, settings, by_votes))
    best = max(results, key=lambda r: r[0])
    return Fitted(best[1], best[2], tuple(r[0] for r in results) if len(made) > 1 else (), best[3])


def fit_evidence(
    records: Sequence[CaseRecord], cases: Sequence[Case], settings: PipelineSettings
) -> tuple[PipelineSettings, dict[int, PipelineSettings]]:
    """`settings` with the cut that is best on these cases and, where several voted, the best mixture of votes; and
    those best at each number of replies. One vote has its cut fitted as ever."""
    if settings.votes == 1:
        return fit_cut(records, cases, settings), {}
    pairs = scored_pairs(records, cases)
    if not pairs:
        return settings, {}
    mixtures = best_mixtures(pairs, settings.views)
    by_votes = {n: _with_mixture(m, records, cases, settings) for n, m in mixtures.items()}
    return by_votes[best_of(mixtures).calls], by_votes


def _with_mixture(
    mixture: Mixture, records: Sequence[CaseRecord], cases: Sequence[Case], settings: PipelineSettings
) -> PipelineSettings:
    """`settings` with this mixture; a single vote's two cuts are fitted to its scores."""
    chosen = mixture.settings(settings)
    if chosen.votes == 1:
        return fit_cut([voted_by(r, chosen) for r in records], cases, chosen)
    return chosen
