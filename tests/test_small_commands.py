"""Small things that a user stumbles over: which data, which folder, which LM was meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archehr.data.files import shipped_sample
from archehr.metrics import score
from tests.stub_server import StubServer


def test_score_takes_a_run_folder_and_scores_what_it_was_run_on(command: Callable[..., Any]) -> None:
    assert command("run", "sample/test", "--cases", "101-103", "--out", "r").code == 0
    scored = command("score", "r")
    assert scored.code == 0, scored.err
    assert [line for line in scored.out.splitlines() if line.startswith("subtask")] == [
        f"subtask {n}" for n in (1, 2, 3, 4)
    ]
    stored = json.loads(Path("r/scores.json").read_text())
    found = json.loads(command("score", "r", "--json").out)
    assert {n: s["leaderboard"] for n, s in found.items()} == {n: stored[n]["leaderboard"] for n in found}
    one = command("score", "r", "--subtask", "2", "--cases", "101", "--data", "sample/test")
    assert one.code == 0 and one.out.endswith("\n1 cases\n")
    assert command("score", "r/submission_subtask_2.json", "--data", "sample/test", "--cases", "101-103").code == 0


def test_score_reads_the_data_of_a_run_once(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("run", "sample/dev", "--cases", "1-3", "--out", "r").code == 0
    read: list[Any] = []

    def reading(name: str) -> Callable[..., Any]:
        real = getattr(score, name)
        return lambda source, *given, **named: read.append(source) or real(source, *given, **named)

    for name in ("read_dataset", "read_key"):
        monkeypatch.setattr(score, name, reading(name))
    scored = command("score", "r")
    assert scored.code == 0 and read == ["sample/dev"]
    assert scored.err.count("citations stored as strings or numbers were read as lists of ids") == 1
    key = shipped_sample("dev") / "archehr-qa_key.json"
    assert command("score", "r", "--key", key).code == 0 and read == ["sample/dev", key]


def test_score_says_what_the_data_cannot_score(command: Callable[..., Any], tmp_path: Path) -> None:
    assert command("run", "sample/test", "--cases", "101", "--out", "r").code == 0
    bare = tmp_path / "bare.xml"
    bare.write_text('<annotations><case id="101"><patient_narrative>n</patient_narrative></case></annotations>')
    none = command("score", "r", "--data", bare)
    assert none.code == 2 and "bare.xml: holds no reference for any subtask; pass its --key" in none.err
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "did its run finish?" in command("score", empty, "--data", "sample/test").err
    refused = command("score", "r", "--subtask", "2", "--data", bare)
    assert refused.code == 2 and "no case has a reference for subtask 2" in refused.err


def test_an_lm_that_is_not_asked_is_not_named(command: Callable[..., Any]) -> None:
    ran = command("run", "sample/test", "--cases", "101", "--program", "extractive", "--lm", "knn")
    assert ran.code == 0, ran.err
    assert "the program extractive asks no LM: --lm is not used" in ran.err
    assert "extractive, no LM" in ran.out and "knn" not in ran.out
    assert Path("runs/sample-test-extractive/run.json").exists()


def test_show_says_where_to_look_for_a_case(command: Callable[..., Any]) -> None:
    ran = command("show", "zero_shot", "--case", "104")
    assert ran.code == 2
    assert (
        ran.err.splitlines()[-1].startswith("archehr: --case 104: sample/dev has 1, 2")
        and "name the data that holds it with --data" in ran.err
    )
    assert command("show", "zero_shot", "--case", "104", "--data", "sample/test").code == 0


def test_the_help_tells_the_programs_apart(command: Callable[..., Any]) -> None:
    told = " ".join(command("run", "--help").out.split())
    said = "default (instructions, with three example questions for stage 1), zero_shot (the instructions alone)"
    assert said in told


SHAPING = [
    ("--program", "zero_shot"), ("--preset", "seed"), ("--no-abstain",), ("--question", "given"),
    ("--views", "score,answer_first*2"), ("--verify", "flag"), ("--stages", "score"), ("--cut", "3"),
    ("--temperature", "0"), ("--seed", "0"), ("--seed", "1"), ("--max-tokens", "900"), ("--schema", "none"),
    ("--reasoning", "low"), ("--lm", "score=openai/b"),
]  # fmt: skip


def test_two_runs_that_differ_in_what_shapes_answers_have_a_folder_each(
    command: Callable[..., Any], monkeypatch: Any
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-stub")
    asked = ("run", "sample/dev", "--cases", "1")
    with StubServer() as server:
        lm = ("--lm", "openai/a", "--api-base", server.openai)
        for number, option in enumerate(((), *SHAPING), 1):
            assert command(*asked, *lm, *option).code == 0, option
            assert len(list(Path("runs").iterdir())) == number, option
        again = command(*asked, *lm, "--no-abstain", "--workers", 2, "--retries", 1)
        assert "all 1 cases were already done" in again.out
    assert {"sample-dev-default-openai-a", "sample-dev-default-openai-a-no-abstain"} <= {
        folder.name for folder in Path("runs").iterdir()
    }


def test_comparisons_of_other_settings_have_a_folder_each(command: Callable[..., Any]) -> None:
    for option in ((), ("--question", "given"), ("--cut", "3"), ("--seed", "1")):
        compared = command("compare", "sample/dev", "extractive", "--cases", "1-2", *option)
        assert compared.code == 0, compared
    assert len(list(Path("runs").iterdir())) == 4
