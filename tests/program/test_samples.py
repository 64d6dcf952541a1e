"""Samples: of several replies the one most like the others is kept, and one that fails leaves it to them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import dspy
import pytest
from dspy import lm15
from hypothesis import given
from hypothesis import strategies as st

from archehr.data.case import DataError
from archehr.data.dataset import read_cases
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program, program_hash, save_program
from archehr.program.run.run import run_cases
from archehr.program.settings import PRESETS, PipelineSettings, Samples
from archehr.program.stages.views.consensus import medoid
from tests.conftest import Ran
from tests.fake_lm import fake_lm
from tests.scripted_stages import gold_lm, stage_of

CASES = read_cases("sample/dev")[:2]
CASE = CASES[0]
THREE = PipelineSettings(samples=Samples(reformulate=3, generate=3))
QUESTIONS = ["Why was the stent placed?", "Was the stent placed for the stroke?", "Why was a stent placed in him?"]
ANSWERS = [
    ["The drug was stopped."],
    ["A stent was placed to keep the duct open.", "It is changed in three months."],
    ["A stent was placed to keep the duct open.", "It comes out in three months."],
]


def sampled(**replies: Sequence[object]) -> dspy.LM:
    """Gives each sample of a stage its own of the replies, by its seed; the other stages as the key has them."""
    gold = gold_lm(CASES)

    def reply(request: lm15.Request) -> str:
        stage = stage_of(request) or ""
        if stage not in replies:
            return str(gold.engine.backend.engine.complete(request).message.text)
        said = replies[stage][request.config.seed or 0]
        if isinstance(said, Exception):
            raise said
        field = {"reformulate": "question", "generate": "answer_sentences"}[stage]
        return json.dumps({field: said} if said is not None else {})

    return fake_lm(reply)


def run(lm: dspy.LM, settings: PipelineSettings = THREE) -> dspy.Prediction:
    with dspy.context(lm=lm):
        return GroundedQA(settings)(case=CASE, stages={"reformulate", "score", "generate"})


def test_the_reply_most_like_the_others_is_kept() -> None:
    lm = sampled(reformulate=QUESTIONS, generate=ANSWERS)
    made = run(lm)
    assert made.question == QUESTIONS[0] and made.answer_sentences == ANSWERS[1] and made.notices == []
    asked = Counter(stage_of(r) for r in lm.requests)
    assert asked == {"reformulate": 3, "score": 1, "generate": 3}
    assert {(r.config.seed or 0, r.config.temperature) for r in lm.requests if stage_of(r) == "generate"} == {
        (0, 0.1), (1, 0.7), (2, 0.7),
    }  # fmt: skip


def test_one_sample_asks_what_it_always_did() -> None:
    lm = sampled(generate=ANSWERS)
    assert run(lm, PRESETS["default"]).answer_sentences == ANSWERS[0]
    assert Counter(stage_of(r) for r in lm.requests) == {"reformulate": 1, "score": 1, "generate": 1}


@pytest.mark.parametrize("broken", [None, lm15.ServerError("down", status=503)])
def test_a_sample_that_fails_leaves_it_to_the_others_with_a_notice(broken: Exception | None) -> None:
    made = run(sampled(generate=[broken, *ANSWERS[1:]]))
    assert made.answer_sentences == ANSWERS[1] and not made.declined
    told = Counter(n.kind for n in made.notices)
    assert told["sample_failed"] == 1 and "lm_failed" not in told


def test_all_samples_failing_is_the_fallback_of_one() -> None:
    broken = {"reformulate": [None] * 3, "generate": [None] * 3}
    made, one = run(sampled(**broken)), run(sampled(**broken), PRESETS["default"])
    assert (made.question, made.answer, made.notices) == (one.question, one.answer, one.notices)
    assert any(n.kind == "lm_failed" for n in made.notices)


def test_samples_are_kept_in_the_program_and_are_another_run(tmp_path: Path) -> None:
    program = load_program("zero_shot", {"samples": {"generate": 3}})
    save_program(program, tmp_path / "p.json")
    again = load_program(tmp_path / "p.json")
    assert again.settings.samples == Samples(generate=3) and program_hash(again) == program_hash(program)
    assert program_hash(program) != program_hash(load_program("zero_shot"))
    lm = sampled(generate=ANSWERS)
    result = run_cases(CASES[:1], program, lm, out=tmp_path / "r")
    assert result.manifest.sessions[-1].by_stage["generate"].calls == 3
    assert run_cases(CASES[:1], again, lm, out=tmp_path / "r").resumed == 1
    with pytest.raises(DataError, match="samples"):
        run_cases(CASES[:1], load_program("zero_shot"), lm, out=tmp_path / "r")


def test_the_command_takes_samples_and_its_estimate_counts_them(command: Callable[..., Ran]) -> None:
    run = ("run", "sample/test", "--cases", "101", "--lm", "knn", "--samples", "reformulate=2,generate=4", "--json")
    estimated = json.loads(command(*run, "--dry-run").out)["stages"]
    made = json.loads(command(*run).out)
    used = made["sessions"][-1]["by_stage"]
    assert estimated["reformulate"]["calls"] == used["reformulate"]["calls"] == 2
    assert estimated["generate"]["calls"] == used["generate"]["calls"] == 4
    assert "samples-reformulate-2-generate-4" in made["files"]["1"]


@pytest.mark.parametrize("text", ["score=3", "generate", "generate=x", "generate=0", "generate=99", ""])
def test_samples_that_cannot_be_are_one_clear_line(command: Callable[..., Ran], text: str) -> None:
    ran = command("run", "sample/test", "--cases", "101", "--lm", "knn", "--samples", text)
    assert ran.code == 2 and "samples" in ran.err.splitlines()[-1]


def test_samples_without_an_lm_are_refused(command: Callable[..., Ran]) -> None:
    ran = command("run", "sample/test", "--cases", "101", "--samples", "generate=3")
    assert ran.code == 2 and "--lm" in ran.err


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_the_medoid_is_one_of_any_texts(texts: list[str]) -> None:
    assert 0 <= medoid(texts) < len(texts)


@given(st.lists(st.text("abc ", max_size=12), max_size=4), st.sampled_from(["the stent is open", "no fever"]))
def test_what_most_say_is_the_medoid(others: list[str], said: str) -> None:
    texts = [*others, *[said] * (len(others) + 1)]
    assert texts[medoid(texts)] == said
