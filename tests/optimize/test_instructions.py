"""MIPROv2 and GEPA run end to end on a scripted LM, and their traps stay shut."""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from archehr.data.case import Case, DataError
from archehr.data.dataset import read_cases
from archehr.optimize.folds import Answering, StagePrompt
from archehr.optimize.optimizers.optimizer import Options, Work
from archehr.optimize.optimizers.registry import optimizer_of
from archehr.program.lm import Budget, BudgetExceeded
from archehr.program.lm.backend import prompt_text
from archehr.program.pipeline import GroundedQA
from archehr.program.stages.registry import STAGES
from archehr.program.types import StageName
from tests.scripted_stages import PROPOSAL, gold_lm, stage_of

FEW = read_cases("sample/dev")[:6]


def written(optimizer: str, stage: StageName, lm: Any, cases: Sequence[Case] = tuple(FEW), **more: Any) -> StagePrompt:
    options = Options(optimizer, **{"candidates": 3, "demos": 2} | more)
    answering = Answering(lm, workers=2)
    work = Work(options, GroundedQA(), cases, answering, answering)
    (prompt,) = optimizer_of(optimizer).compile(stage, cases, work)
    return prompt


@pytest.mark.parametrize("stage", STAGES)
def test_mipro_gives_instructions_and_demos_that_say_whose_they_are(stage: StageName) -> None:
    prompt = written("mipro", stage, gold_lm(FEW))
    known = {c.id: c for c in FEW}
    assert prompt.instructions
    assert len(prompt.demos) <= 2
    for demo in prompt.demos:
        assert demo.kind == "bootstrapped"
        assert demo.fields == STAGES[stage].taught().demo(known[demo.case_id])


def test_gepa_takes_the_instruction_that_works_better_and_tells_the_proposer_why() -> None:
    lm = gold_lm(FEW)
    told_apart = lm.engine.backend.engine
    plain = told_apart._reply

    def reply(request: Any) -> str:
        if stage_of(request) == "align" and PROPOSAL not in prompt_text(request):
            links = [{"answer_id": str(i), "evidence_ids": []} for i in range(1, 7)]
            return f'{{"links": {links}}}'.replace("'", '"')
        return plain(request)

    told_apart._reply = reply
    prompt = written("gepa", "align", lm)
    proposals = [prompt_text(r) for r in lm.requests if stage_of(r) is None]
    assert prompt == StagePrompt([], PROPOSAL)
    assert proposals
    assert re.search(r"Missing links \(answer sentence to note sentence\): 1 to \d", proposals[0])


def test_what_a_reviewer_remarked_reaches_the_proposer_of_gepa() -> None:
    lm = gold_lm(FEW)
    remark = "Never cite the family history for a cause."
    reviewed = [replace(c, gold=replace(c.gold, remark=remark)) for c in FEW if c.gold]
    told_apart = lm.engine.backend.engine
    plain = told_apart._reply
    none = '{"links": [' + ", ".join(f'{{"answer_id": "{i}", "evidence_ids": []}}' for i in range(1, 7)) + "]}"
    told_apart._reply = lambda request: none if stage_of(request) == "align" else plain(request)
    written("gepa", "align", lm, reviewed)
    proposals = [prompt_text(r) for r in lm.requests if stage_of(r) is None]
    assert proposals and f"A reviewer remarked on an earlier answer to this case: {remark}" in proposals[0]


@pytest.mark.parametrize("optimizer", ["mipro", "gepa"])
def test_a_spent_budget_is_told_as_such_not_scored_as_0(
    optimizer: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BudgetExceeded):
        written(optimizer, "score", gold_lm(FEW, budget=Budget(max_calls=4)))
    out, err = capfd.readouterr()
    assert FEW[0].sentences[1].text[:30] not in out + err + caplog.text


def test_an_answer_that_only_the_fallback_gave_is_worth_nothing() -> None:
    import dspy

    from archehr.optimize.optimizers.instructions import _score
    from archehr.optimize.teaching import StageTask
    from archehr.program.settings import PRESETS
    from archehr.program.types import Link, Notice

    task = StageTask("align", GroundedQA().align, FEW)
    right = [Link(**link) for link in STAGES["align"].taught().demo(FEW[0])["links"]]
    example = dspy.Example(case_id="1")
    good = dspy.Prediction(links=right, notices=[])
    fallen = dspy.Prediction(links=right, notices=[Notice("align", "lm_failed")])
    assert _score(task, example, good, PRESETS["default"]) == 1
    assert _score(task, example, fallen, PRESETS["default"]) == 0


def test_mipro_without_optuna_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_optuna(name: str, *args: Any, **more: Any) -> Any:
        if name == "optuna":
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without_optuna)
    with pytest.raises(DataError, match=r"pip install '\.\[mipro\]'"):
        written("mipro", "align", gold_lm(FEW))


def test_too_few_cases() -> None:
    lm = Answering(gold_lm(FEW))
    with pytest.raises(DataError, match="1 labelled cases"):
        optimizer_of("gepa").compile("align", FEW[:1], Work(Options("gepa"), GroundedQA(), FEW[:1], lm, lm))
