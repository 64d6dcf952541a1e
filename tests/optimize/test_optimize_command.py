"""The command `archehr optimize`: what it writes, refuses and tells before it spends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archehr.data.case import Sentence
from archehr.data.dataset import Dataset, read_cases
from archehr.data.files import shipped_sample
from archehr.optimize import calls
from archehr.optimize.calls import expected_calls, most_calls
from archehr.optimize.optimizers.optimizer import Options
from archehr.optimize.scores import parse_weights
from archehr.optimize.session import optimize_to_file
from archehr.program.stages.registry import STAGES
from archehr.program.types import StageName
from tests.scripted_stages import gold_lm

FEW = read_cases("sample/dev")[:6]


def test_optimise_run_show_and_publish_offline(command: Callable[..., Any]) -> None:
    small = ("--cases", "1-6", "--folds", "2", "--stage", "align", "--out", "p.json", "--publish", "public.json")
    made = command("optimize", "sample/dev", "--lm", "knn", *small)
    assert made.code == 0, made.err
    assert "out_of_sample" in made.out
    assert "p.json may hold note text" in made.err
    most, used = (int(re.search(said, made.err)[1]) for said in (r"at most (\d+) LM calls", r"LM use: (\d+) calls"))  # type: ignore[index]
    assert 0 < used <= most
    shown = command("show", "p.json", "--stage", "align").out
    assert re.search(r"--- demo 1 from sample/dev \d+ \(labelled\), user ---", shown)
    assert "optimizer: labeled" in shown and "settings: cut 5, relaxed_cut 4" in shown
    cut = json.loads(command("show", "p.json", "--json").out)["settings"]["cut"]
    assert cut == json.loads(Path("p.json").read_text())["settings"]["cut"]
    asked = ("run", "sample/test", "--cases", "101,102", "--lm", "knn", "--stages", "align")
    assert command(*asked, "--program", "p.json", "--out", "own").code == 0
    half = command("run", "sample/dev", "--cases", "1,9", "--lm", "knn", "--program", "p.json", "--out", "half")
    assert "IN SAMPLE" in half.out  # fitted on six of its cases
    bare = command(*asked, "--program", "public.json", "--out", "none")
    assert bare.code == 0 and "run without its 4 demos of the data, which --demos-from DATA brings back" in bare.err
    filled = command(*asked, "--program", "public.json", "--demos-from", "sample/dev", "--out", "filled")
    assert filled.code == 0, filled.err
    own, same = (Path(name, "submission_subtask_4.json").read_text() for name in ("own", "filled"))
    assert own == same


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--optimizer", "best"), "--optimizer best: there are labeled"),
        (("--stage", "answer"), "--stage answer: no stage answer; the stages are reformulate"),
        (("--folds", "1"), "--folds 1"),
        (("--weights", "2"), "write SUBTASK=WEIGHT"),
        (("--cases", "101"), "no case 101"),
        ((), "name one with --lm"),
    ],
)
def test_what_cannot_be_optimised_is_one_line(command: Callable[..., Any], args: tuple[str, ...], said: str) -> None:
    lm = ("--lm", "knn") if args else ()
    ran = command("optimize", "sample/dev", "--out", "p.json", *lm, *args)
    assert ran.code == 2
    assert said in ran.err.splitlines()[-1]
    assert not Path("p.json").exists()


@pytest.mark.parametrize("option", ["--out", "--publish"])
def test_nothing_else_is_overwritten(command: Callable[..., Any], option: str) -> None:
    """Said before the first call: what else the user has, a folder, or the full program's own file."""
    Path("folder").mkdir()
    Path("mine.md").write_text("mine")
    Path("p.json").write_text('{"scores": []}')
    for name, said in (("folder", "is a folder"), ("mine.md", "no program file"), ("p.json", "no program file")):
        to = {"--out": "q.json", option: name}
        ran = command("optimize", "sample/dev", "--lm", "knn", *(part for pair in to.items() for part in pair))
        assert (ran.code, said in ran.err.splitlines()[-1], option in ran.err) == (2, True, True)
        assert "fold 1" not in ran.err
    assert Path("mine.md").read_text() == "mine"
    both = command("optimize", "sample/dev", "--lm", "knn", "--out", "q.json", "--publish", "./q.json")
    assert (both.code, "--publish q.json: --out writes" in both.err) == (2, True)


@pytest.mark.parametrize("optimizer", ["labeled", "random", "bootstrap"])
@pytest.mark.parametrize("stages", [STAGES, ("score",), ("align",), ("reformulate", "generate")])
def test_the_calls_are_told_before_the_first_and_are_not_exceeded(
    optimizer: str, stages: tuple[StageName, ...], tmp_path: Path
) -> None:
    lm = gold_lm(FEW, cache=True)
    told: list[tuple[int, str]] = []
    weights = parse_weights(None, stages)
    options = Options(optimizer, stages, weights=weights, demos=2, candidates=2, folds="2")
    optimize_to_file(
        options,
        Dataset(tuple(FEW), "sample/dev"),
        lm,
        lm,
        tmp_path / "p.json",
        workers=2,
        tell=lambda line: told.append((len(lm.requests), line)),
    )
    (before, line), *_ = told
    bound = most_calls(options, FEW)
    assert before == 0 and line.startswith(f"at most {bound} LM calls;")
    assert 0.45 * bound <= len(lm.requests) <= bound  # the rest are prompts that two programs share


def test_while_it_runs_it_tells_which_of_how_many_calls_it_is_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "EVERY", 0.0)
    lm, lines = gold_lm(FEW, cache=True), []
    options = Options("labeled", ("score",), demos=1, folds="2", weights=parse_weights(None, ("score",)))
    optimize_to_file(options, Dataset(tuple(FEW), "sample/dev"), lm, lm, tmp_path / "p.json", tell=lines.append)
    bound = most_calls(options, FEW)
    at = [int(found[1]) for line in lines if (found := re.match(rf"  call (\d+) of at most {bound}\b", line))]
    assert at == sorted(at) and len(at) >= len(lm.requests) and at[-1] == len(lm.requests)
    monkeypatch.setattr(calls, "EVERY", 60.0)
    lines.clear()
    optimize_to_file(options, Dataset(tuple(FEW), "sample/dev"), lm, lm, tmp_path / "q.json", tell=lines.append)
    assert not [line for line in lines if line.startswith("  call")]


def test_a_search_of_unknown_length_is_told_as_such() -> None:
    assert re.match(r"at most \d+ LM calls and about \d+ in gepa's own search;", expected_calls(Options("gepa"), FEW))
    long = replace(FEW[0], sentences=tuple(Sentence(str(i), "word " * 400) for i in range(40)))
    options = Options("labeled", ("align",), folds="2")
    assert most_calls(options, [long, *FEW[1:]]) > most_calls(options, FEW)  # a long note is read in parts


def test_what_is_labelled_in_part_is_optimised_in_part(command: Callable[..., Any]) -> None:
    """A score needs labels alone, a demo the clinician's question too; what each case lacks is told."""
    sample = shipped_sample("dev")
    Path("part").mkdir()
    key = json.loads((sample / "archehr-qa_key.json").read_text())
    for case in key:
        if case["case_id"] in ("3", "4"):
            case["answers"] = []
    Path("part/archehr-qa_key.json").write_text(json.dumps(key))
    text = (sample / "archehr-qa.xml").read_text()
    Path("part/archehr-qa.xml").write_text(
        re.sub(r"<clinician_question>.*?</clinician_question>", "", text, count=2, flags=re.DOTALL)
    )
    ran = command("optimize", "part", "--cases", "1-6", "--lm", "knn", "--folds", "2", "--stage", "score,align",
                  "--out", "p.json")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "score: case 1, 2 scored but no demo, without a clinician_question" in ran.err
    assert "case 3, 4 left out, without" in ran.err
    assert [line.split()[0] for line in ran.out.splitlines()[1:3]] == ["2", "4"]
    made = json.loads(Path("p.json").read_text())
    assert {demo.split()[1] for demo in made["provenance"]["demo_case_ids"]["score"]} == {"5", "6"}
    bare = re.sub(r"<clinician_question>.*?</clinician_question>", "", text, flags=re.DOTALL)
    Path("part/archehr-qa.xml").write_text(bare)
    none = command("optimize", "part", "--cases", "1-2", "--lm", "knn", "--folds", "2", "--stage", "reformulate",
                   "--out", "q.json")  # fmt: skip
    assert none.code == 2 and "reformulate needs a clinician_question" in none.err.splitlines()[-1]
