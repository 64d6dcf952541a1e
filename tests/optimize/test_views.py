"""Choosing views: the mixture that is best on other cases, what each call buys, and no cut that is another's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archehr.data.case import DataError
from archehr.data.dataset import read_cases
from archehr.optimize.calls import affordable, most_calls
from archehr.optimize.optimizers.optimizer import Options
from archehr.optimize.report import report
from archehr.optimize.session import ALL_DEMOS, parse_candidates, parse_demos
from archehr.optimize.views import best_mixtures, best_of, voted_by
from archehr.program.prompts.fitted_cut import cut_of_another
from archehr.program.prompts.program_file import load_program
from archehr.program.run.records import CaseRecord
from archehr.program.settings import PipelineSettings, ViewUse, parse_views
from archehr.program.types import AgreedScore
from tests.benchmarks.views import chosen, out_of_sample
from tests.conftest import Ran
from tests.fake_lm import fake_lm

CASES = read_cases("sample/dev")[:4]
BOTH = parse_views("score,answer_first")


def test_the_chosen_mixture_beats_each_view_alone_out_of_sample() -> None:
    both = chosen(BOTH)
    assert both.fitted.settings.votes == 2 and both.program.answer_first.predict.demos
    for alone in BOTH:
        assert out_of_sample(both) > out_of_sample(chosen((alone,))) + 5
    assert set(both.by_votes) == {1, 2}
    told = report(both)
    assert "calls a case" in told and "2 calls against 1, out of sample: better" in told


def voted(found: dict[str, list[list[str]]], case_number: int = 0) -> CaseRecord:
    """A record in which each sample of a view found these sentences."""
    case = CASES[case_number]
    scores = [
        AgreedScore(
            id=s.id,
            score=1,
            confidence=0,
            votes={view: [5 if s.id in ids else 1 for ids in samples] for view, samples in found.items()},
        )
        for s in case.sentences
    ]
    return CaseRecord(case_id=case.id, scores=scores)


def essential(case_number: int) -> list[str]:
    gold = CASES[case_number].gold
    assert gold is not None
    return [s.id for s in CASES[case_number].sentences if s.id in gold.essential]


def test_a_view_that_adds_nothing_is_not_paid_for() -> None:
    pairs = [(voted({"score": [essential(k)], "answer_first": [essential(k)]}, k), CASES[k]) for k in range(4)]
    mixture = best_of(best_mixtures(pairs, BOTH))
    assert mixture.f1 == 100 and mixture.calls == 1
    assert mixture.settings(PipelineSettings()).cut == 5


def test_weights_follow_the_better_views_where_equal_ones_do_worse() -> None:
    asked = parse_views("score,answer_first,third")
    pairs = []
    for k in range(4):
        right, wrong = essential(k), [s.id for s in CASES[k].sentences if s.id not in essential(k)]
        found = {"score": [right], "answer_first": [wrong[:6] + right[:1]], "third": [wrong[:6] + right[:1]]}
        pairs.append((voted(found, k), CASES[k]))
    mixtures = best_mixtures(pairs, asked)
    assert best_of(mixtures).views == (ViewUse(name="score"),)
    assert mixtures[3].f1 <= 100


def test_a_record_is_voted_anew_without_a_call() -> None:
    record = voted({"score": [essential(0)], "answer_first": [[]]})
    assert voted_by(record, PipelineSettings(views=parse_views("score"))).evidence == essential(0)
    both = voted_by(record, PipelineSettings(views=BOTH, agreement=0.5))
    assert both.evidence == essential(0) and both.scores and both.scores[0] != record.scores


def test_weights_of_two_views_are_tried_where_one_has_more_samples() -> None:
    """What only `score` finds is right and what only `answer_first` finds is wrong: equal weights cannot say so."""
    pairs = []
    for k in range(4):
        right, wrong = essential(k), [s.id for s in CASES[k].sentences if s.id not in essential(k)]
        found = {"score": [right] * 3, "answer_first": [right[1:] + wrong[:2]]}
        pairs.append((voted(found, k), CASES[k]))
    mixtures = best_mixtures(pairs, parse_views("score*3,answer_first"))
    assert set(mixtures) == {1, 2, 3, 4} and mixtures[4].f1 == 100
    score, answer_first = mixtures[4].views
    assert score.weight > answer_first.weight


def test_views_to_choose_from_keep_within_max_calls() -> None:
    options = Options(stages=("score",), views=parse_views("score*3,answer_first*3"), folds="2")
    told: list[str] = []
    assert affordable(options, CASES, told.append) == options and told == []
    calls = {text: most_calls(replace(options, views=parse_views(text)), CASES) for text in ("score*3,answer_first*3",
             "score*2,answer_first*2", "score,answer_first", "score")}  # fmt: skip
    assert sorted(calls.values(), reverse=True) == list(calls.values())
    for text, most in calls.items():
        fits = affordable(replace(options, max_calls=most), CASES, told.append)
        assert fits.views == parse_views(text)
    assert len(told) == 3 and "score*2,answer_first*2 in place of score*3,answer_first*3" in told[0]
    assert affordable(replace(options, max_calls=1), CASES, told.append).views == parse_views("score")
    assert "stops there" in told[-1]


def test_a_view_once_more_is_chosen_with_other_demos_and_its_own_lm(command: Callable[..., Ran]) -> None:
    call = (
        "optimize",
        "sample/dev",
        "--cases",
        "1-8",
        "--lm",
        "knn",
        "--stage",
        "score",
        "--folds",
        2,
        "--out",
        "p.json",
    )
    ran = command(*call, "--views", "score,score_b,score_few", "--demos", "3,score_few=1")
    assert ran.code == 0, ran.err
    sources = json.loads(Path("p.json").read_text())["provenance"]["demo_case_ids"]
    assert len(sources["score"]) == 3 and "calls a case" in ran.out
    if "score_b" in sources:
        assert not set(sources["score"]) & set(sources["score_b"])
    ran = command(*call, "--views", "score,answer_first", "--lm", "answer_first=knn")
    assert ran.code == 0, ran.err
    made = json.loads(Path("p.json").read_text())["provenance"]
    assert made["lm"]["stages"]["answer_first"]["model"] == "knn"
    for more, said in (
        (("--lm", "alig=knn"), "no stage alig"),
        (("--demos", "4,score_b=1"), "no prompt of score_b"),
        (("--demos", "score=x"), "--demos score=x"),
    ):
        ran = command(*call, *more)
        assert ran.code == 2 and said in ran.err.splitlines()[-1]


def test_several_numbers_of_demos_and_views_are_read(command: Callable[..., Ran]) -> None:
    assert parse_demos("4, 8,all") == (4, 8, ALL_DEMOS) and parse_demos("0") == (0,)
    assert [v.name for v in parse_candidates("auto", ("score",))[0]] == ["score", "answer_first", "extractive"]
    for text in ("x", "4,", "-1"):
        with pytest.raises(DataError, match="--demos"):
            parse_demos(text)
    with pytest.raises(DataError, match="stage score"):
        parse_candidates("auto", ("align",))
    ran = command("optimize", "sample/dev", "--lm", "knn", "--views", "none", "--out", "p.json")
    assert ran.code == 2 and "--views none" in ran.err and not Path("p.json").exists()


def test_a_cut_that_was_fitted_to_something_else_is_told(command: Callable[..., Ran]) -> None:
    call = ("optimize", "sample/dev", "--cases", "1-4", "--lm", "knn", "--stage", "score", "--folds", 2)
    assert command(*call, "--demos", "1,2", "--out", "p.json").code == 0
    run = ("run", "sample/test", "--cases", "101", "--lm", "knn", "--program", "p.json")
    assert "fitted to" not in command(*run, "--out", "r").err
    assert "fitted to other prompts or demos" in command(*run, "--out", "r2", "--views", "score*2").err
    assert "fitted to knn" in str(cut_of_another(load_program("p.json"), fake_lm([])))
    raw = json.loads(Path("p.json").read_text())
    raw["stages"]["score"]["demos"] = []
    Path("q.json").write_text(json.dumps(raw))
    assert "other prompts or demos" in command(*run[:-1], "q.json", "--out", "r3").err
