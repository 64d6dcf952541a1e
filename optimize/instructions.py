"""MIPROv2 and GEPA on one stage with gold inputs: instructions that an LM wrote, and MIPROv2's demos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dspy

from archehr.data.case import Case, DataError
from archehr.metrics.feedback import accept, alignment_feedback, evidence_feedback
from archehr.optimize.demos import THRESHOLD, StageTask, fitting, link_pairs, make_demo, quiet, shuffled, stage_score
from archehr.optimize.folds import Answering, StagePrompt
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.gold import gold_demo, has_gold, made_from
from archehr.program.settings import PipelineSettings
from archehr.program.stages.score_sentences import select_evidence
from archehr.program.types import StageName

if TYPE_CHECKING:
    from archehr.optimize.search import Options


def write_instructions(
    options: Options,
    stage: StageName,
    base: GroundedQA,
    cases: Sequence[Case],
    answering: Answering,
    teacher: Answering,
) -> StagePrompt:
    """What MIPROv2 ("mipro") or GEPA ("gepa") makes of a stage: half of `cases` to learn from, half to choose on.

    `options.candidates` bounds the search: MIPROv2 tries that many instructions and demo sets, GEPA evaluates on all
    cases that often. The teacher proposes; it is shown the cases, so its instructions may hold their text. Raises
    DataError for fewer than 2 cases or without optuna, and what an LM call may raise.

    DSPy's own evaluation, which both use, asks again for a reply that takes over two minutes.
    """
    taught = {c.id: c for c in cases if has_gold(stage, c)}
    order = shuffled(list(taught), options.seed, 0)
    if len(order) < 2:
        raise DataError(f"--optimizer {options.optimizer}: stage {stage} has {len(order)} labelled cases, and needs 2")
    examples = [_example(stage, taught[i]) for i in order]
    train, val = examples[: len(order) // 2], examples[len(order) // 2 :]
    module = getattr(base, stage)
    blank = type(module)(module.settings.model_copy(update={"ask_again": False}))
    task = StageTask(stage, blank, list(taught.values()))
    with quiet(task.failure), dspy.context(lm=answering.lm, adapter=dspy.JSONAdapter(), disable_history=True):
        search = _mipro if options.optimizer == "mipro" else _gepa
        made = search(options, task, train, val, answering, teacher, base.settings)
    predict = made.module.predict
    found = [make_demo(stage, _source(d, taught), "bootstrapped", dict(d)) for d in predict.demos]
    return StagePrompt(fitting(found, options.demos, options.token_budget), predict.signature.instructions)


def _example(stage: StageName, case: Case) -> dspy.Example:
    """The proposers read an example's fields; the stage itself is asked by case id."""
    return dspy.Example(case_id=case.id, **gold_demo(stage, case)).with_inputs("case_id")


def _source(demo: Mapping[str, Any], cases: Mapping[str, Case]) -> str:
    return next(i for i, case in cases.items() if made_from(demo, case))


def _mipro(
    options: Options,
    task: StageTask,
    train: list[dspy.Example],
    val: list[dspy.Example],
    answering: Answering,
    teacher: Answering,
    settings: PipelineSettings,
) -> StageTask:
    try:
        import optuna
    except ImportError:
        raise DataError("--optimizer mipro needs optuna: pip install '.[mipro]' in the clone") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def metric(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float | bool:
        reached = _score(task, example, prediction, settings)
        # With a trace the question is whether to keep a demo, and every float above 0 would be a yes.
        return reached if trace is None else accept(reached, THRESHOLD[task.stage]) and not prediction.notices

    optimiser = dspy.MIPROv2(
        metric=metric,
        prompt_model=teacher.lm,
        task_model=answering.lm,
        teacher_settings={"lm": teacher.lm},
        max_bootstrapped_demos=options.demos,
        max_labeled_demos=0,
        auto=None,
        num_candidates=options.candidates,
        num_threads=answering.workers,
        max_errors=1,
        seed=options.seed,
    )
    return optimiser.compile(
        task, trainset=train, valset=val, num_trials=options.candidates, minibatch=False, seed=options.seed
    )


def _gepa(
    options: Options,
    task: StageTask,
    train: list[dspy.Example],
    val: list[dspy.Example],
    answering: Answering,
    teacher: Answering,
    settings: PipelineSettings,
) -> StageTask:
    def metric(
        gold: dspy.Example, pred: dspy.Prediction, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> dspy.Prediction:
        reached = _score(task, gold, pred, settings)
        return dspy.Prediction(score=reached, feedback=_feedback(task, gold, pred, reached, settings))

    optimiser = dspy.GEPA(
        metric=metric,
        max_metric_calls=options.candidates * (len(train) + len(val)),
        reflection_lm=teacher.lm,
        use_merge=False,  # merging joins the lineages of several predictors; here is one
        num_threads=answering.workers,
        seed=options.seed,
    )
    return optimiser.compile(task, trainset=train, valset=val)


def _score(task: StageTask, example: dspy.Example, prediction: dspy.Prediction, settings: PipelineSettings) -> float:
    """The stage's metric; an answer that the LM did not give is worth nothing."""
    if any(n.kind == "lm_failed" for n in prediction.notices):
        return 0.0
    return stage_score(task.stage, task.cases[example.case_id], prediction, settings)


def _feedback(
    task: StageTask, example: dspy.Example, prediction: dspy.Prediction, reached: float, settings: PipelineSettings
) -> str:
    case = task.cases[example.case_id]
    repairs = "; ".join(f"{n.kind}: {n.detail}" for n in prediction.notices)
    faults = f" The reply had faults ({repairs})." if repairs else ""
    if task.stage == "reformulate":
        return f"It scored {reached:.2f} of 1; the clinician asked: {case.clinician_question}{faults}"
    assert case.gold is not None
    if task.stage == "score":
        return evidence_feedback(select_evidence(prediction.scores, settings)[0], case.gold) + faults
    if task.stage == "align":
        return alignment_feedback(link_pairs(prediction.links), case.gold) + faults
    return f"It scored {reached:.2f} of 1; the clinician answered: {case.gold.answer}{faults}"
