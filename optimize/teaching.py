"""One stage alone on gold inputs, as DSPy's optimisers compile it, and how an answer of it is judged."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import dspy

from archehr.data.case import Case
from archehr.metrics.feedback import accept
from archehr.program.lm.ledger import budget_error
from archehr.program.settings import PipelineSettings
from archehr.program.stages.registry import PROMPTED
from archehr.program.types import StageName


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
        self.labels = PROMPTED[stage].taught()
        self.cases = {c.id: c for c in cases}
        self.failure = Failure()

    def forward(self, case_id: str) -> dspy.Prediction:
        try:
            return self.module(**self.labels.arguments(self.cases[case_id]))
        except Exception as error:
            self.failure.error = self.failure.error or error
            raise


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
        case, labels = self.cases[example.case_id], PROMPTED[self.stage].taught()
        self.scores[case.id] = labels.score(prediction, case, self.settings)
        good = accept(self.scores[case.id], labels.threshold) and not prediction.notices and bool(trace)
        if good:
            self.accepted.append(case.id)
        return good


def without_asking_again(module: dspy.Module) -> dspy.Module:
    """A blank copy of a stage's module whose reply depends on its case alone and counts as it comes."""
    return type(module)(module.settings.model_copy(update={"ask_again": False}))


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
