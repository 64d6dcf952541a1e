"""Optimizer: what proposes a stage's prompts, and the work it is given to do so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from archehr.data.case import Case, DataError
from archehr.optimize.demos import Demo, labelled_demos
from archehr.optimize.folds import Answering, StagePrompt
from archehr.program.pipeline import GroundedQA
from archehr.program.settings import ViewUse
from archehr.program.stages.registry import STAGES
from archehr.program.types import StageName


@dataclass(frozen=True)
class Options:
    """What an optimisation does.

    `demos` and `token_budget` are per stage; `weights` is subtask -> weight in the choice among candidates.
    `demos_tried` are several numbers of demos to choose among (none: `demos` alone), but in the stages that `demos_of`
    gives a number of their own; `views` the ways of asking for evidence with the most samples of each (none: the
    program's own), as far as their trial keeps within `max_calls`.
    """

    optimizer: str = "labeled"
    stages: tuple[StageName, ...] = tuple(STAGES)
    demos: int = 4
    candidates: int = 4
    token_budget: int = 6000
    folds: str = "5"
    seed: int = 0
    weights: Mapping[int, float] = field(default_factory=lambda: {2: 1.0, 4: 1.0})
    demos_tried: tuple[int, ...] = ()
    demos_of: Mapping[StageName, int] = field(default_factory=dict)
    views: tuple[ViewUse, ...] = ()
    max_calls: int | None = None

    @property
    def prompts(self) -> tuple[StageName, ...]:
        """The stages and views whose prompts are chosen."""
        more = [view.name for view in self.views if view.name not in self.stages]
        return (*self.stages, *(more if "score" in self.stages else ()))


@dataclass
class Work:
    """What an optimisation has to work with: options, the hand-written program, all labelled cases, the LM that will
    answer and the one that teaches. `shared` outlives a fold: what depends on a case alone is made once."""

    options: Options
    base: GroundedQA
    cases: Sequence[Case]
    answering: Answering
    teacher: Answering
    shared: dict[StageName, Mapping[str, Demo]] = field(default_factory=dict)

    def labelled(self, stage: StageName, cases: Sequence[Case]) -> dict[str, Demo]:
        """case id -> gold demo. Raises DataError for a stage without labels."""
        demos = labelled_demos(stage, cases)
        if not demos:
            raise DataError(f"--stage {stage}: no case holds the labels that this stage is optimised on")
        return demos


@runtime_checkable
class Optimizer(Protocol):
    """What `compile` gives for one stage is chosen among by the whole chain; the k-th of every stage belong together.

    `draws`: it gives `options.candidates` of them, else one. `teaches`: it asks the teacher once for every case.
    `searches`: it makes calls of its own, in a number that cannot be told before.
    """

    draws: bool = False
    teaches: bool = False
    searches: bool = False

    def compile(self, stage: StageName, cases: Sequence[Case], work: Work) -> Sequence[StagePrompt]:
        """Prompts made from `cases` alone, which are some of `work.cases`."""
        ...
