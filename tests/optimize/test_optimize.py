"""The whole optimisation: what it writes, what it never shows, and that nothing is paid for twice."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archehr.data.case import Case, DataError
from archehr.data.dataset import Dataset, read_cases
from archehr.metrics.intervals import Difference
from archehr.optimize.files import SHARED_WORDS
from archehr.optimize.optimize import Optimised
from archehr.optimize.optimizers.optimizer import Options
from archehr.optimize.optimizers.registry import OPTIMIZERS
from archehr.optimize.report import gain_in_words, report
from archehr.optimize.scores import parse_weights
from archehr.optimize.session import check_options, optimize_to_file
from archehr.program.declining import NOT_ANSWERED
from archehr.program.lm import Budget, BudgetExceeded
from archehr.program.lm.backend import prompt_parts
from archehr.program.lm.cache import cache_folder
from archehr.program.prompts.program_file import ProgramFile, load_program, predictor, read_program_file
from archehr.program.stages.registry import STAGES
from tests.scripted_stages import PROPOSAL, asked_case, demo_cases, gold_lm, stage_of

FEW = read_cases("sample/dev")[:6]
SMALL = {"demos": 2, "candidates": 2, "folds": "2", "token_budget": 20_000}


def optimised(
    out: Path, optimizer: str = "labeled", lm: Any = None, cases: Sequence[Case] = FEW, **more: Any
) -> tuple[Optimised, ProgramFile]:
    publish = more.pop("publish", None)
    lm = lm or gold_lm(cases, cache=True)
    options = Options(optimizer=optimizer, **SMALL | more)
    return optimize_to_file(options, Dataset(tuple(cases), "sample/dev"), lm, lm, out, publish=publish, workers=2)


def undated(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", content["provenance"].pop("created"))
    return content


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_writes_a_program_that_loads(optimizer: str, tmp_path: Path) -> None:
    out = tmp_path / "p.json"
    found, file = optimised(out, optimizer, stages=("score", "align"))
    program = load_program(out)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache_folder().stat().st_mode) == 0o700
    assert set(file.stages) == set(STAGES)  # none frozen away by a compilation
    assert file.provenance.optimizer == optimizer
    assert file.provenance.model_version == ["fake/lm"]
    for stage in ("score", "align"):
        demos = predictor(getattr(program, stage)).demos
        assert demos == [d.shown() for d in found.fitted.prompts[stage].demos]
        assert len(file.provenance.demo_case_ids[stage]) == len(demos)
        assert bool(demos) or optimizer in ("mipro", "gepa")
    assert predictor(program.reformulate).demos == predictor(load_program("handwritten").reformulate).demos
    for name in ("in_sample", "out_of_sample", "zero_shot", "handwritten"):
        assert found.tables[name][4].case_ids == tuple(c.id for c in FEW)
        assert set(file.provenance.scores[name]["subtask_2"]) == {"score", "value", "low", "high"}


@pytest.mark.parametrize("optimizer", ["labeled", "random", "bootstrap", "mipro"])
def test_no_prompt_of_an_optimisation_shows_the_case_it_asks_about(optimizer: str, tmp_path: Path) -> None:
    lm = gold_lm(FEW, cache=True)
    optimised(tmp_path / "p.json", optimizer, lm)
    asked = [r for r in lm.requests if stage_of(r)]
    assert sum(bool(list(demo_cases(r, FEW))) for r in asked) > 20
    for request in asked:
        assert asked_case(request, FEW).id not in {c.id for c in demo_cases(request, FEW)}


def test_a_fold_is_answered_with_demos_of_the_other_folds_only(tmp_path: Path) -> None:
    lm = gold_lm(FEW, cache=True)
    found, _ = optimised(tmp_path / "p.json", "random", lm, stages=("align",), folds="loo", demos=1, candidates=1)
    # With one demo chosen in every fold the out-of-sample demo is the first of the order that is another case.
    first, second = _order(FEW)[:2]
    shown = {
        asked_case(r, FEW).id: {c.id for c in demo_cases(r, FEW)}
        for r in lm.requests
        if stage_of(r) == "align" and list(demo_cases(r, FEW))
    }
    assert shown == {c.id: {second if c.id == first else first} for c in FEW}
    assert [d.case_id for d in found.fitted.prompts["align"].demos] == [first]


def _order(cases: Sequence[Case]) -> list[str]:
    from archehr.optimize.demos import shuffled

    return shuffled([c.id for c in cases], 0, 0)


@pytest.mark.parametrize("optimizer", ["random", "bootstrap", "gepa"])
def test_two_runs_with_one_seed_write_the_same_file(optimizer: str, tmp_path: Path) -> None:
    chosen = {"stages": ("align",), "seed": 3}
    optimised(tmp_path / "a.json", optimizer, **chosen)
    optimised(tmp_path / "b.json", optimizer, **chosen)
    assert undated(tmp_path / "a.json") == undated(tmp_path / "b.json")


@pytest.mark.parametrize("optimizer", ["bootstrap", "mipro"])
def test_a_stopped_optimisation_resumes_and_pays_for_nothing_twice(
    optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {"stages": ("align",)}
    whole = gold_lm(FEW, cache=True)
    monkeypatch.setenv("ARCHEHR_CACHE", str(tmp_path / "first"))
    optimised(tmp_path / "whole.json", optimizer, whole, **chosen)
    monkeypatch.setenv("ARCHEHR_CACHE", str(tmp_path / "second"))
    out = tmp_path / "p.json"
    first = gold_lm(FEW, cache=True, budget=Budget(max_calls=15))
    with pytest.raises(BudgetExceeded):
        optimised(out, optimizer, first, **chosen)
    assert not out.exists()
    second = gold_lm(FEW, cache=True)
    optimised(out, optimizer, second, **chosen)
    assert len(first.requests) == 15
    assert len(first.requests) + len(second.requests) == len(whole.requests)
    again = gold_lm(FEW, cache=True)
    optimised(out, optimizer, again, **chosen)
    assert not again.requests
    assert undated(out) == undated(tmp_path / "whole.json")


def test_the_best_candidate_wins_and_its_cut_is_stored(tmp_path: Path) -> None:
    def fours_too(stage: str, case: Case, reply: dict[str, Any]) -> dict[str, Any]:
        if stage != "score":
            return reply
        return {"scores": [{**s, "score": 4 + k % 2 if s["score"] == 5 else 1} for k, s in enumerate(reply["scores"])]}

    found, file = optimised(tmp_path / "p.json", "random", gold_lm(FEW, fours_too, cache=True), stages=("score",))
    assert (file.settings.cut, file.settings.relaxed_cut) == (4, 4)
    assert found.intervals("out_of_sample")[2][1].value == 100
    assert found.intervals("handwritten_cut")[2][1].value == 100
    assert "evidence is what scores 4 or more" in report(found)


def test_the_choice_goes_by_the_chain(tmp_path: Path) -> None:
    """An LM that aligns right only where case X is not among its demos: the set without X must win."""
    first = _order(FEW)[0]
    lm = gold_lm(FEW, cache=True)
    engine = lm.engine.backend.engine
    plain = engine._reply

    def reply(request: Any) -> str:
        if stage_of(request) == "align" and first in {c.id for c in demo_cases(request, FEW)}:
            return '{"links": [{"answer_id": "1", "evidence_ids": []}]}'
        return plain(request)

    engine._reply = reply
    found, file = optimised(tmp_path / "p.json", "random", lm, stages=("align",), demos=1, candidates=4)
    objectives = file.provenance.candidate_objectives
    assert len(objectives) == 4
    assert max(objectives) == 100 > min(objectives)
    assert [d.case_id for d in found.fitted.prompts["align"].demos] != [first]


def test_demos_that_do_not_fit_are_said_to_be_missing(tmp_path: Path) -> None:
    told: list[str] = []
    options = Options(stages=("align",), **SMALL | {"token_budget": 1500})
    lm = gold_lm(FEW, cache=True)
    optimize_to_file(
        options, Dataset(tuple(FEW), "sample/dev"), lm, lm, tmp_path / "p.json", workers=2, tell=told.append
    )
    assert "align: 1 demos, no more are accepted and fit --demo-tokens 1500" in told


def test_a_program_that_is_not_better_is_said_not_to_be(tmp_path: Path) -> None:
    found, _ = optimised(tmp_path / "p.json", stages=("align",))
    assert "subtask 4, out of sample against handwritten: not shown to be better, +0.0" in report(found)
    assert gain_in_words(Difference(3.0, -0.1, 6.0, 0.04), 20).startswith("not shown to be better, +3.0")
    assert gain_in_words(Difference(3.0, 0.1, 6.0, 0.01), 20).startswith("better, +3.0 points")
    assert gain_in_words(Difference(-3.0, -6.0, -0.1, 0.99), 20).startswith("worse")


def test_the_report_counts_the_questions_that_were_declined_on_their_own_note(tmp_path: Path) -> None:
    def change(stage: str, case: Case, reply: dict[str, Any]) -> dict[str, Any]:
        return {"answer_sentences": [NOT_ANSWERED]} if stage == "generate" and case is FEW[0] else reply

    found, _ = optimised(tmp_path / "p.json", lm=gold_lm(FEW, change, cache=True), stages=("score", "generate"))
    assert found.declined == {"in_sample": 1, "out_of_sample": 1, "zero_shot": 1, "handwritten": 1}
    assert "declined to answer, of 6 questions with their own note: in_sample 1, out_of_sample 1" in report(found)


def test_a_program_file_of_other_signatures_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "p.json"
    optimised(out, stages=("align",))
    content = json.loads(out.read_text())
    content["signature_hash"] = "0" * 64
    out.write_text(json.dumps(content))
    with pytest.raises(DataError, match="other signatures"):
        load_program(out)


def test_unlabelled_data_is_one_line(tmp_path: Path) -> None:
    bare = [Case(c.id, c.narrative) for c in FEW]
    with pytest.raises(DataError, match=r"no case holds the labels .*: reformulate needs a clinician_question; score"):
        optimised(tmp_path / "p.json", cases=bare)


def without_question(case: Case) -> Case:
    return replace(case, clinician_question=None)


@pytest.mark.parametrize("optimizer", ["labeled", "random", "bootstrap", "gepa"])
def test_the_cut_is_fitted_where_no_case_has_a_question(optimizer: str, tmp_path: Path) -> None:
    cases = [without_question(case) for case in FEW]
    told: list[str] = []
    lm = gold_lm(FEW, cache=True)
    options = Options(optimizer, stages=("score",), weights={2: 1.0}, **SMALL)
    found, file = optimize_to_file(options, Dataset(tuple(cases)), lm, lm, tmp_path / "p.json", tell=told.append)
    assert (file.settings.cut, file.settings.relaxed_cut) == (5, 5)  # the key's essential sentences are its 5s
    assert found.intervals("out_of_sample")[2][1].value == 100
    assert file.stages["score"].demos == []
    assert "score: case 1, 2, 3, 4, 5, 6 scored but no demo, without a clinician_question and a label" in told[0]


def test_all_stages_take_what_is_labelled_and_say_what_is_not(tmp_path: Path) -> None:
    """One case without a question, one without a label of every sentence, and no citations at all."""
    cases = [replace(c, answer_sentences=(), gold=replace(c.gold, answer_sentences=())) for c in FEW if c.gold]
    cases[0] = without_question(cases[0])
    half = dict(list((cases[1].gold.relevance or {}).items())[1:])  # type: ignore[union-attr]
    cases[1] = replace(cases[1], gold=replace(cases[1].gold, relevance=half))  # type: ignore[type-var]
    told: list[str] = []
    lm = gold_lm(FEW, lambda stage, case, reply: reply, cache=True)
    options = Options("labeled", weights={2: 1.0, 4: 1.0}, **SMALL)
    _, file = optimize_to_file(options, Dataset(tuple(cases)), lm, lm, tmp_path / "p.json", tell=told.append)
    assert file.provenance.options is not None
    assert file.provenance.options["stages"] == ["reformulate", "score", "generate"]
    assert file.provenance.options["weights"] == {"2": 1.0}
    assert "reformulate: case 1 left out, without a clinician_question" in told
    assert "score: case 2 left out, without a label of every note sentence" in told
    assert any(line.startswith("align needs citations of every answer sentence, which no case has") for line in told)
    assert any(line.startswith("score: case 1 scored but no demo") for line in told)
    sources = file.provenance.demo_case_ids
    assert sources["score"] and not any(" 1 (" in s or " 2 (" in s for s in sources["score"])


def test_weights_and_stages() -> None:
    assert parse_weights(None, STAGES) == {2: 1.0, 4: 1.0}
    assert parse_weights(None, ("generate",)) == {3: 1.0}
    assert parse_weights("2=1,3=0.5,4=0", STAGES) == {2: 1.0, 3: 0.5}
    for text in ("2=-1", "2=0", "2=nan", "2=inf", "5=1", "x=1"):
        with pytest.raises(DataError, match="--weights"):
            parse_weights(text, STAGES)
    with pytest.raises(DataError, match="subtask 2"):
        parse_weights("2=1", ("align",))
    assert check_options("gepa", "all") == tuple(STAGES)
    assert check_options("gepa", "align") == ("align",)
    assert check_options("gepa", "align, score") == ("score", "align")


# ------------------------------------------------------------------------------------------------------- publishing


def grams(text: str) -> set[str]:
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + SHARED_WORDS]) for i in range(len(words) - SHARED_WORDS + 1)}


def test_a_published_program_holds_no_text_of_the_data_and_fills_from_it(tmp_path: Path) -> None:
    out, public = tmp_path / "p.json", tmp_path / "public.json"
    optimised(out, publish=public)
    said = set().union(*(grams("\n".join([c.narrative, *(s.text for s in c.sentences)])) for c in FEW))
    assert grams(out.read_text()) & said
    assert not grams(public.read_text()) & said
    bare = load_program(public)
    assert all("--demos-from DATA" in note for note in bare.notes) and len(bare.notes) == 1
    assert not bare.score.predict.demos
    filled, own = load_program(public, demo_cases=FEW), load_program(out)
    for stage in STAGES:
        assert predictor(getattr(filled, stage)).demos == predictor(getattr(own, stage)).demos
    with pytest.raises(DataError, match="does not give the reformulate demo"):
        load_program(public, demo_cases=read_cases("sample/test"))


def test_what_cannot_be_rebuilt_is_left_out_and_said(tmp_path: Path) -> None:
    public = tmp_path / "public.json"
    _, file = optimised(tmp_path / "p.json", "bootstrap", stages=("align",), publish=public)
    shown = read_program_file(public)
    assert len(file.stages["align"].demos) == 2
    assert shown.stages["align"].demos == []
    assert shown.provenance.demo_case_ids["align"] == []
    assert shown.provenance.published["left_out"] == {"align": "2 bootstrapped demos"}
    assert shown.provenance.published["scores"] == "those of the full program"


@pytest.mark.parametrize("quotes", [True, False])
def test_instructions_that_quote_the_data_are_not_published(quotes: bool, tmp_path: Path) -> None:
    quoted = " ".join(FEW[0].narrative.split()[:10]) if quotes else PROPOSAL
    lm = gold_lm(FEW, cache=True)
    engine = lm.engine.backend.engine
    plain = engine._reply

    def reply(request: Any) -> str:
        if stage_of(request) is None:
            return json.dumps({"new_instruction": quoted})
        if stage_of(request) == "align" and quoted not in prompt_parts(request)[0][1]:
            return '{"links": [{"answer_id": "1", "evidence_ids": []}]}'
        return plain(request)

    engine._reply = reply
    public = tmp_path / "public.json"
    _, file = optimised(tmp_path / "p.json", "gepa", lm, stages=("align",), publish=public)
    shown = read_program_file(public)
    assert file.stages["align"].signature["instructions"] == quoted
    assert (shown.stages["align"].signature["instructions"] == quoted) is not quotes
    assert ("instructions that quote the data" in str(shown.provenance.published)) is quotes
