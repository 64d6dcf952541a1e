"""compare and optimize with LMs by stage, and what both would take: the calls are counted at a scripted server."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from archehr.optimize.calls import estimate_optimisation, most_calls, planned
from archehr.optimize.optimizers.optimizer import Options
from archehr.optimize.scores import parse_weights
from archehr.program.lm import make_lm
from archehr.program.stages.registry import STAGES
from archehr.program.types import StageName
from tests.conftest import Ran
from tests.optimize.test_optimize_command import FEW
from tests.stub_server import Reply, StubServer, answer_stage
from tests.test_lm_trouble import stages_by_model, the_line

Command = Callable[..., Ran]
BY_STAGE = {"plain": {"question", "answer_sentences", "links"}, "cheap": {"scores"}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "stub-key-1")
    with StubServer() as running:
        yield running


def at(server: StubServer, *lms: str) -> tuple[str, ...]:
    return (*(part for lm in lms for part in ("--lm", lm)), "--api-base", server.openai)


def test_compare_asks_each_stage_its_lm_in_every_column_of_the_grid(command: Command, server: StubServer) -> None:
    lms = at(server, "openai/plain", "openai/other", "score=openai/cheap")
    asked = ("sample/test", "zero_shot", "extractive", "--cases", "101-102", "--out", "c")
    ran = command("compare", *asked, *lms, "--json")
    assert ran.code == 0, ran
    stages = BY_STAGE["plain"]
    assert stages_by_model(server) == {"plain": stages, "other": stages, "cheap": {"scores"}}
    rows = {row["row"]: row["lm"] for row in json.loads(ran.out)["rows"]}
    assert rows == {
        "zero_shot, openai/plain (score: openai/cheap)": "openai/plain (score: openai/cheap)",
        "zero_shot, openai/other (score: openai/cheap)": "openai/other (score: openai/cheap)",
        "extractive": None,
    }
    folder = Path("c/runs/zero_shot-openai-plain-score-openai-cheap")
    assert json.loads((folder / "run.json").read_text())["lm"]["stages"]["score"]["model"] == "openai/cheap"
    server.received.clear()
    assert command("compare", *asked, *lms).code == 0 and not server.received, "resumed"
    alone = command("compare", *asked, *at(server, "openai/plain"))
    assert alone.code == 0 and set(stages_by_model(server)) == {"plain"}, "another run than with two LMs"


def test_the_lm_of_the_environment_is_that_of_the_other_stages(
    command: Command, server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHEHR_LM", "openai/plain")
    ran = command("compare", "sample/test", "zero_shot", "--cases", "101-102", *at(server, "score=openai/cheap"))
    assert ran.code == 0 and stages_by_model(server) == BY_STAGE
    for one in ("openai/a", "score=openai/a"):
        twice = command("compare", "sample/test", "zero_shot", *at(server, one, "score=openai/b", "score=openai/c"))
        assert twice.code == 2 and "are both for stage score" in the_line(twice)
    unknown = command("compare", "sample/test", "zero_shot", *at(server, "openai/a", "scor=openai/b"))
    assert unknown.code == 2 and "no stage scor; the stages are" in the_line(unknown)


def test_optimize_asks_each_stage_its_lm_and_its_file_says_so(command: Command, server: StubServer) -> None:
    small = ("--cases", "1-6", "--folds", 2, "--out", "p.json", "--publish", "public.json")
    lms = at(server, "openai/plain", "score=openai/cheap")
    ran = command("optimize", "sample/dev", *lms, *small, "--optimizer", "random", "--candidates", 2)
    assert ran.code == 0, ran
    assert stages_by_model(server) == BY_STAGE
    made = json.loads(Path("p.json").read_text())["provenance"]
    assert made["lm"]["model"] == "openai/plain" and made["lm"]["stages"]["score"]["model"] == "openai/cheap"
    assert made["cut_fitted_to"]["lm"] == "openai/cheap"
    told = json.loads(Path("public.json").read_text())["provenance"]["lm"]
    assert told == {"model": "openai/plain", "stages": {"score": {"model": "openai/cheap"}}}
    same = command("run", "sample/test", "--cases", "101", *lms, "--program", "p.json", "--out", "r")
    assert same.code == 0 and "the cut of" not in same.err
    other = command("run", "sample/test", "--cases", "101", *at(server, "openai/plain"), "--program", "p.json")
    assert other.code == 0 and "was fitted to openai/cheap, not openai/plain" in other.err


def test_a_teacher_teaches_all_stages_and_each_lm_answers_its_own(command: Command, server: StubServer) -> None:
    lms = at(server, "openai/plain", "score=openai/cheap")
    taught = ("--optimizer", "bootstrap", "--teacher-lm", "openai/teacher", "--stage", "score", "--out", "p.json")
    ran = command("optimize", "sample/dev", "--cases", "1-6", "--folds", 2, *lms, *taught)
    assert ran.code == 2 and "the teacher's reply was accepted on 0 of 6 cases" in the_line(ran), "as scripted"
    assert stages_by_model(server) == {"teacher": {"scores"}}


def test_a_stage_without_an_lm_is_one_line(command: Command, server: StubServer) -> None:
    ran = command("optimize", "sample/dev", *at(server, "score=openai/a"), "--out", "p.json")
    assert ran.code == 2 and "no LM for reformulate" in the_line(ran) and not server.received


@pytest.mark.parametrize(
    ("status", "told", "code"),
    [(401, "the LM cannot be used", 2), (503, "the LM is gone: no reply in 3 cases in a row", 130)],
)
def test_an_lm_that_stops_an_optimisation_leaves_its_replies_in_the_cache(
    status: int, told: str, code: int, command: Command, server: StubServer
) -> None:
    asked = ("optimize", "sample/dev", "--cases", "1-6", "--folds", 2, "--stage", "score", "--out", "p.json")
    lm = (*at(server, "openai/a"), "--retries", 0, "--workers", 1)
    left = iter(range(8))
    trouble = Reply(status=status, message="revoked")
    server.reply = lambda r: answer_stage(r.ask) if next(left, None) is not None else trouble
    ran = command(*asked, *lm)
    assert ran.code == code and told in the_line(ran) and "revoked" in the_line(ran)
    assert the_line(ran).endswith("every reply so far is in the cache; the same command goes on from there")
    assert not Path("p.json").exists()
    server.received.clear()
    server.reply = lambda r: answer_stage(r.ask)
    again = command(*asked, *lm)
    assert again.code == 0, again
    (cached,) = re.findall(r"LM use: .*retries, (\d+) from the cache", again.err)
    assert int(cached) >= 8


PRICE = ("--price-in", 1, "--price-out", 2)


def test_a_comparison_is_reckoned_by_program_and_stage_and_nothing_is_sent(
    command: Command, server: StubServer
) -> None:
    asked = ("sample/test", "zero_shot", "handwritten", "extractive", "--cases", "101-104", "--out", "c")
    lms = (*at(server, "openai/plain", "score=openai/cheap"), *PRICE)
    ran = command("compare", *asked, *lms, "--dry-run")
    assert ran.code == 0 and not server.received and not Path("c").exists(), ran
    assert "Nothing was sent. 3 runs, 12 cases to answer;" in ran.out
    assert "zero_shot-openai-plain-score-openai-cheap" in ran.out and "extractive " not in ran.out
    made = json.loads(command("compare", *asked, *lms, "--dry-run", "--json").out)
    runs = {name.partition("-")[0]: run for name, run in made["runs"].items()}
    assert runs.keys() == {"zero_shot", "handwritten", "extractive"} and runs["extractive"]["stages"] == {}
    assert runs["zero_shot"]["stages"]["score"]["lm"] == "openai/cheap"
    stages = [its for run in runs.values() for its in run["stages"].values()]
    for name in ("calls", "tokens_in", "tokens_out", "cost"):
        assert made["all"][name] == pytest.approx(sum(its[name] for its in stages)) and made["all"][name] > 0
    assert command("compare", *asked, *lms, "--workers", 1).code == 0
    score = sum(runs[name]["stages"]["score"]["calls"] for name in ("zero_shot", "handwritten"))
    assert Counter(r.body["model"] for r in server.received)["cheap"] <= score
    assert len(server.received) <= made["all"]["calls"] <= 2 * len(server.received), "some prompts are the same in both"
    done = json.loads(command("compare", *asked, *lms, "--dry-run", "--json").out)
    assert done["all"]["calls"] == 0 and {run["done_before"] for run in done["runs"].values()} == {4}
    assert "all is done" in command("compare", *asked, *lms, "--dry-run").out
    anew = json.loads(command("compare", *asked, *lms, "--dry-run", "--json", "--fresh").out)
    assert anew["all"]["calls"] == made["all"]["calls"]


def test_an_optimisation_is_reckoned_by_part_and_stage_within_its_planned_calls(
    command: Command, server: StubServer
) -> None:
    asked = ("sample/dev", "--cases", "1-6", "--folds", 2, "--optimizer", "random", "--candidates", 2, "--demos", 2)
    lms = (*at(server, "openai/plain", "score=openai/cheap"), *PRICE, "--out", "p.json")
    ran = command("optimize", *asked, *lms, "--dry-run")
    assert ran.code == 0 and not server.received and not Path("p.json").exists(), ran
    made = json.loads(command("optimize", *asked, *lms, "--dry-run", "--json").out)
    assert list(made["parts"]) == ["choice", "in and out of sample", "zero_shot", "handwritten"]
    assert f"At most {made['all']['calls']:,} LM calls" in ran.out
    assert made["parts"]["choice"]["score"]["lm"] == "openai/cheap"
    of_demos, bare = (made["parts"][part]["score"] for part in ("choice", "zero_shot"))
    assert of_demos["tokens_in"] / of_demos["calls"] > 2 * bare["tokens_in"] / bare["calls"], "demos are counted"
    assert command("optimize", *asked, *lms).code == 0
    real = sum(len(received.prompt) for received in server.received) / 4
    assert len(server.received) <= made["all"]["calls"]
    assert real <= 1.1 * made["all"]["tokens_in"] <= 2.5 * real


@pytest.mark.parametrize("optimizer", ["labeled", "random", "bootstrap", "gepa"])
@pytest.mark.parametrize("stages", [tuple(STAGES), ("score",), ("align",), ("reformulate", "generate")])
def test_the_estimate_covers_the_plan(optimizer: str, stages: tuple[StageName, ...]) -> None:
    options = Options(optimizer, stages, weights=parse_weights(None, stages), demos=2, candidates=2, folds="2")
    found = estimate_optimisation(options, FEW, make_lm("knn"), make_lm("knn", seed=1))
    plan = planned(options, FEW)
    counted = {part: {stage: its.calls for stage, its in stages.items()} for part, stages in found.items()}
    assert {part: dict(calls) for part, calls in plan.items()} == {p: c for p, c in counted.items() if p != "search"}
    assert sum(sum(calls.values()) for part, calls in counted.items() if part != "search") == most_calls(options, FEW)
    assert ("teacher" in counted, "search" in counted) == (optimizer == "bootstrap", optimizer == "gepa")
    assert all(its.tokens_in > 100 and its.cost == 0 for stages in found.values() for its in stages.values())


def test_what_cannot_be_optimised_or_asks_no_lm_is_told_by_a_dry_run_too(command: Command) -> None:
    fitted = command("optimize", "sample/dev", "--program", "extractive", "--out", "e.json", "--dry-run")
    assert (fitted.code, fitted.out) == (0, "Nothing would be sent: this program asks no LM.\n")
    few = command("optimize", "sample/dev", "--cases", "1", "--lm", "knn", "--out", "p.json", "--dry-run")
    assert few.code == 2 and "folds need at least 2 labelled cases" in the_line(few)
    none = command("compare", "sample/test", "extractive", "--dry-run")
    assert (none.code, none.out) == (0, "Nothing would be sent: this program asks no LM.\n")
