"""Settings as options, and the one cache of a user: a new cut asks for nothing that was asked before."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from archehr.program.lm import cache
from archehr.program.lm.cache import cache_folder
from archehr.program.prompts.program_file import load_program
from tests.fake_lm import asked, fake_lm
from tests.stub_server import StubServer

CASES = ("sample/test", "--cases", "101-103")


def usage(folder: str) -> dict[str, Any]:
    return json.loads(Path(folder, "run.json").read_text())["sessions"][-1]["usage"]


def settings(folder: str) -> dict[str, Any]:
    return json.loads(Path(folder, "run.json").read_text())["settings"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-stub")
    with StubServer() as running:
        yield running


def test_a_new_cut_is_another_run_and_asks_for_no_score_again(command: Callable[..., Any], server: StubServer) -> None:
    lm = ("--lm", "openai/stub", "--api-base", server.openai)
    assert command("run", *CASES, *lm, "--stages", "score").code == 0
    asked = len(server.received)
    ran = command("run", *CASES, *lm, "--stages", "score", "--cut", "2")
    assert ran.code == 0, ran.err
    assert len(server.received) == asked
    folder = "runs/sample-test-default-openai-stub-cut-2-stages-score"
    assert (usage(folder)["calls"], usage(folder)["cache_hits"]) == (0, asked)
    assert (settings(folder)["cut"], settings(folder)["relaxed_cut"]) == (2, 2)
    before = json.loads(Path("runs/sample-test-default-openai-stub-stages-score/submission_subtask_2.json").read_text())
    after = json.loads(Path(folder, "submission_subtask_2.json").read_text())
    assert [len(a["prediction"]) for a in after] != [len(b["prediction"]) for b in before]


def test_the_settings_are_part_of_what_a_run_is(command: Callable[..., Any]) -> None:
    ran = command("run", *CASES, "--out", "r", "--cut", "3", "--relaxed-cut", "2", "--answer-words", "20")
    assert ran.code == 0, ran.err
    assert {"cut": 3, "relaxed_cut": 2, "answer_words": 20}.items() <= settings("r").items()
    answers = json.loads(Path("r/submission_subtask_3.json").read_text())
    assert all(len(a["prediction"].split()) <= 20 for a in answers)
    again = command("run", *CASES, "--out", "r", "--cut", "4")
    assert again.code == 2 and "holds a run with another" in again.err and "settings" in again.err
    refused = command("run", *CASES, "--out", "s", "--cut", "6")
    assert (refused.code, refused.err.strip()) == (2, "archehr: settings cut: Input should be less than or equal to 5")


def test_ask_and_compare_take_them_and_the_prompt_says_the_limit(
    command: Callable[..., Any], server: StubServer
) -> None:
    lm = ("--lm", "openai/stub", "--api-base", server.openai)
    Path("note.txt").write_text("She was given furosemide for fluid in the lungs.\nShe went home on day 3.")
    asked = command(
        "ask", "note.txt", "Why was she given furosemide?", *lm, "--answer-words", "30", "--temperature", 0.7
    )
    assert asked.code == 0, asked.err
    assert {received.body["temperature"] for received in server.received} == {0.7}
    whole = json.dumps([received.body for received in server.received])
    assert "t most 30 words" in whole and "t most 75 words" not in whole
    assert command("compare", *CASES, "extractive", "--cut", "3").code == 0
    assert settings("runs/sample-test-compare-cut-3/runs/extractive")["cut"] == 3


def test_one_cache_for_all_folders_that_only_its_user_can_read(command: Callable[..., Any], server: StubServer) -> None:
    lm = ("--lm", "openai/stub", "--api-base", server.openai)
    for out in ("a", "b"):
        assert command("run", *CASES, *lm, "--out", out).code == 0
    assert usage("a")["cache_hits"] == 0 and usage("b")["calls"] == 0
    assert usage("b")["cache_hits"] == usage("a")["calls"] == len(server.received)
    folder = cache_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.rglob("*") if path.is_file())
    fresh = command("run", *CASES, *lm, "--out", "b", "--fresh")
    assert f"{len(server.received)} replies are from the cache" in fresh.err and "archehr cache --clear" in fresh.err


def test_the_cache_command_tells_and_empties_and_leaves_other_files(
    command: Callable[..., Any], server: StubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ARCHEHR_CACHE", str(tmp_path / "mine"))
    (tmp_path / "mine" / "123").mkdir(parents=True)
    (tmp_path / "mine" / "123" / "letter.txt").write_text("mine")
    lm = ("--lm", "openai/stub", "--api-base", server.openai)
    assert command("run", *CASES, *lm, "--out", "a").code == 0
    told = command("cache")
    assert told.out.startswith(f"{tmp_path / 'mine'}  ") and not told.out.endswith(" 0.0 MB\n")
    assert command("cache", "--clear").out == f"{tmp_path / 'mine'}  0.0 MB\n"
    assert (tmp_path / "mine" / "123" / "letter.txt").read_text() == "mine"
    assert command("run", *CASES, *lm, "--out", "b").code == 0
    assert usage("b")["cache_hits"] == 0


def test_a_full_cache_lets_the_oldest_replies_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, long = 20_000_000, "x" * 50_000
    monkeypatch.setattr(cache, "SIZE_LIMIT", limit)
    cache.configure_cache(tmp_path)
    lm, sizes = fake_lm(lambda request: f"{asked(request)} {long}", cache=True), []

    def sent_for(number: int) -> int:
        before = len(lm.requests)
        assert lm(f"question {number}") == [f"question {number} {long}"]
        return len(lm.requests) - before

    for number in range(500):
        assert sent_for(number) == 1
        if number % 20 == 0:
            sizes.append(sum(path.stat().st_size for path in tmp_path.rglob("*.val")))  # what replies take on disk
    dspy.cache.reset_memory_cache()
    assert (sent_for(499), sent_for(0), sent_for(0)) == (0, 1, 0), "the newest is there, the oldest is asked for anew"
    assert limit / 2 < max(sizes) <= limit


def test_a_limit_in_a_file_follows_the_settings_that_it_is_loaded_with() -> None:
    program = load_program("handwritten", {"answer_words": 40})
    program.use_settings(program.settings.changed({"answer_words": 75}))
    assert program.generate.predict.signature.equals(load_program("handwritten").generate.predict.signature)
