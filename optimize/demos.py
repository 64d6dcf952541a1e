"""Demos of one stage: gold ones from the labels, bootstrapped ones from a teacher that answers well enough."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any, Literal

import dspy

from archehr.data.case import Case, DataError
from archehr.metrics.alignment import alignment_f1
from archehr.metrics.evidence import strict_f1
from archehr.metrics.feedback import accept, answer_score, question_score
from archehr.program.lm.ledger import budget_error
from archehr.program.prompts.gold import gold_arguments, gold_demo, has_gold
from archehr.program.settings import PipelineSettings
from archehr.program.stages.score_sentences import select_evidence
from archehr.program.stages.signatures import SIGNATURES
from archehr.program.types import StageName

Kind = Literal["labelled", "bootstrapped"]

CHARS_PER_TOKEN = 4  # an estimate for English text; no tokenizer is asked
# Least score (0-1) of a teacher's answer that becomes a demo, and the metric it is measured by.
THRESHOLD: dict[StageName, float] = {"reformulate": 0.3, "score": 0.6, "generate": 0.3, "align": 0.7}
METRIC: dict[StageName, str] = {
    "reformulate": "ROUGE-Lsum with the clinician's question",
    "score": "strict F1 of the evidence",
    "generate": "mean of BLEU, ROUGE-Lsum and SARI with the clinician's answer",
    "align": "F1 of the links",
}


@dataclass(frozen=True, eq=False)
class Demo:
    """One demo: the case it shows, whether a person or an LM answered it, and the signature's fields."""

    case_id: str
    kind: Kind
    fields: Mapping[str, Any]

    @property
    def tokens(self) -> int:
        """Its size in estimated tokens."""
        return estimate_tokens(json.dumps(self.fields, ensure_ascii=False))


def estimate_tokens(text: str) -> int:
    """Characters / CHARS_PER_TOKEN, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def labelled_demos(stage: StageName, cases: Sequence[Case]) -> dict[str, Demo]:
    """case id -> gold demo, for the cases that have the stage's gold."""
    return {c.id: make_demo(stage, c.id, "labelled", gold_demo(stage, c)) for c in cases if has_gold(stage, c)}


def make_demo(stage: StageName, case_id: str, kind: Kind, values: Mapping[str, Any]) -> Demo:
    """A demo that will be shown whole. Raises DataError where a field is missing: DSPy would drop such a demo, or
    show it with "not supplied", without a word."""
    wanted = list(SIGNATURES[stage].fields)
    if missing := [name for name in wanted if values.get(name) is None]:
        raise DataError(f"case {case_id}: its {stage} demo lacks {', '.join(missing)}; leave the case out")
    return Demo(case_id, kind, {name: _plain(values[name]) for name in wanted})


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value.model_dump() if hasattr(value, "model_dump") else value


class Failure:
    """The first error inside a DSPy optimiser, which would log it with the example's text and score it 0."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Failure:
        return self  # one for all copies that an optimiser makes of its student


class StageTask(dspy.Module):
    """One stage on gold inputs, by case id: what a stage is compiled as. Holds exactly one predictor."""

    def __init__(self, stage: StageName, module: dspy.Module, cases: Sequence[Case]) -> None:
        super().__init__()
        self.stage, self.module = stage, module
        self.cases = {c.id: c for c in cases}
        self.failure = Failure()

    def forward(self, case_id: str) -> dspy.Prediction:
        try:
            return self.module(**gold_arguments(self.stage, self.cases[case_id]))
        except Exception as error:
            self.failure.error = self.failure.error or error
            raise


def stage_score(stage: StageName, case: Case, prediction: dspy.Prediction, settings: PipelineSettings) -> float:
    """The stage's own metric (0-1) of one case, see METRIC."""
    if stage == "reformulate":
        return question_score(prediction.question, case)
    if stage == "generate":
        return answer_score(" ".join(prediction.answer_sentences), case)
    assert case.gold is not None
    if stage == "score":
        return strict_f1(select_evidence(prediction.scores, settings)[0], case.gold)
    return alignment_f1(link_pairs(prediction.links), case.gold)


def link_pairs(links: Any) -> list[tuple[str, str]]:
    """Links as (answer id, note id) pairs."""
    return [(link.answer_id, i) for link in links for i in link.evidence_ids]


@dataclass
class Acceptance:
    """The metric of BootstrapFewShot: True or False, never a float, of which every one above 0 would be accepted.

    A reply that had to be repaired or replaced is refused whatever it scores: its demo would show the raw reply.
    """

    stage: StageName
    cases: Mapping[str, Case]
    settings: PipelineSettings
    accepted: list[str] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)

    def __call__(self, example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> bool:
        case = self.cases[example.case_id]
        self.scores[case.id] = stage_score(self.stage, case, prediction, self.settings)
        good = accept(self.scores[case.id], THRESHOLD[self.stage]) and not prediction.notices and bool(trace)
        if good:
            self.accepted.append(case.id)
        return good


def bootstrap(stage: StageName, module: dspy.Module, cases: Sequence[Case], teacher_lm: dspy.LM) -> dict[str, Demo]:
    """case id -> the teacher's own reply as a demo, for the cases of `cases` on which it is good enough.

    `module` is the stage without demos, so a reply depends on its case alone: no case is its own demo in the teacher,
    and the demos of a subset of cases are those of a compilation on that subset. Raises DataError where no case
    passes, and what an LM call may raise.
    """
    teacher_module = type(module)(module.settings.model_copy(update={"ask_again": False}))
    taught = [c for c in cases if has_gold(stage, c)]
    task = StageTask(stage, teacher_module, taught)
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
    made = compiled.module.predict.demos
    if not made:
        best = max(metric.scores.values(), default=0.0)
        raise DataError(
            f"--stage {stage}: the teacher's reply was accepted on 0 of {len(taught)} cases ({METRIC[stage]} of at "
            f"least {THRESHOLD[stage]:.2f} without a repair; best {best:.2f}); name a stronger --teacher-lm, or take "
            "--optimizer labeled"
        )
    return {i: make_demo(stage, i, "bootstrapped", d.toDict()) for i, d in zip(metric.accepted, made, strict=True)}


@contextmanager
def quiet(failure: Failure) -> Any:
    """Keep what DSPy's optimisers print and log off the terminal (it quotes examples), and raise the error that
    stopped one instead of their own."""
    import logging

    logger = logging.getLogger("dspy")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    except Exception as error:
        failure.error = failure.error or budget_error(error)
        if failure.error is None:
            raise
    finally:
        logger.setLevel(level)
    if failure.error is not None:  # Evaluate counts an error as a score of 0 and goes on
        raise failure.error from None


def shuffled(ids: Sequence[str], seed: int, candidate: int) -> list[str]:
    """An order of case ids drawn by seed, in which taking a case out moves no other: the candidates of two folds
    differ only in demos that one of them may not use, and share all other replies in the cache."""
    return sorted(ids, key=lambda i: hashlib.sha256(f"{seed}/{candidate}/{i}".encode()).digest())


def fitting(order: Sequence[Demo], most: int, token_budget: int) -> list[Demo]:
    """The first demos of `order` that fit: at most `most`, together at most `token_budget` estimated tokens."""
    chosen: list[Demo] = []
    used = 0
    for demo in order:
        if len(chosen) < most and used + demo.tokens <= token_budget:
            chosen.append(demo)
            used += demo.tokens
    return chosen


def covering(stage: StageName, demos: Mapping[str, Demo], most: int, token_budget: int, seed: int) -> list[Demo]:
    """Gold demos chosen for what they show, without any LM call.

    Align: first one with an answer sentence that nothing supports, and one with five or more citations of one answer
    sentence or, failing that, the most. ScoreSentences: notes from short to long. The others: drawn by seed.
    """
    order = [demos[i] for i in shuffled(list(demos), seed, 0)]
    if stage == "align":
        empty = [d for d in order if any(not link["evidence_ids"] for link in d.fields["links"])]
        rich = sorted(order, key=lambda d: -min(5, max(len(link["evidence_ids"]) for link in d.fields["links"])))
        order = list(dict.fromkeys([*empty[:1], *[d for d in rich if d not in empty[:1]][:1], *order]))
    if stage == "score":
        order = _spread(sorted(order, key=lambda d: d.tokens), most)
    return fitting(order, most, token_budget)


def _spread(by_length: list[Demo], most: int) -> list[Demo]:
    """`most` demos at even steps through the lengths, then the rest from short to long."""
    last = len(by_length) - 1
    steps = [round(last * (2 * k + 1) / (2 * most)) for k in range(most)] if by_length else []
    picked = list(dict.fromkeys(by_length[i] for i in steps))
    return picked + [d for d in by_length if d not in picked]
