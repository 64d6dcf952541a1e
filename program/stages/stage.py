"""Stage: all that the house knows of one stage, in one record that everything else reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import dspy

from archehr.data.case import Case, DataError
from archehr.program.settings import PipelineSettings
from archehr.program.stages.ask import Checked, ask
from archehr.program.stages.render import windows
from archehr.program.types import Notice

Fields = Mapping[str, Any]  # a demo: the fields of a signature by name, inputs as they are sent, outputs as JSON


@dataclass(frozen=True)
class Labels:
    """What makes a stage teachable and measurable alone, every input taken from the gold of the stages before it.

    `present` says whether a case holds its inputs and outputs in full (labelled in part is not labelled), and `field`
    names what is missing where not. `measured` and `measured_field` say the same of a case that can only be measured,
    on what the program's own stages before it gave (None: as `present`). `arguments` is what the module is called
    with, `demo` the case as a demo. `score` (0-1) is described by `metric`; a teacher's answer of at least `threshold`
    becomes a demo. `feedback` says in words what an answer did wrong. `arrange` puts demos in the order in which they
    are worth showing, given how many will be.
    """

    present: Callable[[Case], bool]
    field: str
    arguments: Callable[[Case], dict[str, Any]]
    demo: Callable[[Case], dict[str, Any]]
    score: Callable[[dspy.Prediction, Case, PipelineSettings], float]
    metric: str
    threshold: float
    feedback: Callable[[dspy.Prediction, Case, PipelineSettings], str]
    arrange: Callable[[Sequence[Fields], int], Sequence[Fields]] = lambda demos, most: demos
    measured: Callable[[Case], bool] | None = None
    measured_field: str = ""


@dataclass(frozen=True)
class Stage:
    """One stage. `module` asks an LM, `twin` answers without one (None: the stage is left out there); both are called
    with keywords and return a Prediction with `notices`.

    `subtask` is the official one that the stage answers; `asks_lm` is False where even `module` asks none.
    `in_windows` says that a long note is read in parts, a prompt each. The four of the pipeline are called by it; a
    stage added to them has `inputs`, which makes its arguments from the case and the prediction so far (None: nothing
    to do), and its outputs are kept under its name.
    """

    name: str
    signature: type[dspy.Signature]
    module: Callable[[PipelineSettings], dspy.Module]
    twin: Callable[[PipelineSettings], dspy.Module] | None = None
    subtask: int | None = None
    labels: Labels | None = None
    needs_sentences: bool = True
    in_windows: bool = False
    asks_lm: bool = True
    inputs: Callable[[Case, dspy.Prediction], dict[str, Any] | None] | None = None

    def has_gold(self, case: Case) -> bool:
        """Whether the case can teach and measure this stage."""
        return self.labels is not None and self.labels.present(case)

    def measures(self, case: Case) -> bool:
        """Whether an answer of the whole chain to the case can be scored for this stage."""
        return self.labels is not None and (self.labels.measured or self.labels.present)(case)

    def taught(self) -> Labels:
        """The stage's labels. Raises DataError for a stage that has none."""
        if self.labels is None:
            raise DataError(f"stage {self.name} has no labels to learn from; leave it out of --stage")
        return self.labels

    def prompts(self, case: Case, settings: PipelineSettings) -> int:
        """How many prompts the case takes, faulty replies not counted."""
        parts = windows(case.sentences, settings.window_chars, settings.window_overlap)
        return sum(1 for _ in parts) if self.in_windows else 1


class PlainStage(dspy.Module):
    """The module of an added stage without a rule of its own: signature in, its outputs and `notices` out.

    An output is None where the LM failed; there is no fallback.
    """

    def __init__(self, name: str, signature: type[dspy.Signature], settings: PipelineSettings) -> None:
        super().__init__()
        self.stage, self.settings = name, settings
        self.predict = dspy.Predict(signature)

    def forward(self, **inputs: str) -> dspy.Prediction:
        outputs = list(self.predict.signature.output_fields)
        reply = ask(self.predict, self._check, self.stage, self.settings, **inputs)
        return dspy.Prediction(**(reply.value or dict.fromkeys(outputs)), notices=reply.notices)

    def _check(self, prediction: dspy.Prediction) -> Checked[dict[str, Any]]:
        found = {name: prediction.get(name) for name in self.predict.signature.output_fields}
        if empty := [name for name, value in found.items() if value in (None, "", [])]:
            return Checked(None, [Notice(self.stage, "empty", ", ".join(empty))], f"{', '.join(empty)} was empty")
        return Checked(found)


def has_prompt(module: dspy.Module | None) -> bool:
    """Whether a stage module asks an LM."""
    return module is not None and bool(module.named_predictors())


def predictor(module: dspy.Module, stage: str = "") -> dspy.Predict:
    """A stage module's one dspy.Predict. Raises DataError for a stage without an LM."""
    if not has_prompt(module):
        raise DataError(f"the program's {stage} stage has no prompt: it runs without an LM")
    return cast(dspy.Predict, module.predictors()[0])
