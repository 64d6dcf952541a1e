"""Views: several ways of asking for evidence vote, and one that fails leaves the decision to the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15
from hypothesis import given
from hypothesis import strategies as st

from archehr.data.case import DataError
from archehr.data.dataset import read_cases
from archehr.program.extractive_program import extractive_program
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program, program_hash, save_program_file, to_file
from archehr.program.run.run import run_cases
from archehr.program.settings import PRESETS, PipelineSettings, ViewUse, parse_views
from archehr.program.stages.ask import Checked
from archehr.program.stages.registry import STAGES, VIEWS, add_view
from archehr.program.stages.score_sentences import select_evidence
from archehr.program.stages.stage import Stage
from archehr.program.stages.views.answer_first import AnswerPart, read_citations
from archehr.program.stages.views.view import View
from archehr.program.stages.views.vote import Ballot, agree, confidence_of
from archehr.program.types import AgreedScore, SentenceScore
from tests.conftest import Ran
from tests.fake_lm import fake_lm
from tests.scripted_stages import gold_lm, stage_of

DEV = read_cases("sample/dev")[:3]
CASE = DEV[0]
IDS = [s.id for s in CASE.sentences]
BOTH = PipelineSettings(views=parse_views("score,answer_first"))


def scored(ids: list[str]) -> str:
    return json.dumps({"scores": [{"id": i, "score": 5 if i in ids else 1} for i in IDS]})


def cited(ids: list[str]) -> str:
    return json.dumps({"cited_answer": [{"sentence": "It is so.", "evidence_ids": ids}]})


def lm_with(**replies: str | Exception) -> dspy.LM:
    gold = gold_lm(DEV)

    def reply(request: lm15.Request) -> str:
        scripted = replies.get(stage_of(request) or "")
        if isinstance(scripted, Exception):
            raise scripted
        return gold.engine.backend.engine.complete(request).message.text if scripted is None else scripted

    return fake_lm(reply)


def run(lm: dspy.LM, settings: PipelineSettings = BOTH) -> dspy.Prediction:
    with dspy.context(lm=lm):
        return GroundedQA(settings)(case=CASE, stages={"score"})


def agreement(prediction: dspy.Prediction) -> dict[str, float]:
    return {s.id: s.confidence for s in prediction.scores if s.confidence}


def test_two_views_agree_on_what_both_find() -> None:
    lm = lm_with(score=scored(IDS[:2]), answer_first=cited(IDS[1:3]))
    made = run(lm)
    assert agreement(made) == {IDS[0]: 0.5, IDS[1]: 1.0, IDS[2]: 0.5}
    assert made.evidence == IDS[:3]
    assert made.scores[0].votes == {"score": [5], "answer_first": [1]} and made.scores[0].score == 3
    strict = run(lm, BOTH.model_copy(update={"agreement": 0.75}))
    assert strict.evidence == [IDS[1]]


def test_what_no_cut_reaches_is_the_most_agreed_with_a_notice() -> None:
    lm = lm_with(score=scored(IDS[:1]), answer_first=cited(IDS[1:2]))
    made = run(lm, BOTH.model_copy(update={"agreement": 1.0}))
    assert made.evidence == IDS[:2] and [n.kind for n in made.notices] == ["relaxed_cut"]


def test_weights_and_cuts_of_a_view_count() -> None:
    views = (ViewUse(name="score", cut=4, weight=3), ViewUse(name="answer_first"))
    assert confidence_of({"score": [4], "answer_first": [1]}, views) == 0.75
    assert confidence_of({"answer_first": [5]}, views) == 1.0  # the other said nothing on it
    assert confidence_of({}, views) == 0.0


BROKEN = ["no JSON here", lm15.ServerError("down", status=503)]


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("failing", ["score", "answer_first"])
def test_a_view_that_fails_leaves_the_others_to_vote(failing: str, broken: str | Exception) -> None:
    found = {"score": scored(IDS[:2]), "answer_first": cited(IDS[:2]), failing: broken}
    made = run(lm_with(**found))
    assert made.evidence == IDS[:2] and set(agreement(made).values()) == {1.0}
    assert ("view_failed", failing) in {(n.kind, n.stage) for n in made.notices}


def test_all_views_failing_is_the_fallback_of_one() -> None:
    lm = lm_with(score="no", answer_first="no")
    made, one = run(lm), run(lm, PRESETS["default"])
    assert made.scores == one.scores and made.evidence == one.evidence
    assert not any(n.kind == "view_failed" for n in made.notices)


def test_a_part_of_a_long_note_that_one_view_failed_on_is_left_to_the_other() -> None:
    def reply(request: lm15.Request) -> str:
        last = request.messages[-1].text or ""
        shown = [i for i in IDS if f"[{i}] " in last]
        if stage_of(request) == "answer_first":
            return cited(shown[:1])
        return "no" if IDS[0] in shown else json.dumps({"scores": [{"id": i, "score": 5} for i in shown]})

    settings = BOTH.model_copy(update={"window_chars": 1500, "window_overlap": 0, "ask_again": False})
    with dspy.context(lm=fake_lm(reply)):
        made = GroundedQA(settings)(case=CASE, question="given", stages={"score"})
    assert made.scores[0].votes == {"answer_first": [5]} and made.scores[0].confidence == 1.0
    assert set(made.scores[-1].votes) == {"score", "answer_first"}
    assert "a part" in next(n.detail for n in made.notices if n.kind == "view_failed")


def test_samples_of_one_prompt_are_replies_of_their_own_and_cached_apart() -> None:
    lm = lm_with(score=scored(IDS[:2]))
    lm.cache = True
    run(lm, PipelineSettings(views=parse_views("score*3")))
    asked = [r for r in lm.requests if stage_of(r) == "score"]
    assert sorted((r.config.seed or 0, r.config.temperature) for r in asked) == [(0, 0.0), (1, 0.7), (2, 0.7)]
    assert len({str(r.messages) for r in asked}) == 1


def test_one_view_asks_what_it_always_did() -> None:
    lm = lm_with()
    made = run(lm, PRESETS["default"])
    (request,) = [r for r in lm.requests if stage_of(r) == "score"]
    assert request.config.temperature == 0 and request.config.seed is None
    assert all(type(s) is SentenceScore for s in made.scores)
    assert [r for r in lm.requests if stage_of(r) == "answer_first"] == []


def test_a_run_keeps_votes_and_agreement_and_resumes(tmp_path: Path) -> None:
    lm = lm_with(score=scored(IDS[:2]), answer_first=cited(IDS[1:3]))
    program = load_program("zero_shot", BOTH)
    result = run_cases(DEV[:1], program, lm, out=tmp_path / "r")
    again = run_cases(DEV[:1], program, lm, out=tmp_path / "r")
    assert again.resumed == 1 and again.records == result.records
    assert again.records[0].scores and isinstance(again.records[0].scores[0], AgreedScore)
    page = (tmp_path / "r" / "report.html").read_text()
    assert "By agreement" in page and "agreement 0.50" in page and "answer_first 5" in page


def test_a_program_file_holds_its_views_prompts(tmp_path: Path) -> None:
    program = GroundedQA(BOTH)
    program.answer_first.predict.signature = program.answer_first.predict.signature.with_instructions("Answer.")
    save_program_file(to_file(program), tmp_path / "p.json")
    again = load_program(tmp_path / "p.json")
    assert again.answer_first.predict.signature.instructions == "Answer."
    assert program_hash(again) == program_hash(program) != program_hash(GroundedQA())
    assert not hasattr(load_program(tmp_path / "p.json", PRESETS["seed"]), "answer_first")


def test_a_view_votes_twice_with_an_lm_and_a_prompt_of_its_own(tmp_path: Path) -> None:
    settings = PipelineSettings(views=parse_views("score,score_b"))
    first, second = lm_with(score=scored(IDS[:2])), lm_with(score=scored(IDS[1:3]))
    second.model = "fake/other"
    result = run_cases(DEV[:1], GroundedQA(settings), {"": first, "score_b": second}, stages=("score",))
    (record,) = result.records
    assert record.scores and record.scores[0].votes == {"score": [5], "score_b": [1]}  # type: ignore[union-attr]
    assert record.evidence == IDS[:3] and len(second.requests) == 1
    program = GroundedQA(settings)
    program.score_b.predict.demos = [STAGES["score"].taught().demo(DEV[1])]
    for save in (lambda path: save_program_file(to_file(program), path), program.save):
        save(tmp_path / "p.json")
        for again in (load_program(tmp_path / "p.json"), GroundedQA()):
            again.load(tmp_path / "p.json")
            assert again.settings == settings and len(again.score_b.predict.demos) == 1
            assert again.score.predict.demos == [] and program_hash(again) == program_hash(program)


def test_a_voter_that_fails_is_told_by_its_own_name() -> None:
    views = PipelineSettings(views=parse_views("score,answer_first,answer_first_b"))
    other = lm_with(answer_first=cited(["99"]))
    other.model = "fake/other"
    made = run_cases(DEV[:1], GroundedQA(views), {"": lm_with(), "answer_first_b": other})
    assert ("answer_first_b", "view_failed") in {(n["stage"], n["kind"]) for n in made.records[0].notices}


def test_a_vote_that_would_count_twice_is_refused(command: Callable[..., Ran]) -> None:
    ran = command("run", "sample/dev", "--cases", "1", "--lm", "knn", "--views", "score,score_b")
    assert ran.code == 2 and "score*2" in ran.err
    ran = command("run", "sample/dev", "--cases", "1", "--lm", "knn", "--lm", "score_b=knn")
    assert ran.code == 2 and "--views" in ran.err
    assert "score_b" in command("run", "--help").out


def test_the_temperature_of_all_stages_is_that_of_every_view() -> None:
    lm = lm_with()
    run(lm, BOTH.changed({"temperature": 0.3}))
    assert {r.config.temperature for r in lm.requests} == {0.3}


class Decisive(dspy.Signature):
    """Name the one sentence that decides."""

    sentences: str = dspy.InputField()
    decisive: list[str] = dspy.OutputField()


class DecisiveView(View):
    """The sentence that decides."""

    name = "decisive"
    signature = Decisive

    def read(self, ids: Any, prediction: dspy.Prediction) -> Checked[list[SentenceScore]]:
        return Checked([SentenceScore(id=i, score=5) for i in ids if i in prediction.decisive])


@pytest.fixture
def decisive() -> Iterator[None]:
    add_view(Stage("decisive", Decisive, module=DecisiveView, in_windows=True))
    yield
    del VIEWS["decisive"]


@pytest.mark.usefixtures("decisive")
def test_an_added_view_votes_is_saved_and_its_name_is_taken(tmp_path: Path) -> None:
    settings = PipelineSettings(views=parse_views("score,decisive"))
    made = run(lm_with(score=scored(IDS[:2]), decisive=json.dumps({"decisive": [IDS[1], "99"]})), settings)
    assert agreement(made) == {IDS[0]: 0.5, IDS[1]: 1.0}
    save_program_file(to_file(GroundedQA(settings)), tmp_path / "p.json")
    assert load_program(tmp_path / "p.json").decisive.predict.signature.instructions == Decisive.instructions
    with pytest.raises(DataError, match="taken"):
        add_view(Stage("decisive", Decisive, module=DecisiveView))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("score,", "NAME"),
        ("score*0", r"1 to 20"),
        ("score*x", "NAME"),
        ("score,score", "once"),
        ("nothing", "there are score, answer_first"),
        ("score,align", "there are score, answer_first"),
        ("verify_b", "there are score, answer_first"),
    ],
)
def test_views_that_are_not_there_are_one_clear_line(command: Callable[..., Ran], text: str, told: str) -> None:
    ran = command("run", "sample/dev", "--cases", "1", "--lm", "knn", "--views", text)
    assert ran.code == 2 and told in ran.err.splitlines()[-1] and "--views" in ran.err.splitlines()[-1]


def test_views_without_an_lm_are_refused(command: Callable[..., Ran]) -> None:
    ran = command("run", "sample/dev", "--cases", "1", "--views", "answer_first")
    assert ran.code == 2 and "--lm" in ran.err
    assert extractive_program(BOTH).settings.views == PRESETS["default"].views


@given(
    st.lists(st.lists(st.text(max_size=4) | st.sampled_from(["1", "2", " [3] "]), max_size=4), max_size=4),
)
def test_citations_of_any_reply_become_scores_of_the_note_alone(raw: list[list[str]]) -> None:
    checked = read_citations([AnswerPart(sentence="x", evidence_ids=ids) for ids in raw], ["1", "2", "3"])
    known = {i.strip().strip("[]") for ids in raw for i in ids} & {"1", "2", "3"}
    if not known:
        assert checked.value is None and checked.fault
    else:
        assert checked.value is not None and [s.id for s in checked.value] == ["1", "2", "3"]
        assert {s.id for s in checked.value if s.score == 5} == known


@given(st.data())
def test_agreement_is_a_share_and_more_votes_never_lower_it(data: st.DataObject) -> None:
    views = (ViewUse(name="score", weight=data.draw(st.floats(0.1, 9))), ViewUse(name="answer_first"))
    ballots = [
        Ballot(
            v.name,
            [SentenceScore(id=i, score=data.draw(st.integers(1, 5))) for i in "abc"],
            data.draw(st.lists(st.sampled_from("abc"), unique=True)),
        )
        for v in views
    ]
    made = agree(ballots, views)
    assert [s.id for s in made] == list("abc")
    for s in made:
        if isinstance(s, AgreedScore):
            assert 0 <= s.confidence <= 1
            raised = {view: [5] * len(scores) for view, scores in s.votes.items()}
            assert confidence_of(raised, views) >= s.confidence - 1e-6 or not s.votes
    assert set(select_evidence(made, BOTH)[0]) <= set("abc")
