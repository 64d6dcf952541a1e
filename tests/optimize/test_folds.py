"""Folds, and that no case is ever shown its own demo."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archehr.data.case import Case, DataError
from archehr.data.dataset import read_cases
from archehr.optimize.demos import labelled_demos
from archehr.optimize.folds import Answering, StagePrompt, assemble, split_folds
from archehr.program.lm.backend import prompt_text
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program
from archehr.program.settings import PRESETS
from archehr.program.stages.registry import STAGES
from tests.fake_lm import fake_lm
from tests.scripted_stages import asked_case, demo_cases, gold_lm, stage_of

FEW = read_cases("sample/dev")[:5]


@given(st.integers(2, 30), st.integers(2, 30))
def test_every_case_is_left_out_once(count: int, folds: int) -> None:
    cases = [Case(str(i)) for i in range(count)]
    if folds > count:
        with pytest.raises(DataError, match="--folds"):
            split_folds(cases, str(folds))
        return
    made = split_folds(cases, str(folds))
    assert len(made) == folds
    assert Counter(c.id for fold in made for c in fold) == Counter(c.id for c in cases)
    assert max(map(len, made)) - min(map(len, made)) <= 1


def test_leave_one_out() -> None:
    assert [len(fold) for fold in split_folds(FEW, "loo")] == [1] * 5


@pytest.mark.parametrize("folds", ["1", "0", "-2", "x", "", "1.5", "6"])
def test_folds_that_are_none(folds: str) -> None:
    with pytest.raises(DataError, match="--folds"):
        split_folds(FEW, folds)


@pytest.mark.parametrize(("count", "there"), [(1, "there is 1"), (0, "there is none")])
def test_one_case_cannot_be_left_out(count: int, there: str) -> None:
    with pytest.raises(DataError, match=f"at least 2 labelled cases, and {there}"):
        split_folds(FEW[:count], "loo")


def test_a_case_is_answered_without_its_own_demos_and_with_all_others() -> None:
    prompts = {s: StagePrompt(list(labelled_demos(s, FEW[:3]).values())) for s in STAGES}
    program = assemble(GroundedQA(), prompts, PRESETS["default"])
    lm = gold_lm(FEW)
    Answering(lm, workers=2).held_out(program, FEW, STAGES)
    assert {stage_of(r) for r in lm.requests} == set(STAGES)
    for request in lm.requests:
        asked, shown = asked_case(request, FEW).id, {c.id for c in demo_cases(request, FEW)}
        assert shown == {"1", "2", "3"} - {asked}


def test_the_hand_written_program_does_not_see_its_own_cases_either() -> None:
    lm = gold_lm(FEW)
    Answering(lm, workers=1).held_out(load_program("handwritten"), FEW, {"reformulate"})
    by_case = {asked_case(r, FEW).id: {c.id for c in demo_cases(r, FEW)} for r in lm.requests}
    assert by_case["1"] == {"2", "5"}
    assert by_case["2"] == {"5"}
    assert by_case["5"] == {"2"}


def test_assembling_keeps_what_was_not_optimised() -> None:
    base = load_program("handwritten")
    made = assemble(base, {"align": StagePrompt((), "Link with care.")}, PRESETS["seed"])
    assert made.reformulate.predict.demos == base.reformulate.predict.demos
    assert made.align.predict.signature.instructions == "Link with care."
    assert base.align.predict.signature.instructions != "Link with care."
    assert made.score.settings == PRESETS["seed"]


def test_given_answers_are_aligned_once_and_own_ones_not() -> None:
    lm = gold_lm(FEW)
    (record,) = Answering(lm).held_out(GroundedQA(), FEW[:1], STAGES)
    assert Counter(stage_of(r) for r in lm.requests)["align"] == 1
    assert record.given_links is not None
    assert record.links is None
    assert record.answer
    assert record.scores


def test_where_nothing_reaches_the_cut_the_extractive_choice_is_not_measured() -> None:
    def all_low(stage: str, case: Case, reply: dict) -> dict:
        return {"scores": [{**s, "score": 1} for s in reply["scores"]]} if stage == "score" else reply

    (record,) = Answering(gold_lm(FEW, all_low)).held_out(GroundedQA(), FEW[:1], {"score"})
    assert record.evidence == ["1", "2", "3"]


def test_an_lm_that_never_answers_is_not_measured() -> None:
    with pytest.raises(DataError, match=r"failed in stage reformulate, score on all of 5 cases"):
        Answering(fake_lm(lambda request: "nonsense")).held_out(GroundedQA(), FEW, {"score"})


def test_answers_of_the_fallback_are_counted() -> None:
    lm = fake_lm(lambda r: "nonsense" if FEW[0].narrative in prompt_text(r) else '{"question": "Why is it so?"}')
    answering = Answering(lm)
    answering.held_out(GroundedQA(), FEW, {"reformulate"})
    assert (answering.cases_with_failures, answering.cases_answered) == (1, 5)
