"""An LM that knows the gold answers of some cases and gives them, as well or badly as a test asks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dspy
from dspy import lm15

from archehr.data.case import Case
from archehr.program.lm.backend import prompt_parts
from archehr.program.stages.registry import PROMPTED
from archehr.program.stages.render import render
from archehr.program.types import StageName
from tests.fake_lm import fake_lm

PROPOSAL = "Work carefully, step by step."
# The output fields of DSPy's instruction proposers; a reply may hold more fields than were asked for.
PROPOSED = dict.fromkeys(
    (
        "title",
        "observations",
        "summary",
        "program_description",
        "module_description",
        "proposed_instruction",
        "new_instruction",
    ),
    PROPOSAL,
)

Change = Callable[[StageName, Case, dict[str, Any]], dict[str, Any]]


def gold_lm(cases: Sequence[Case], change: Change = lambda stage, case, reply: reply, **settings: Any) -> dspy.LM:
    """A fake LM that answers every stage of `cases` as the key does, after `change(stage, case, reply)`; any other
    prompt is taken for an optimiser's and gets PROPOSED."""

    def reply(request: lm15.Request) -> str:
        stage = stage_of(request)
        if stage is None or PROMPTED[stage].labels is None:
            return json.dumps(PROPOSED)
        case = asked_case(request, cases)
        answer = {name: PROMPTED[stage].taught().demo(case)[name] for name in PROMPTED[stage].signature.output_fields}
        return json.dumps(change(stage, case, answer))

    return fake_lm(reply, **settings)


def stage_of(request: lm15.Request) -> StageName | None:
    """The stage whose output fields the request asks for, or None."""
    system = prompt_parts(request)[0][1]
    for stage, signature in ((s.name, s.signature) for s in PROMPTED.values()):
        (output,) = signature.output_fields
        if f'{{\n  "{output}"' in system and all(f"[[ ## {name} ## ]]" in system for name in signature.input_fields):
            return stage
    return None


def asked_case(request: lm15.Request, cases: Sequence[Case]) -> Case:
    """The case that the last message is about."""
    last = prompt_parts(request)[-1][1]
    return next(c for c in cases if c.narrative in last or render(c.sentences) in last)


def demo_cases(request: lm15.Request, cases: Sequence[Case]) -> Iterator[Case]:
    """The cases that the request's demos show."""
    shown = "\n".join(text for _, text in prompt_parts(request)[1:-1])
    yield from (c for c in cases if c.narrative in shown or render(c.sentences) in shown)
