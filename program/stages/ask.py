"""One question to the LM: checked, asked again once with the fault named, and never raising for a bad reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import dspy
from dspy import (
    AdapterParseError,
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
)

from archehr.program.lm import accepts_temperature
from archehr.program.lm.ledger import budget_error
from archehr.program.lm.policy import keys_in_reach
from archehr.program.lm.wire.errors import describe, is_outage, note_outage, note_reply
from archehr.program.settings import PipelineSettings
from archehr.program.stages.adapter import TellingJSONAdapter
from archehr.program.types import Notice, StageName

T = TypeVar("T")

# With these no later call can succeed either: the run must stop and say so, not answer without the LM.
UNUSABLE = (LMAuthError, LMBillingError, LMConfigurationError, LMUnsupportedModelError, LMUnsupportedFeatureError)


@dataclass(slots=True)
class Checked(Generic[T]):
    """A stage's verdict on one reply: the value after its rule, what the rule had to repair, and the fault to name
    to the LM (None where there is none). `value` is None where nothing can be made of the reply; `outage` says why
    where none came."""

    value: T | None
    notices: list[Notice] = field(default_factory=list)
    fault: str | None = None
    outage: str | None = None


def ask(
    predict: dspy.Predict,
    check: Callable[[dspy.Prediction], Checked[T]],
    stage: StageName,
    settings: PipelineSettings,
    sample: int = 0,
    /,
    **inputs: str,
) -> Checked[T]:
    """One LM reply, checked; its value is None where the LM failed and the stage must fall back. Each `sample` of a
    prompt is a reply of its own.

    Transport errors were already retried by DSPy. A faulty reply is asked for again once if `settings.ask_again`.
    Raises the errors in UNUSABLE, BudgetExceeded and LMGone, for the run to stop on.
    """
    first = _attempt(predict, check, stage, settings, sample, inputs)
    if first.outage is not None:
        note_outage(first.outage)
    if first.fault is None or not settings.ask_again:
        return first
    second = _attempt(predict, check, stage, settings, sample, inputs, named_fault=first.fault)
    retried = Notice(stage, "retried", first.fault)
    best = second if second.value is not None else first
    best.notices[:0] = [retried]
    return best


def _attempt(
    predict: dspy.Predict,
    check: Callable[[dspy.Prediction], Checked[T]],
    stage: StageName,
    settings: PipelineSettings,
    sample: int,
    inputs: dict[str, str],
    named_fault: str | None = None,
) -> Checked[T]:
    adapter = TellingJSONAdapter(named_fault)
    try:
        with dspy.context(adapter=adapter):
            prediction = predict(config=_config(predict, stage, settings, sample), **inputs)
        note_reply()
    except UNUSABLE:
        raise
    except AdapterParseError:
        note_reply()
        fault = "it was not the JSON object asked for"
        return Checked(None, [Notice(stage, "lm_failed", "the reply could not be parsed")], fault)
    except LMError as error:
        if (stop := budget_error(error)) is not None:
            raise stop from None
        why = describe(error, _shown_text(predict, inputs), keys_in_reach(None))
        # No reply, so no fault to name.
        return Checked(None, [Notice(stage, "lm_failed", why)], outage=why if is_outage(error) else None)
    checked = check(prediction)
    checked.notices[:0] = [Notice(stage, "repaired", repair) for repair in adapter.repairs]
    return checked


def _shown_text(predict: dspy.Predict, inputs: dict[str, str]) -> str:
    """All text of a call that may not come back in an error: its inputs, the demos' and, where they tell of an answer
    that was refused, its instructions."""
    shown = (str(value) for demo in predict.demos for value in dict(demo).values())
    return "\n".join([predict.signature.instructions, *inputs.values(), *shown])


def _config(predict: dspy.Predict, stage: StageName, settings: PipelineSettings, sample: int) -> dict[str, Any]:
    lm = predict.lm or dspy.settings.lm
    config: dict[str, Any] = {}
    if lm is None or accepts_temperature(lm):
        config["temperature"] = settings.temperature_of(stage, sample)
    if sample:  # the first reply is today's; further ones differ in what the cache and the server go by
        config["rollout_id"] = sample
        if lm is not None and "seed" in lm.supported_params:
            config["seed"] = (lm.kwargs.get("seed") or 0) + sample
    return config
