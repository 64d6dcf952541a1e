"""A teacher's own replies as demos, where they are good enough: DSPy's BootstrapFewShot, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dspy

from archehr.data.case import Case, DataError
from archehr.optimize.demos import Demo, make_demo
from archehr.optimize.folds import StagePrompt
from archehr.optimize.optimizers.gold import drawn
from archehr.optimize.optimizers.optimizer import Optimizer, Work
from archehr.optimize.teaching import Acceptance, StageTask, quiet, without_asking_again
from archehr.program.stages.registry import PROMPTED
from archehr.program.types import StageName


class Bootstrap(Optimizer):
    """Sets of accepted replies, drawn by seed. Each depends on its case alone, so a fold takes those of its training
    cases as they are."""

    draws = teaches = True

    def compile(self, stage: StageName, cases: Sequence[Case], work: Work) -> Sequence[StagePrompt]:
        ids = {c.id for c in cases}
        return drawn({i: d for i, d in _accepted(stage, work).items() if i in ids}, work.options)


def _accepted(stage: StageName, work: Work) -> Mapping[str, Demo]:
    if not work.shared:
        work.teacher.tell("the teacher answers every case")
        work.teacher.warm(work.base, work.cases, work.options.stages)
    if stage not in work.shared:
        labelled = work.labelled(stage, work.cases)
        work.shared[stage] = bootstrap(stage, getattr(work.base, stage), work.cases, work.teacher.lm_of(stage))
        work.teacher.tell(f"{stage}: {len(work.shared[stage])} of {len(labelled)} replies accepted")
    return work.shared[stage]


def bootstrap(stage: StageName, module: dspy.Module, cases: Sequence[Case], teacher_lm: dspy.LM) -> dict[str, Demo]:
    """case id -> the teacher's own reply as a demo, for the cases of `cases` on which it is good enough.

    `module` is the stage without demos, so a reply depends on its case alone: no case is its own demo in the teacher,
    and the demos of a subset of cases are those of a compilation on that subset. Raises DataError where no case
    passes, and what an LM call may raise.
    """
    labels = PROMPTED[stage].taught()
    taught = [c for c in cases if labels.present(c)]
    task = StageTask(stage, without_asking_again(module), taught)
    metric = Acceptance(stage, task.cases, module.settings)
    optimiser = dspy.BootstrapFewShot(
        metric=metric,
        max_bootstrapped_demos=max(len(taught), 1),
        max_labeled_demos=0,
        max_errors=1,  # at the second DSPy would have logged the first, with the example's text
        teacher_settings={"lm": teacher_lm},
    )
    with quiet(task.failure), dspy.context(lm=teacher_lm, disable_history=True):
        compiled = optimiser.compile(task, trainset=[dspy.Example(case_id=c.id).with_inputs("case_id") for c in taught])
    demos = compiled.module.predict.demos
    if not demos:
        best = max(metric.scores.values(), default=0.0)
        raise DataError(
            f"--stage {stage}: the teacher's reply was accepted on 0 of {len(taught)} cases ({labels.metric} of at "
            f"least {labels.threshold:.2f} without a repair; best {best:.2f}); name a stronger --teacher-lm, or take "
            "--optimizer labeled"
        )
    pairs = zip(metric.accepted, demos, strict=True)
    return {i: make_demo(stage, task.cases[i], "bootstrapped", d.toDict()) for i, d in pairs}
