"""archehr.metric as a user of DSPy takes it: in dspy.Evaluate, for demos, in GEPA; equal to what archehr score says."""

import inspect
import logging
from dataclasses import replace

import dspy
import pytest

import archehr
from archehr.data.case import Case, DataError
from archehr.metrics.score import score_submission
from archehr.program.extractive_program import extractive_program
from archehr.program.run.records import CaseRecord, submissions
from archehr.program.types import Notice

TEST = archehr.read_cases("sample/test")
DEVSET = [dspy.Example(case=case).with_inputs("case") for case in TEST]


@pytest.fixture(scope="module")
def predictions():
    program = extractive_program()
    return {case.id: program(case=case) for case in TEST}


@pytest.fixture
def replayed(predictions):
    """The extractive program's answers, as a program."""

    class Replayed(dspy.Module):
        def forward(self, case):
            return predictions[case.id]

    return Replayed()


def test_evaluate_of_the_program_itself():
    evaluate = dspy.Evaluate(devset=DEVSET[:3], metric=archehr.metric(2), num_threads=2, max_errors=1)
    result = evaluate(extractive_program())
    assert 0 < result.score < 100 and len(result.results) == 3


@pytest.mark.parametrize("subtask", [1, 2, 3, 4])
def test_evaluate_says_what_the_official_scores_say(subtask, predictions, replayed):
    made = submissions([CaseRecord.of(case, predictions[case.id], {}, 0) for case in TEST])[subtask]
    entries = [
        {"case_id": i, "prediction": [{"answer_id": a, "evidence_id": e} for a, e in p] if subtask == 4 else p}
        for i, p in made.items()
    ]
    official = score_submission(entries, TEST, subtask)
    board = official.table.leaderboard()
    expected = board[{1: "mean", 2: "strict_macro_f1", 3: "mean", 4: "macro_f1"}[subtask]]
    result = dspy.Evaluate(devset=DEVSET, metric=archehr.metric(subtask), max_errors=1)(replayed)
    assert result.score == pytest.approx(expected, abs=0.006)  # dspy rounds to two digits
    alone = official.case_scores()
    for example, _, score in result.results:
        assert 0 <= score <= 1
        assert 100 * score == pytest.approx(alone[example.case.id][official.headline], abs=1e-9)


def test_with_a_trace_it_says_yes_or_no(predictions):
    case, prediction = TEST[0], predictions[TEST[0].id]
    score = archehr.metric(2)(DEVSET[0], prediction)
    assert isinstance(score, float) and 0 < score < 1
    assert archehr.metric(2, threshold=score)(DEVSET[0], prediction, trace=[]) is True
    assert archehr.metric(2, threshold=score + 0.01)(DEVSET[0], prediction, trace=[]) is False
    fell_back = dspy.Prediction(evidence=sorted(case.gold.essential), notices=[Notice("score", "lm_failed")])
    assert archehr.metric(2)(DEVSET[0], fell_back) == 1.0
    assert archehr.metric(2)(DEVSET[0], fell_back, trace=[]) is False


def test_bootstrapping_takes_the_demos_that_reach_the_threshold(replayed):
    metric = archehr.metric(2, threshold=0.7)
    scores = {e.case.id: archehr.metric(2)(e, replayed(case=e.case)) for e in DEVSET}
    good = [i for i, score in scores.items() if score >= 0.7]
    assert 0 < len(good) < len(DEVSET)

    class Asking(dspy.Module):
        def __init__(self):
            super().__init__()
            self.predict = dspy.Predict("case_id -> evidence: list[str]")

        def forward(self, case):
            self.predict(case_id=case.id)
            return replayed(case=case)

    lm = dspy.utils.DummyLM([{"evidence": "[]"}] * len(DEVSET))
    with dspy.context(lm=lm):
        optimiser = dspy.BootstrapFewShot(metric=metric, max_bootstrapped_demos=len(DEVSET), max_labeled_demos=0)
        compiled = optimiser.compile(Asking(), trainset=DEVSET)
    assert sorted(demo.case_id for demo in compiled.predict.demos) == sorted(good)


def test_gepa_takes_it_and_gets_numbers(predictions):
    metric = archehr.metric(4)
    inspect.signature(metric).bind(None, None, None, None, None)
    score = metric(DEVSET[0], predictions[TEST[0].id], trace=[], pred_name="align", pred_trace=[])
    assert isinstance(score, float) and not isinstance(score, bool)


@pytest.mark.parametrize("subtask", [1, 2, 3, 4])
def test_what_cannot_be_scored_is_named_and_never_0(subtask):
    bare = dspy.Example(case=Case("9", narrative="n"))
    anything = dspy.Prediction(question="q", evidence=[], answer="a", links=[], given_links=None)
    with pytest.raises(DataError, match="case 9: no reference"):
        archehr.metric(subtask)(bare, anything)
    with pytest.raises(DataError, match=f"case {TEST[0].id}: the program gave no"):
        archehr.metric(subtask)(DEVSET[0], dspy.Prediction(question=None))


def test_evaluate_stops_at_a_case_without_gold_and_logs_no_text_of_it(replayed, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("dspy"), "propagate", True)
    bare = [dspy.Example(case=replace(TEST[0], gold=None)).with_inputs("case")]
    with pytest.raises(Exception, match="cancelled due to errors"):
        dspy.Evaluate(devset=bare, metric=archehr.metric(2), max_errors=1)(replayed)
    assert "case 101: no reference for subtask 2" in caplog.text
    assert not any(s.text in caplog.text for s in TEST[0].sentences) and TEST[0].narrative[:30] not in caplog.text


@pytest.mark.parametrize("arguments", [(5,), ("2",), (2, 0), (2, -1.0)])
def test_another_subtask_or_threshold_is_refused_at_once(arguments):
    with pytest.raises(DataError):
        archehr.metric(*arguments)
