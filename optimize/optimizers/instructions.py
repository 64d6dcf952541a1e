"""MIPROv2 and GEPA on one stage with gold inputs: instructions that an LM wrote, and MIPROv2's demos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from archehr.data.case import Case, DataError
from archehr.metrics.feedback import accept
from archehr.optimize.demos import fitting, make_demo, shuffled
from archehr.optimize.folds import StagePrompt
from archehr.optimize.optimizers.optimizer import Optimizer, Work
from archehr.optimize.teaching import StageTask, quiet, without_asking_again
from archehr.program.settings import PipelineSettings
from archehr.program.stages.demos import made_from
from archehr.program.stages.registry import PROMPTED
from archehr.program.types import StageName


class _Instructions(Optimizer):
    """Half of the cases to learn from, half to choose on; `options.candidates` bounds the search.

    The teacher proposes; it is shown the cases, so its instructions may hold their text. Raises DataError for fewer
    than 2 cases or without optuna, and what an LM call may raise. DSPy's own evaluation, which both use, asks again
    for a reply that takes over two minutes.
    """

    searches = True

    def compile(self, stage: StageName, cases: Sequence[Case], work: Work) -> Sequence[StagePrompt]:
        options = work.options
        work.answering.tell(f"{options.optimizer}: {stage}")
        labels = PROMPTED[stage].taught()
        taught = {c.id: c for c in cases if labels.present(c)}
        order = shuffled(list(taught), options.seed, 0)
        if len(order) < 2:
            raise DataError(f"--optimizer {options.optimizer}: stage {stage} has {len(order)} labelled cases, needs 2")
        # The proposers read an example's fields; the stage itself is asked by case id.
        examples = [dspy.Example(case_id=i, **labels.demo(taught[i])).with_inputs("case_id") for i in order]
        train, val = examples[: len(order) // 2], examples[len(order) // 2 :]
        task = StageTask(stage, without_asking_again(getattr(work.base, stage)), list(taught.values()))
        context = dspy.context(lm=work.answering.lm_of(stage), adapter=dspy.JSONAdapter(), disable_history=True)
        with quiet(task.failure), context:
            best = self.search(task, train, val, work)
        predict = best.module.predict
        demos = [make_demo(stage, _source(d, taught), "bootstrapped", dict(d)) for d in predict.demos]
        fit = fitting(demos, options.demos, options.token_budget)
        return [StagePrompt(fit, predict.signature.instructions)]

    def search(self, task: StageTask, train: list[dspy.Example], val: list[dspy.Example], work: Work) -> StageTask:
        """The task with what was found."""
        raise NotImplementedError


class Mipro(_Instructions):
    """DSPy's MIPROv2: that many instructions and demo sets, tried by Bayesian search."""

    def search(self, task: StageTask, train: list[dspy.Example], val: list[dspy.Example], work: Work) -> StageTask:
        try:
            import optuna
        except ImportError:
            raise DataError("--optimizer mipro needs optuna: pip install '.[mipro]' in the clone") from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        options, settings = work.options, work.base.settings

        def metric(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float | bool:
            reached = _score(task, example, prediction, settings)
            # With a trace the question is whether to keep a demo, and every float above 0 would be a yes.
            return reached if trace is None else accept(reached, task.labels.threshold) and not prediction.notices

        optimiser = dspy.MIPROv2(
            metric=metric,
            prompt_model=work.teacher.lm_of(task.stage),
            task_model=work.answering.lm_of(task.stage),
            teacher_settings={"lm": work.teacher.lm_of(task.stage)},
            max_bootstrapped_demos=options.demos,
            max_labeled_demos=0,
            auto=None,
            num_candidates=options.candidates,
            num_threads=work.answering.workers,
            max_errors=1,
            seed=options.seed,
        )
        return optimiser.compile(
            task, trainset=train, valset=val, num_trials=options.candidates, minibatch=False, seed=options.seed
        )


class Gepa(_Instructions):
    """DSPy's GEPA: instructions rewritten from what went wrong, in words; that often on all cases."""

    def search(self, task: StageTask, train: list[dspy.Example], val: list[dspy.Example], work: Work) -> StageTask:
        options, settings = work.options, work.base.settings

        def metric(
            gold: dspy.Example, pred: dspy.Prediction, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
        ) -> dspy.Prediction:
            feedback = _feedback(task, gold, pred, settings)
            return dspy.Prediction(score=_score(task, gold, pred, settings), feedback=feedback)

        optimiser = dspy.GEPA(
            metric=metric,
            max_metric_calls=options.candidates * (len(train) + len(val)),
            reflection_lm=work.teacher.lm_of(task.stage),
            use_merge=False,  # merging joins the lineages of several predictors; here is one
            num_threads=work.answering.workers,
            seed=options.seed,
        )
        return optimiser.compile(task, trainset=train, valset=val)


def _source(demo: Mapping[str, Any], cases: Mapping[str, Case]) -> Case:
    return next(case for case in cases.values() if made_from(demo, case))


def _score(task: StageTask, example: dspy.Example, prediction: dspy.Prediction, settings: PipelineSettings) -> float:
    """The stage's metric; an answer that the LM did not give is worth nothing."""
    if any(n.kind == "lm_failed" for n in prediction.notices):
        return 0.0
    return task.labels.score(prediction, task.cases[example.case_id], settings)


def _feedback(task: StageTask, example: dspy.Example, prediction: dspy.Prediction, settings: PipelineSettings) -> str:
    """What the stage says of a reply, its faults, and what a reviewer remarked on an earlier answer to the case."""
    case = task.cases[example.case_id]
    text = task.labels.feedback(prediction, case, settings)
    if repairs := "; ".join(f"{n.kind}: {n.detail}" for n in prediction.notices):
        text += f" The reply had faults ({repairs})."
    if case.gold is not None and case.gold.remark:
        text += f" A reviewer remarked on an earlier answer to this case: {case.gold.remark}"
    return text
