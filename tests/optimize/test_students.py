"""`archehr optimize --program extractive`, end to end: fit, show, run, compare, publish; and what it refuses."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from archehr.data.case import Case, DataError, Gold, Relevance
from archehr.data.dataset import Dataset, case_sha256, read_cases
from archehr.optimize.session import check_target
from archehr.optimize.students.examples import labelled_by_run, sentences_by_key, sure_by_run, weighed
from archehr.optimize.students.fit import choose_evidence, fit_evidence, fit_logistic, with_constant
from archehr.optimize.students.session import fit_to_file
from archehr.optimize.students.student import fit_student
from archehr.program.extractive.fitted.file import shipped
from archehr.program.extractive.fitted.odds import chance
from archehr.program.prompts.program_file import load_program, read_any_program
from archehr.program.run.folder import read_run_folder
from archehr.program.run.run import run_cases
from archehr.program.settings import parse_views
from archehr.program.types import SentenceScore
from tests.conftest import Ran
from tests.scripted_stages import gold_lm

Command = Callable[..., Ran]
TEST = read_cases("sample/test")


def test_the_loop_fit_show_run_compare_and_publish(command: Command, tmp_path: Path) -> None:
    fitted = command("optimize", "sample/test", "--program", "extractive", "--out", "mine.json", "--publish", "p.json")
    assert fitted.code == 0, fitted.err
    assert "out_of_sample        extractive-dev" in fitted.out and "against extractive-dev:" in fitted.out
    shown = command("show", "mine.json")
    assert shown.code == 0 and "length_to_mean" in shown.out and "terms_alike" in shown.out
    ran = command("run", "sample/test", "--program", "mine.json", "--out", "r")
    assert ran.code == 0 and "IN SAMPLE" in ran.out
    compared = command("compare", "sample/test", "mine.json", "extractive-dev", "--out", "c")
    assert compared.code == 0 and "mine: IN SAMPLE" in compared.out and "extractive-dev: IN SAMPLE" not in compared.out
    assert read_any_program(Path("p.json")) == read_any_program(Path("mine.json"))
    told = json.loads(Path("p.json").read_text())
    said = {word for case in TEST for s in case.sentences for word in s.text.split() if len(word) > 9}
    assert not said & set(json.dumps(told["evidence"]).split('"'))
    assert told["provenance"]["case_sha256"] == case_sha256(TEST)


def test_the_same_labels_give_the_same_models_and_other_labels_others(tmp_path: Path) -> None:
    one, two, other = tmp_path / "one.json", tmp_path / "two.json", tmp_path / "other.json"
    for out, cases in ((one, TEST[:7]), (two, TEST[:7]), (other, TEST[7:14])):
        fit_to_file(Dataset(tuple(cases), "mine"), out)
    assert read_any_program(one).sha256 == read_any_program(two).sha256 != read_any_program(other).sha256  # type: ignore[union-attr]


def test_started_from_shipped_it_learns_from_cases_that_are_not_the_users(tmp_path: Path) -> None:
    out = tmp_path / "more.json"
    _, file = fit_to_file(Dataset(tuple(TEST[:6]), "mine"), out, start_from="shipped")
    known = file.provenance["case_sha256"]
    assert len(known) == len(set(known)) == 40 and set(case_sha256(TEST[:6])) <= set(known)


def test_one_half_of_the_labels_fits_one_of_the_models(tmp_path: Path) -> None:
    cases = [replace(c, gold=replace(c.gold, answer_sentences=())) for c in TEST[:6] if c.gold]
    told: list[str] = []
    _, file = fit_to_file(Dataset(tuple(cases), "mine"), tmp_path / "half.json", tell=told.append)
    assert file.alignment is None and file.evidence != shipped().evidence
    assert told[0].startswith("0 cases have answer sentences with citations")


def labelled(essential: bool) -> list:
    label = Relevance.ESSENTIAL if essential else Relevance.NOT_RELEVANT
    return [replace(c, gold=Gold(relevance={s.id: label for s in c.sentences})) for c in TEST[:6]]


@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        (TEST[:4], "4 cases have note sentences that are labelled essential and others that are not, and 5 are needed"),
        ([replace(c, gold=None) for c in TEST[:6]], "0 cases have note sentences"),
        ([replace(c, sentences=()) for c in TEST[:6]], "0 cases have note sentences"),
        (labelled(True), "0 cases have note sentences"),
        (labelled(False), "0 cases have note sentences"),
    ],
)
def test_too_few_labels_and_one_class_are_refused_in_one_line(cases: list, reason: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        fit_to_file(Dataset(tuple(cases), "mine"), tmp_path / "p.json")
    assert str(refused.value).startswith(reason) and str(refused.value).endswith("label more cases")
    assert not (tmp_path / "p.json").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--program", "other"], "--program is handwritten or extractive"),
        (["--labels", "r"], "need --program extractive"),
        (["--program", "extractive", "--start-from", "mine.json"], "--start-from mine.json: it is shipped"),
        (["--program", "extractive", "--labels", "nowhere"], "nowhere"),
        (["--program", "extractive", "--cases", "101-104"], "4 cases have"),
    ],
)
def test_wrong_calls_end_in_one_line(command: Command, arguments: list[str], reason: str) -> None:
    ran = command("optimize", "sample/test", "--out", "p.json", *arguments)
    assert ran.code == 2 and reason in ran.err and "Traceback" not in ran.err


def test_a_runs_labels_must_be_an_lms_and_of_this_data(tmp_path: Path) -> None:
    run_cases(Dataset(tuple(TEST[:6]), "mine"), load_program("extractive"), out=tmp_path / "r")
    with pytest.raises(DataError, match="a run without an LM"):
        fit_to_file(Dataset(tuple(TEST[:6]), "mine"), tmp_path / "p.json", labels=tmp_path / "r")
    with pytest.raises(DataError, match="a run of other data"):
        fit_to_file(Dataset(tuple(TEST[6:]), "mine"), tmp_path / "p.json", labels=tmp_path / "r")


def test_a_student_learns_from_what_an_lm_said_and_not_from_its_fallback(tmp_path: Path) -> None:
    def but_one(stage: str, case: Case, reply: dict) -> dict:
        return {"scores": []} if stage == "score" and case.id == "101" else reply

    bare = tuple(replace(c, gold=None) for c in TEST[:6])
    data = Dataset(bare, "mine")
    run_cases(data, load_program("handwritten"), gold_lm(TEST[:6], but_one), out=tmp_path / "r", workers=1)
    _, records = read_run_folder(tmp_path / "r")
    taught = {c.id: c.gold for c in labelled_by_run(bare, records)}
    assert taught["101"].relevance is None and taught["102"].relevance
    assert taught["102"].essential == TEST[1].gold.essential and taught["102"].links == TEST[1].gold.links
    report, file = fit_to_file(data, tmp_path / "student.json", labels=tmp_path / "r")
    assert "measured by what the run said" in report and file.provenance["options"]["labels"] == "a run"
    assert file.evidence.logistic != shipped().evidence.logistic


def test_a_vote_counts_as_much_as_it_was_sure(tmp_path: Path) -> None:
    turn = itertools.count()

    def torn(stage: str, case: Case, reply: dict) -> dict:
        """Every third reply takes everything."""
        if stage != "score" or next(turn) % 3:
            return reply
        return {"scores": [{"id": s.id, "score": 5} for s in case.sentences]}

    bare = tuple(replace(c, gold=None) for c in TEST[:6])
    data = Dataset(bare, "mine")
    program = load_program("default", {"views": parse_views("score*3")})
    run_cases(data, program, gold_lm(TEST[:6], torn), out=tmp_path / "r", workers=1)
    _, records = read_run_folder(tmp_path / "r")
    sure = sure_by_run(records)
    assert {round(float(share), 3) for share in sure["101"]} == {0.667, 1.0}
    (plain,) = sentences_by_key(labelled_by_run(bare[:1], records))
    (counted,) = weighed([plain], sure)
    assert (counted.essential == plain.essential).all() and (counted.counts == sure["101"]).all()
    _, file = fit_to_file(data, tmp_path / "student.json", labels=tmp_path / "r")
    plain_scores = {
        case_id: r.model_copy(update={"scores": [SentenceScore(id=s.id, score=s.score) for s in r.scores or ()]})
        for case_id, r in records.items()
    }
    assert not sure_by_run(plain_scores)
    unweighed = fit_student(labelled_by_run(bare, plain_scores), bare, shipped(), shipped())
    assert file.evidence.logistic != unweighed.evidence.logistic


def test_soft_labels_are_met_in_the_middle() -> None:
    rows = np.vstack([np.zeros((50, 1)), np.ones((50, 1))])
    likely = np.concatenate([np.full(50, 0.2), np.full(50, 0.7)])
    model = fit_logistic(np.repeat(rows, 20, axis=0), np.repeat(likely, 20), np.ones(2000), ["x"])
    assert chance(model.odds(np.array([[0.0], [1.0]]), ["x"])) == pytest.approx([0.2, 0.7], abs=0.02)


def test_a_constant_that_is_far_off_is_found_again() -> None:
    examples = sentences_by_key(TEST)
    usual = fit_evidence(examples)
    far = with_constant(with_constant(with_constant(usual, "cut", 1.3), "cut", 1.3), "cut", 1.3)
    assert choose_evidence(examples, far).edges[2] < far.edges[2]
    assert list(far.edges) == sorted(far.edges)


def test_a_file_of_another_version_may_be_fitted_again_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**json.loads(shipped().as_text()), "features": 0}))
    with pytest.raises(DataError, match="fit it again"):
        load_program(path)
    check_target(path, "--out")
    for other in ("{}", "[]", "not JSON", '{"format": 1, "rows": []}'):
        path.write_text(other)
        with pytest.raises(DataError, match="exists and is no program file; name another --out"):
            check_target(path, "--out")
