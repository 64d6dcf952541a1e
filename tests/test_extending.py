"""A stage and an optimiser, each added from outside in a few lines; CONTRIBUTING.md shows the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import dspy
import pytest

from archehr.data.case import DataError
from archehr.data.dataset import read_cases
from archehr.optimize.demos import labelled_demos
from archehr.optimize.folds import StagePrompt
from archehr.optimize.optimizers.optimizer import Optimizer
from archehr.optimize.optimizers.registry import OPTIMIZERS, add_optimizer
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program, save_program_file, to_file
from archehr.program.run.run import run_cases
from archehr.program.stages.registry import STAGES, add_stage, parse_stages
from archehr.program.stages.stage import PlainStage, Stage
from tests.conftest import Ran
from tests.fake_lm import fake_lm
from tests.scripted_stages import PROPOSAL, gold_lm

FEW = read_cases("sample/dev")[:6]


class Summarise(dspy.Signature):
    """Sum the answer up in five words for the title of a letter."""

    answer: str = dspy.InputField()
    title: str = dspy.OutputField()


@pytest.fixture
def with_title() -> Iterator[None]:
    add_stage(
        Stage(
            "title",
            Summarise,
            module=lambda settings: PlainStage("title", Summarise, settings),
            inputs=lambda case, made: {"answer": made.answer} if made.answer else None,
        )
    )
    yield
    del STAGES["title"]


@pytest.mark.usefixtures("with_title")
def test_an_added_stage_is_asked_kept_and_saved(tmp_path: Path) -> None:
    program = load_program("zero_shot")
    assert "title" in parse_stages("all")
    lm = gold_lm(FEW)
    result = run_cases(FEW[:2], program, lm, out=tmp_path / "r")
    assert [r.added for r in result.records] == [{"title": {"title": PROPOSAL}}] * 2
    again = run_cases(FEW[:2], program, lm, out=tmp_path / "r")
    assert again.resumed == 2 and again.records == result.records
    save_program_file(to_file(program), tmp_path / "p.json")
    assert load_program(tmp_path / "p.json").title.predict.signature.instructions == Summarise.instructions


@pytest.mark.usefixtures("with_title")
def test_files_of_before_a_stage_was_added_are_read_and_runs_without_an_lm_leave_it_out() -> None:
    assert isinstance(load_program("handwritten").title, PlainStage)
    (record,) = run_cases(FEW[:1], load_program("extractive")).records
    assert record.added == {} and record.answer


def test_a_file_with_prompts_of_a_stage_that_is_not_there_is_refused(tmp_path: Path, with_title: None) -> None:
    save_program_file(to_file(GroundedQA()), tmp_path / "p.json")
    stage = STAGES.pop("title")
    with pytest.raises(DataError, match="has prompts of stage title"):
        load_program(tmp_path / "p.json")
    STAGES["title"] = stage


def test_a_stage_that_would_never_run_or_takes_a_name_is_refused() -> None:
    with pytest.raises(DataError, match="`inputs`"):
        add_stage(Stage("x", Summarise, module=lambda settings: dspy.Predict(Summarise)))
    with pytest.raises(DataError, match="taken"):
        add_stage(STAGES["score"])


@pytest.mark.usefixtures("with_title")
def test_an_added_stage_whose_lm_fails_says_so_and_stops_nothing() -> None:
    lm = fake_lm(lambda request: "no JSON")
    (record,) = run_cases(FEW[:1], load_program("zero_shot"), lm).records
    assert record.added == {"title": {"title": None}} and record.answer
    assert ("title", "lm_failed") in {(n["stage"], n["kind"]) for n in record.notices}


class First(Optimizer):
    """The gold demos of the first cases."""

    def compile(self, stage, cases, work):  # type: ignore[no-untyped-def]
        demos = list(labelled_demos(stage, cases).values())
        return [StagePrompt(demos[: work.options.demos])]


def test_an_added_optimiser_is_one_name_more(command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archehr.optimize.optimizers.registry.OPTIMIZERS", dict(OPTIMIZERS))
    add_optimizer("first", First())
    with pytest.raises(DataError, match="taken"):
        add_optimizer("first", First())
    call = ("optimize", "sample/dev", "--cases", "1-4", "--lm", "knn", "--folds", 2, "--demos", 2, "--out", "p.json")
    assert command(*call, "--optimizer", "first").code == 0
    made = json.loads(Path("p.json").read_text())["provenance"]
    assert made["optimizer"] == "first"
    assert made["demo_case_ids"]["score"] == ["sample/dev 1 (labelled)", "sample/dev 2 (labelled)"]
    assert "there are labeled, random, bootstrap, mipro, gepa, first" in command(*call, "--optimizer", "third").err
