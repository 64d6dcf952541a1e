"""An LM whose ways of asking have habits: each view finds some of the essential sentences and takes some others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import dspy
from dspy import lm15

from archehr.data.case import Case
from tests.fake_lm import fake_lm
from tests.scripted_stages import asked_case, gold_lm, stage_of

HABITS = {"score": (0.0, 0.6), "answer_first": (0.4, 1.0)}  # the part of the essential sentences that each finds
INVENTED = 0.05  # of the others each takes so many, different ones


def habitual_lm(cases: Sequence[Case], habits: Mapping[str, tuple[float, float]] = HABITS) -> dspy.LM:
    """Everything as the key has it, but for the evidence: a view finds the essential sentences whose draw lies in its
    range, and takes a few more that are its own mistakes."""
    gold = gold_lm(cases)

    def reply(request: lm15.Request) -> str:
        view = stage_of(request) or ""
        if view not in habits:
            return str(gold.engine.backend.engine.complete(request).message.text)
        case = asked_case(request, cases)
        assert case.gold is not None
        low, high = habits[view]
        essential = case.gold.essential
        right = [i for i in (s.id for s in case.sentences) if i in essential and low <= draw(case.id, i) < high]
        wrong = [s.id for s in case.sentences if s.id not in essential and draw(view, case.id, s.id) < INVENTED]
        found = right + wrong
        if view == "answer_first":
            return json.dumps({"cited_answer": [{"sentence": "It is so.", "evidence_ids": found}]})
        return json.dumps({"scores": [{"id": s.id, "score": 5 if s.id in found else 2} for s in case.sentences]})

    return fake_lm(reply, cache=True)


def draw(*of: str) -> float:
    """A number from 0 to 1 that is always the same."""
    return int(hashlib.sha256("/".join(of).encode()).hexdigest()[:8], 16) / 2**32
