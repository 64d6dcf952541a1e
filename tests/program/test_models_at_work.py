"""Fitted models beside an LM: the view that asks none, and twins that never saw the case they answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import dspy
import pytest

from archehr.data.case import Case, DataError
from archehr.data.dataset import read_cases
from archehr.optimize.session import parse_candidates
from archehr.program.extractive.fitted.at_work import at_work, models_at_work, unseen
from archehr.program.extractive.fitted.features import NAMES
from archehr.program.extractive.fitted.file import FittedFile, shipped
from archehr.program.extractive.fitted.models import Logistic
from archehr.program.extractive.score_sentences import ExtractiveScoreSentences
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program, program_hash
from archehr.program.run.records import CaseRecord
from archehr.program.run.run import run_cases
from archehr.program.settings import PRESETS, parse_views
from archehr.program.stages.score_sentences import at_cut
from archehr.program.types import AgreedScore, SentenceScore
from tests.conftest import Ran
from tests.fake_lm import fake_lm
from tests.scripted_stages import gold_lm, stage_of

DEV, TEST = read_cases("sample/dev")[:2], read_cases("sample/test")[:2]
Command = Callable[..., Ran]


def found_by(file: FittedFile, case: Case) -> list[SentenceScore]:
    with at_work(file):
        return ExtractiveScoreSentences()(question="Why?", narrative=case.narrative, sentences=case.sentences).scores


def last_is_all() -> FittedFile:
    """Models that take for evidence whatever stands late in the note, as no shipped one does."""
    late = Logistic(names=("position",), mean=(0.5,), scale=(0.1,), weights=(3.0,), intercept=0.0)
    evidence = shipped().evidence.model_copy(update={"logistic": late, "concepts_weight": 0.0})
    return FittedFile.of(evidence, None, None, {"data": "mine", "case_sha256": ["0" * 12]})


@pytest.mark.parametrize(("case", "name"), [(DEV[0], "extractive-test"), (TEST[0], "extractive-dev")])
def test_the_twin_of_an_lm_that_fails_never_saw_the_case(case: Case, name: str) -> None:
    assert unseen(case) is shipped(name)
    with dspy.context(lm=fake_lm("no")):
        made = GroundedQA()(case=case, stages={"reformulate", "score"})
    with at_work(shipped(name)):
        twin = ExtractiveScoreSentences()(
            question=made.question, narrative=case.narrative, sentences=case.sentences
        ).scores
    assert made.scores == at_cut(twin, PRESETS["default"])


def test_a_case_of_the_users_own_is_judged_by_what_learned_from_all() -> None:
    with at_work(None, Case("1", narrative="Why?")):
        assert models_at_work() is shipped() or models_at_work() == shipped()
    with at_work(last_is_all(), DEV[0]):
        found = models_at_work()
        assert found.evidence == last_is_all().evidence and found.answerable == shipped("extractive-test").answerable


def test_the_fitted_view_votes_beside_an_lms_at_no_call(tmp_path: Path) -> None:
    lm = gold_lm(DEV)
    program = load_program("default", {"views": parse_views("score,extractive")})
    result = run_cases(DEV, program, lm, out=tmp_path / "r")
    asked = [stage_of(request) for request in lm.requests]
    assert asked.count("score") == len(DEV) and "extractive" not in asked
    for case, record in zip(DEV, result.records, strict=True):
        for score in record.scores or ():
            assert isinstance(score, AgreedScore) and set(score.votes) == {"score", "extractive"}
        with at_work(shipped("extractive-test")):
            alone = ExtractiveScoreSentences()(
                question=record.question, narrative=case.narrative, sentences=case.sentences
            ).scores
        votes = [s.votes["extractive"][0] >= 5 for s in record.scores or () if isinstance(s, AgreedScore)]
        assert votes == [s.score >= 4 for s in alone]
    assert "extractive" in (tmp_path / "r/report.html").read_text()
    assert load_program(tmp_path / "r/program.json").settings.views == program.settings.views


def test_a_users_model_votes_is_kept_in_the_program_file_and_marks_its_own_cases(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(last_is_all().as_text())
    mine = load_program("default", {"views": parse_views(f"score,{path}")})
    assert [view.name for view in mine.settings.views] == ["score", "extractive"]
    by_shipped = load_program("default", {"views": parse_views("score,extractive")})
    assert program_hash(mine) != program_hash(by_shipped)
    result = run_cases(DEV, mine, gold_lm(DEV), out=tmp_path / "r")
    last = (result.records[0].scores or [])[-1]
    assert isinstance(last, AgreedScore) and last.votes["extractive"] == [5]
    path.unlink()
    kept = load_program(tmp_path / "r/program.json")
    assert kept.fitted == last_is_all() and program_hash(kept) == program_hash(mine)
    assert kept.provenance.case_sha256 == ["0" * 12] and not result.manifest.in_sample
    seen = last_is_all().model_copy(update={"provenance": shipped("extractive-dev").provenance})
    path.write_text(seen.as_text())
    again = load_program("default", {"views": parse_views(f"score,{path}")})
    assert run_cases(DEV, again, gold_lm(DEV), out=tmp_path / "s").manifest.in_sample


def test_a_program_saved_by_dspy_keeps_its_fitted_models(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(last_is_all().as_text())
    load_program("default", {"views": parse_views(f"score,{path}")}).save(tmp_path / "d.json")
    loaded = GroundedQA()
    loaded.load(tmp_path / "d.json")
    assert loaded.fitted == load_program(tmp_path / "d.json").fitted == last_is_all()


def test_a_fitted_view_that_cannot_be_read_is_one_line(command: Command, tmp_path: Path) -> None:
    Path("other.json").write_text("{}")
    changed = json.loads(last_is_all().as_text())
    changed["evidence"]["usual"] = 9.0
    Path("changed.json").write_text(json.dumps(changed))
    for name, reason in {
        "nowhere.json": "nowhere.json: cannot be read",
        "other.json": "other.json: not a file of fitted models",
        "changed.json": "sha256 differs",
    }.items():
        ran = command("run", "sample/test", "--lm", "knn", "--views", f"score,{name}", "--out", "r")
        assert ran.code == 2 and reason in ran.err and "Traceback" not in ran.err
        with pytest.raises(DataError, match=re.escape(reason)):
            parse_candidates(f"score,{name}", ("score",))


def test_an_optimisation_takes_no_votes_from_memory(command: Command) -> None:
    seen = last_is_all().model_copy(update={"provenance": shipped("extractive-dev").provenance})
    Path("mine.json").write_text(seen.as_text())
    call = ("optimize", "sample/dev", "--lm", "knn", "--stage", "score", "--views", "score,mine.json")
    ran = command(*call, "--out", "p.json")
    assert ran.code == 2 and "learned from 20 of these 20 cases" in ran.err and not Path("p.json").exists()


def test_the_report_gives_the_reasons_of_the_model_that_ran(command: Command) -> None:
    Path("mine.json").write_text(last_is_all().as_text())
    run = ("run", "sample/test", "--cases", "101", "--program")
    assert command(*run, "mine.json", "--out", "mine").code == 0
    assert command(*run, "extractive-dev", "--out", "dev").code == 0
    ours, theirs = (Path(f"{name}/report.html").read_text() for name in ("mine", "dev"))
    record = CaseRecord.model_validate_json(Path("mine/predictions.jsonl").read_text().splitlines()[0])
    assert ours.count("it stands late in the note") >= len(record.evidence or ()) > 0
    assert "it is long" in theirs and "it is long" not in ours


def test_show_says_which_models_are_shipped_and_score_that_a_run_is_in_sample(command: Command) -> None:
    Path("mine.json").write_text(last_is_all().as_text())
    shown = command("show", "mine.json").out
    assert shown.count("the shipped model, which the file leaves out") == 2 and "+3.000  position" in shown
    assert "position" in NAMES
    command("run", "sample/test", "--cases", "101,102", "--program", "extractive", "--out", "r")
    assert "IN SAMPLE" in command("score", "r").err
    command("run", "sample/test", "--cases", "101,102", "--program", "extractive-dev", "--out", "s")
    assert "IN SAMPLE" not in command("score", "s").err
