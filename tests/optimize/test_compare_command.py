"""`archehr compare` as a user meets it: it runs what is missing, once, and takes finished run folders as they are."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pandas as pd
import pytest

from archehr.data.dataset import Dataset, read_cases
from archehr.data.files import shipped_sample
from archehr.optimize.compare.runs import compare_to_folder, read_runs
from archehr.optimize.demos import labelled_demos
from archehr.program.lm import Budget, BudgetExceeded, in_process, metered_lm
from archehr.program.lm.engines.knn import KnnEngine
from archehr.program.prompts.program_file import load_program, predictor, save_program_file, to_file
from archehr.program.stages.render import render
from archehr.terminal.display import RunDisplay
from tests.conftest import Ran
from tests.finished_runs import TEST
from tests.stub_server import Received, StubServer, answer_stage

Command = Callable[..., Ran]
FEW = Dataset(tuple(TEST[:4]), "sample/test", chosen_from=tuple(TEST))


def knn_called(name: str, budget: Budget | None = None) -> dspy.LM:
    """The knn LM under another name."""
    return metered_lm(name, in_process(KnnEngine()), budget=budget)


def compared(out: Path, programs: list[str], lms: list[str], **more: Any) -> Any:
    options = {"make_lm": knn_called, "display": RunDisplay, "tell": lambda line: None}
    return compare_to_folder(FEW, programs, lms, more.pop("runs", []), out, **options | more)


@pytest.fixture(scope="module")
def optimised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program file with two labelled demos of sample/dev per stage, called p.json."""
    program = load_program("zero_shot")
    dev = read_cases("sample/dev")
    for stage in ("score", "align"):
        demos = list(labelled_demos(stage, dev).values())[:2]
        predictor(getattr(program, stage)).demos = [dspy.Example(d.fields) for d in demos]
    path = tmp_path_factory.mktemp("program") / "p.json"
    save_program_file(to_file(program, {"demo_case_ids": {"score": ["sample/dev 1", "sample/dev 2"]}}), path)
    return path


def test_programs_and_lms_make_a_grid_and_the_extractive_program_runs_once(optimised: Path, tmp_path: Path) -> None:
    found = compared(tmp_path / "c", ["zero_shot", str(optimised), "extractive"], ["x/one", "two"])
    assert [(r.label, r.against) for r in found.rows] == [
        ("zero_shot, x/one", None),
        ("zero_shot, two", None),
        ("p, x/one", "zero_shot, x/one"),
        ("p, two", "zero_shot, two"),
        ("extractive", "zero_shot, x/one"),
    ]
    names = sorted(p.name for p in (tmp_path / "c/runs").iterdir())
    digest = names[1].split("-")[1]
    assert names == ["extractive", f"p-{digest}-two", f"p-{digest}-x-one", "zero_shot-two", "zero_shot-x-one"]
    for row in found.rows[:4]:
        # Its own calls, not those of all runs together.
        assert 4 * len(FEW.cases) <= row.took.calls <= 6 * len(FEW.cases)
    assert found.rows[4].took.calls == 0
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "c").glob("comparison.*")} == {0o600}


def test_what_is_finished_is_not_asked_again(tmp_path: Path) -> None:
    asked: list[dspy.LM] = []

    def make_lm(name: str) -> dspy.LM:
        asked.append(knn_called(name))
        return asked[-1]

    first = compared(tmp_path / "c", ["zero_shot"], ["one"], make_lm=make_lm)
    page = (tmp_path / "c/comparison.html").read_text()
    second = compared(tmp_path / "c", ["zero_shot"], ["one"], make_lm=make_lm)
    assert [lm.ledger.totals()["calls"] > 0 for lm in asked] == [True, False]
    assert second.rows[0].took.calls == first.rows[0].took.calls
    assert (
        (tmp_path / "c/comparison.html").read_text().count('<details class="card case"')
        == len(FEW.cases)
        == page.count('<details class="card case"')
    )


def test_the_runs_share_one_budget_and_a_stopped_comparison_resumes(tmp_path: Path) -> None:
    limit = partial(knn_called, budget=Budget(max_calls=5 * len(FEW.cases) + 2))
    with pytest.raises(BudgetExceeded):
        compared(tmp_path / "c", ["zero_shot", "handwritten"], ["one"], make_lm=limit, workers=1)
    assert len(compared(tmp_path / "c", ["zero_shot", "handwritten"], ["one"]).rows) == 2


def test_run_folders_are_taken_as_they_are(command: Command, optimised: Path) -> None:
    shutil.copy(optimised, "mine.json")
    for name, program in (("a", "zero_shot"), ("b", "mine.json")):
        done = command("run", "sample/test", "--lm", "knn", "--program", program, "--cases", "101-106", "--out", name)
        assert done.code == 0
    before = {p: p.read_bytes() for p in Path().glob("[ab]/*") if p.is_file()}
    Path("mine.json").unlink()  # the run folder keeps the program as it was run
    ran = command("compare", "sample/test", "--runs", "a", "--runs", "b", "--cases", "101-106", "--json", "--out", "c")
    assert ran.code == 0, ran
    rows = json.loads(ran.out)["rows"]
    assert [(r["row"], r["against"], r["flags"]) for r in rows] == [("zero_shot", None, []), ("mine", "zero_shot", [])]
    assert {p: p.read_bytes() for p in Path().glob("[ab]/*") if p.is_file()} == before
    assert "only here" in Path("c/comparison.html").read_text()
    same = command("compare", "sample/test", "--runs", "a", "b", "--cases", "101-106", "--json", "--out", "c")
    assert same.code == 0 and json.loads(same.out)["rows"] == rows  # as a shell fills in `--runs *`
    Path("b/program.json").unlink()
    assert read_runs([Path("b")])[0].unknown == "the program mine.json cannot be read any more"


def test_one_view_is_set_beside_several_with_calls_and_tokens(command: Command, monkeypatch: Any) -> None:
    """Each view of the scripted server finds every other essential sentence."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def reply(received: Received) -> str:
        case = next(c for c in TEST if render(c.sentences) in received.ask or c.narrative in received.ask)
        found = [s.id for s in case.sentences if case.gold and s.id in case.gold.essential]
        if "`cited_answer`" in received.ask:
            return json.dumps({"cited_answer": [{"sentence": "So.", "evidence_ids": found[1::2] or found}]})
        if "`scores`" in received.ask:
            return json.dumps(
                {"scores": [{"id": s.id, "score": 5 if s.id in found[::2] else 1} for s in case.sentences]}
            )
        return answer_stage(received.ask)

    with StubServer(reply) as server:
        lm = ("--lm", "openai/m", "--api-base", server.openai, "--workers", 1)
        views = ("--views", "score", "--views", "score,answer_first")
        call = (
            "compare",
            "sample/test",
            "zero_shot",
            "extractive-dev",
            *lm,
            *views,
            "--cases",
            "101-108",
            "--out",
            "c",
        )
        ran = command(*call, "--json")
        assert ran.code == 0, ran.err
        one, both, extractive = json.loads(ran.out)["rows"]
        sent = len(server.received)
    assert [r["row"] for r in (one, both)] == ["zero_shot, score", "zero_shot, score+answer_first"]
    assert extractive["row"] == "extractive-dev" and extractive["calls"] == 0
    assert both["st2_verdict"] == "better" and both["st2_value"] == 100 > one["st2_value"]
    assert one["calls"] + both["calls"] - both["cache_hits"] == sent
    assert both["calls"] - one["calls"] >= 8  # a call a case more
    assert both["tokens_in"] == 100 * both["calls"] and both["tokens_out"] == 20 * both["calls"]
    shown = " ".join(command(*call).out.split())
    assert "calls tokens in tokens out" in shown and "answer_first (cut 5); agreement 0.5" in shown


def test_a_program_costs_what_it_costs_by_itself(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mixture that runs after one of its views has half its replies from the cache."""
    costs = ("calls", "tokens_in", "tokens_out", "cost")

    def rows(out: str, *views: str) -> tuple[list[dict[str, Any]], str]:
        monkeypatch.setenv("ARCHEHR_CACHE", f"cache-{out}")
        lm = ("--lm", "openai/m", "--api-base", server.openai, "--price-in", 1, "--price-out", 10, "--workers", 1)
        asked = [part for each in views for part in ("--views", each)]
        call = ("compare", "sample/test", "zero_shot", *lm, *asked, "--cases", "101-103", "--out", out)
        ran = command(*call, "--json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)["rows"], " ".join(command(*call).out.split())

    with StubServer() as server:
        (mixture,), told = rows("alone", "score,answer_first")
        assert mixture["cache_hits"] == 0 and mixture["spent"] == mixture["cost"] and "really sent" not in told
        sent = len(server.received)
        (one, both), told = rows("together", "score", "score,answer_first")
        assert {name: both[name] for name in costs} == pytest.approx({name: mixture[name] for name in costs})
        assert (
            both["cache_hits"] > 0 and one["calls"] + both["calls"] - both["cache_hits"] == len(server.received) - sent
        )
        left = both["calls"] - both["cache_hits"]
        assert both["spent"] == pytest.approx(left * (100 * 1 + 20 * 10) / 1e6)
        assert f"zero_shot, score+answer_first: {left} of {both['calls']} calls, ${both['spent']:.4f}" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("zero_shot",), "zero_shot asks an LM; name one with --lm"),
        ((), "nothing to compare; name programs, or run folders with --runs"),
        (("--runs", "nowhere"), "nowhere: not a run folder"),
        (("extractive", "--baseline", "handwritten"), "--baseline handwritten: it is none of what is compared"),
        (("extractive", "--question", "mine"), "--question mine: it is own or given"),
        (("no.json", "--lm", "knn"), "no.json: no such program"),
        (("zero_shot", "--lm", "knn", "--views", "none"), "--views none: there are score, answer_first"),
    ],
)
def test_what_cannot_be_compared_is_one_line(command: Command, arguments: tuple[str, ...], told: str) -> None:
    ran = command("compare", "sample/test", *arguments, "--cases", "101", "--out", "c")
    assert ran.code == 2 and ran.err.splitlines()[-1].startswith(f"archehr: {told}"), ran


def test_a_run_of_another_program_version_is_run_anew(optimised: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    shutil.copy(optimised, path)
    compared(tmp_path / "c", [str(path)], ["one"])
    changed = json.loads(path.read_text())
    changed["settings"]["cut"] = 4
    path.write_text(json.dumps(changed))
    assert compared(tmp_path / "c", [str(path)], ["one"]).rows[0].run.manifest.settings.cut == 4
    assert len(list((tmp_path / "c/runs").iterdir())) == 2


def test_what_dspy_saved_is_compared_and_each_case_has_its_score(command: Command) -> None:
    load_program("handwritten", {"cut": 3, "relaxed_cut": 3}).save("dspy.json")
    ran = command(
        "compare", "sample/test", "dspy.json", "extractive", "--lm", "knn", "--cases", "101-106", "--out", "c"
    )
    assert ran.code == 0, ran
    table = pd.read_csv("c/comparison.csv").set_index("row")
    for folder in Path("c/runs").iterdir():
        scores = json.loads((folder / "scores.json").read_text())["subtask_2"]["case_scores"]
        row = table.loc[folder.name.partition("-")[0]]
        assert scores.keys() == set(map(str, range(101, 107)))
        for case, its in scores.items():
            assert row[f"st2_case_{case}"] == pytest.approx(its["strict_micro_f1"])
    (compiled,) = Path("c/runs").glob("dspy-*")
    assert json.loads((compiled / "run.json").read_text())["settings"]["cut"] == 3


def test_a_case_labelled_in_part_is_left_out_of_its_subtask_and_named(command: Command) -> None:
    shutil.copytree(shipped_sample("test"), "part")
    key = json.loads(Path("part/archehr-qa_key.json").read_text())
    del key[1]["clinician_answer_sentences"][0]["citations"]
    Path("part/archehr-qa_key.json").write_text(json.dumps(key))
    ran = command("compare", "part", "extractive", "--cases", "101-103", "--out", "c", "--json")
    assert ran.code == 0, ran
    (row,) = json.loads(ran.out)["rows"]
    assert row["case_scores"]["subtask_4"].keys() == {"101", "103"} and len(row["case_scores"]["subtask_2"]) == 3
    assert "ST4 leaves out case 102, whose answer sentences are labelled in part" in json.loads(ran.out)["notes"]
