"""Demos: the gold ones are whole and cover what they should, the bootstrapped ones are earned."""

from __future__ import annotations

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.case import Case, DataError
from archehr.data.dataset import read_cases
from archehr.optimize.demos import Demo, covering, fitting, labelled_demos, make_demo, shuffled
from archehr.optimize.optimizers.bootstrap import bootstrap
from archehr.optimize.teaching import Acceptance
from archehr.program.lm import Budget, BudgetExceeded
from archehr.program.pipeline import GroundedQA
from archehr.program.settings import PRESETS
from archehr.program.stages.adapter import TellingJSONAdapter
from archehr.program.stages.demos import made_from
from archehr.program.stages.registry import STAGES, has_gold
from archehr.program.types import StageName
from tests.fake_lm import fake_lm
from tests.scripted_stages import gold_lm

DEV = read_cases("sample/dev")
FEW = DEV[:6]


@pytest.mark.parametrize("stage", STAGES)
def test_a_gold_demo_is_shown_whole(stage: StageName) -> None:
    demo = labelled_demos(stage, FEW)["3"]
    inputs = dict.fromkeys(STAGES[stage].signature.input_fields, "")
    messages = TellingJSONAdapter().format(STAGES[stage].signature, [dict(demo.fields)], inputs)
    shown = "\n".join(m["content"] for m in messages)
    assert set(demo.fields) == set(STAGES[stage].signature.fields)
    assert len(messages) == 4  # system, demo, its answer, the question
    assert "not supplied" not in shown.lower()
    assert FEW[2].clinician_question in shown


def test_relevance_becomes_5_3_1() -> None:
    case = DEV[0]
    scores = {s["id"]: s["score"] for s in STAGES["score"].taught().demo(case)["scores"]}
    assert list(scores) == [s.id for s in case.sentences]
    assert {i for i, s in scores.items() if s == 5} == case.gold.essential
    assert {i for i, s in scores.items() if s == 3} == case.gold.supplementary
    assert set(scores.values()) == {5, 3, 1}


def test_a_case_labelled_in_part_is_no_example() -> None:
    bare = Case("x", "message", clinician_question=None, sentences=DEV[0].sentences)
    assert [has_gold(s, bare) for s in STAGES] == [False] * 4
    assert all(has_gold(s, DEV[0]) for s in STAGES)


@pytest.mark.parametrize("stage", STAGES)
def test_a_demo_that_would_be_dropped_is_an_error(stage: StageName) -> None:
    for field in STAGES[stage].signature.fields:
        values = STAGES[stage].taught().demo(DEV[0]) | {field: None}
        with pytest.raises(DataError, match=f"case 1: its {stage} demo lacks {field}"):
            make_demo(stage, DEV[0], "labelled", values)


@pytest.mark.parametrize("stage", STAGES)
def test_a_demo_is_known_by_its_text(stage: StageName) -> None:
    demo = STAGES[stage].taught().demo(DEV[4])
    assert [c.id for c in DEV if made_from(demo, c)] == ["5"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_good_teacher_gives_a_demo_of_every_case(stage: StageName) -> None:
    made = bootstrap(stage, getattr(GroundedQA(), stage), FEW, gold_lm(FEW))
    assert list(made) == [c.id for c in FEW]
    for case in FEW:
        assert made[case.id].kind == "bootstrapped"
        assert made[case.id].fields == STAGES[stage].taught().demo(case)


def test_only_cases_answered_well_enough_become_demos() -> None:
    def half_right(stage: str, case: Case, reply: dict) -> dict:
        if case.id in ("1", "2"):
            return {"scores": [{"id": s["id"], "score": 5} for s in reply["scores"]]}
        return reply

    made = bootstrap("score", GroundedQA().score, FEW, gold_lm(FEW, half_right))
    assert list(made) == ["3", "4", "5", "6"]


def test_a_reply_that_needed_repair_is_no_demo_however_well_it_scores() -> None:
    def forgets_an_irrelevant_one(stage: str, case: Case, reply: dict) -> dict:
        kept = [s for s in reply["scores"] if s["score"] > 1]
        return {"scores": kept} if case.id == "1" else reply

    made = bootstrap("score", GroundedQA().score, FEW, gold_lm(FEW, forgets_an_irrelevant_one))
    assert list(made) == ["2", "3", "4", "5", "6"]


def test_acceptance_is_true_or_false_and_low_scores_do_not_pass() -> None:
    metric = Acceptance("align", {c.id: c for c in FEW}, PRESETS["default"])
    gold = STAGES["align"].taught().demo(FEW[0])["links"]
    one_link = [dspy.Example(answer_id=gold[0]["answer_id"], evidence_ids=gold[0]["evidence_ids"][:1])]
    verdict = metric(dspy.Example(case_id="1"), dspy.Prediction(links=one_link, notices=[]), trace=["something"])
    assert verdict is False
    assert 0 < metric.scores["1"] < 0.7  # a float metric would have accepted it


def test_no_accepted_trace_is_an_error_that_says_why() -> None:
    def nothing(stage: str, case: Case, reply: dict) -> dict:
        return {"links": [{**link, "evidence_ids": []} for link in reply["links"]]}

    with pytest.raises(DataError, match=r"align: .*0 of 6 cases \(F1 of the links of at least 0.70.*best 0.00"):
        bootstrap("align", GroundedQA().align, FEW, gold_lm(FEW, nothing))


def test_a_spent_budget_stops_the_compilation_and_no_example_is_shown(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    lm = gold_lm(FEW, budget=Budget(max_calls=2))
    with pytest.raises(BudgetExceeded):
        bootstrap("score", GroundedQA().score, FEW, lm)
    out, err = capfd.readouterr()
    assert len(lm.requests) == 2
    assert not out + err + caplog.text


def test_a_teacher_that_fails_leaves_no_text_behind(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(DataError, match="0 of 6 cases"):
        bootstrap("generate", GroundedQA().generate, FEW, fake_lm(lambda request: "no JSON at all"))
    out, err = capfd.readouterr()
    assert not out + err + caplog.text


@given(st.sets(st.text(min_size=1, max_size=4), min_size=1, max_size=12), st.integers(0, 9), st.data())
def test_taking_a_case_out_moves_no_other(ids: set[str], seed: int, data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(ids)))
    order = shuffled(sorted(ids), seed, 0)
    assert sorted(order) == sorted(ids)
    assert shuffled(sorted(ids - {gone}), seed, 0) == [i for i in order if i != gone]


def test_seeds_and_candidates_draw_differently() -> None:
    ids = [c.id for c in DEV]
    assert len({tuple(shuffled(ids, seed, k)) for seed in range(3) for k in range(3)}) == 9


@settings(max_examples=50)
@given(st.lists(st.integers(0, 400), max_size=10), st.integers(0, 6), st.integers(0, 300))
def test_demos_keep_to_their_number_and_budget(sizes: list[int], most: int, budget: int) -> None:
    demos = [Demo(str(i), "labelled", {"x": "y" * size}, "") for i, size in enumerate(sizes)]
    chosen = fitting(demos, most, budget)
    assert len(chosen) <= most
    assert sum(d.tokens for d in chosen) <= budget
    if len(chosen) < most:  # then none of the others would fit
        left = budget - sum(d.tokens for d in chosen)
        assert all(d in chosen or d.tokens > left for d in demos)


@pytest.mark.parametrize("seed", range(4))
def test_align_demos_show_an_empty_and_a_rich_citation_list(seed: int) -> None:
    chosen = covering("align", labelled_demos("align", DEV), 3, 10_000, seed)
    counts = [[len(link["evidence_ids"]) for link in d.fields["links"]] for d in chosen]
    assert len(chosen) == 3
    assert any(0 in c for c in counts)
    assert any(max(c) >= 5 for c in counts)


def test_score_demos_show_short_and_long_notes() -> None:
    demos = labelled_demos("score", DEV)
    chosen = [d.tokens for d in covering("score", demos, 4, 100_000, 0)]
    sizes = sorted(d.tokens for d in demos.values())
    assert chosen == sorted(chosen)
    assert min(chosen) <= sizes[4]
    assert max(chosen) >= sizes[-5]


def test_a_demo_of_an_optimisation_is_known_by_its_case_whatever_its_text_became() -> None:
    shown = labelled_demos("reformulate", FEW)["3"].shown() | {"narrative": FEW[0].narrative}
    assert [c.id for c in FEW if made_from(shown, c)] == ["3"]
