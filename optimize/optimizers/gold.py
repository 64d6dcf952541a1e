"""Gold demos without any LM call: one set chosen for coverage, or sets drawn by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archehr.data.case import Case
from archehr.optimize.demos import Demo, covering, fitting, shuffled
from archehr.optimize.folds import StagePrompt
from archehr.optimize.optimizers.optimizer import Optimizer, Options, Work
from archehr.program.types import StageName


class Labeled(Optimizer):
    """The demos that show the most, as the stage arranges them."""

    def compile(self, stage: StageName, cases: Sequence[Case], work: Work) -> Sequence[StagePrompt]:
        most, budget, seed = work.options.demos, work.options.token_budget, work.options.seed
        return [StagePrompt(covering(stage, work.labelled(stage, cases), most, budget, seed))]


class Random(Optimizer):
    """Sets of demos drawn by seed."""

    draws = True

    def compile(self, stage: StageName, cases: Sequence[Case], work: Work) -> Sequence[StagePrompt]:
        return drawn(work.labelled(stage, cases), work.options)


def drawn(demos: Mapping[str, Demo], options: Options) -> list[StagePrompt]:
    """As many sets of `demos` as there are to be candidates."""
    orders = [shuffled(list(demos), options.seed, k) for k in range(options.candidates)]
    return [StagePrompt(fitting([demos[i] for i in ids], options.demos, options.token_budget)) for ids in orders]
