"""The command against servers in trouble: what stops a run, what is answered again, and that it is told in a line."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archehr.data.dataset import read_cases
from archehr.program.lm import make_lm
from archehr.program.prompts.program_file import load_program
from archehr.program.run.run import run_cases
from tests.conftest import Ran
from tests.stub_server import Received, Reply, StubServer, answer_stage

Command = Callable[..., Ran]
SIX = "101-106"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "stub-key-1")


def after(calls: int, trouble: Reply, served: list[int]) -> Callable[[Received], Reply | str]:
    """A server that answers `calls` calls and then is in `trouble`; `served` grows by one a call."""

    def reply(received: Received) -> Reply | str:
        served.append(1)
        return trouble if len(served) > calls else answer_stage(received.ask)

    return reply


def run(command: Command, server: StubServer, *more: object, cases: str = SIX) -> Ran:
    lm = ("--lm", "openai/stub", "--api-base", server.openai, "--retries", 0)
    return command("run", "sample/test", *lm, "--cases", cases, "--out", "r", *more)


def the_line(ran: Ran) -> str:
    (line,) = [line for line in ran.err.splitlines() if line.startswith("archehr: ")]
    assert "Traceback" not in ran.err
    return line


def journal() -> dict[str, dict[str, Any]]:
    records = map(json.loads, Path("r/predictions.jsonl").read_text().splitlines())
    return {record["case_id"]: record for record in records}


WILL_NOT_PASS = [
    (429, "Rate limit reached for stub on requests per day (RPD): Limit 200, Used 200.", "quota"),
    (402, "Insufficient Balance", "billing"),
    (401, "this key was revoked", "API key"),
    (404, "The model stub was shut down", "model's name"),
]


@pytest.mark.parametrize(("status", "words", "remedy"), WILL_NOT_PASS)
def test_what_will_not_pass_stops_the_run_and_the_same_command_answers_the_rest(
    status: int, words: str, remedy: str, command: Command
) -> None:
    served: list[int] = []
    with StubServer(after(11, Reply(status=status, message=words), served)) as server:
        ran = run(command, server, "--workers", 1)
        assert ran.code == 130 and len(served) == 12, ran
        line = the_line(ran)
        assert words in line and server.openai in line and remedy in line
        assert "2 of 6 cases are done and kept; the same command answers the others" in line
        assert not list(Path("r").glob("submission*")) and len(journal()) == 2
        server.reply = lambda received: answer_stage(received.ask)
        again = run(command, server)
    assert again.code == 0 and "6 answered, 2 of them before" in again.out
    assert not any(n["kind"] == "lm_failed" for record in journal().values() for n in record["notices"])


def test_a_key_that_never_worked_is_a_fault_of_the_call(command: Command) -> None:
    with StubServer(lambda _: Reply(status=401, message="no such key")) as server:
        ran = run(command, server)
    assert ran.code == 2 and "0 of 6 cases are done" in the_line(ran)


def test_a_server_that_was_never_there_is_told_soon_with_its_address(command: Command) -> None:
    with StubServer() as server:
        pass  # closed: the connection is refused
    began = time.monotonic()
    ran = run(command, server, cases="101-120")
    assert ran.code == 130 and time.monotonic() - began < 10
    line = the_line(ran)
    assert "the LM is gone: no reply in 3 cases in a row" in line and server.openai in line
    assert "0 of 20 cases are done" in line and not list(Path("r").glob("submission*"))


def test_a_server_that_dies_midway_stops_the_run_and_is_asked_again_for_the_rest(command: Command) -> None:
    served: list[int] = []
    with StubServer(after(25, Reply(status=503, message="shutting down"), served)) as server:
        ran = run(command, server, "--workers", 2, cases="101-120")
        assert ran.code == 130, ran
        done = sum(not record["unreached"] for record in journal().values())
        assert 2 <= done <= 5 and f"{done} of 20 cases are done and kept" in the_line(ran)
        server.reply = lambda received: answer_stage(received.ask)
        again = run(command, server, cases="101-120")
    assert again.code == 0 and not any(record["unreached"] for record in journal().values())
    assert command("validate", "r", "--data", "sample/test").code == 0


def test_a_case_without_the_lm_is_marked_everywhere_and_answered_again(command: Command) -> None:
    case = read_cases("sample/test")[1]

    def stumbling(received: Received) -> Reply | str:
        down = case.narrative in received.ask and "`scores`" in received.ask
        return Reply(status=500, message="out of memory") if down else answer_stage(received.ask)

    with StubServer(stumbling) as server:
        ran = run(command, server, cases="101-103")
        assert ran.code == 1
        assert "WITHOUT LM     102 (score); it could not be reached" in ran.out
        assert ran.err.splitlines()[-1] == (
            "answered without the LM, which could not be reached: 102 (score); the same command answers them again"
        )
        assert journal()["102"]["unreached"] == ["score"] and journal()["101"]["unreached"] == []
        assert json.loads(Path("r/run.json").read_text())["unreached"] == ["102"]
        assert Path("r/report.html").read_text().count("no LM was reached for score") == 1
        kept = run(command, server, "--keep-fallbacks", cases="101-103")
        assert kept.code == 1 and "all 3 cases were already done" in kept.out
        server.reply = lambda received: answer_stage(received.ask)
        server.received.clear()
        healed = run(command, server, cases="101-103")
        assert healed.code == 0 and "WITHOUT LM" not in healed.out
        assert 0 < len(server.received) <= 5, "only what was not answered"
    assert "no LM was reached for" not in Path("r/report.html").read_text()
    assert json.loads(Path("r/run.json").read_text())["unreached"] == []


def test_a_refusal_is_no_outage_and_the_servers_words_are_shown(command: Command) -> None:
    words = "the request holds a field that this gateway does not route"
    with StubServer(lambda _: Reply(status=400, message=words)) as server:
        ran = run(command, server, cases="101-104")
        assert ran.code == 1, ran
        assert f"no LM call succeeded (LMInvalidRequestError (HTTP 400)): {words} (at {server.openai})" in ran.err
        assert all(record["unreached"] == [] for record in journal().values())
        again = run(command, server, cases="101-104")
    assert "all 4 cases were already done" in again.out


def test_words_that_quote_the_note_are_not_shown(command: Command) -> None:
    with StubServer(lambda r: Reply(status=400, message=f"cannot read: {r.ask[30:200]}")) as server:
        ran = run(command, server, cases="101")
    note = read_cases("sample/test")[0]
    assert "withheld because it quotes the prompt" in ran.err
    assert note.narrative[:40] not in ran.err + ran.out + Path("r/predictions.jsonl").read_text()


def test_ask_tells_of_a_server_that_is_gone(command: Command) -> None:
    Path("note.txt").write_text("He was given furosemide for oedema.")
    with StubServer() as server:
        pass
    ran = command("ask", "note.txt", "Why?", "--lm", "openai/m", "--api-base", server.openai, "--retries", 0)
    assert ran.code == 1 and "[1]" in ran.out
    assert "no LM call succeeded (LMTransportError)" in ran.err and server.openai in ran.err


def test_ask_keeps_nothing_and_does_not_say_so(command: Command) -> None:
    Path("note.txt").write_text("He was given furosemide for oedema.")
    with StubServer(lambda _: Reply(status=401, message="no such key")) as server:
        lm = ("--lm", "openai/m", "--api-base", server.openai)
        ran = command("ask", "note.txt", "Why furosemide?", *lm)
        assert ran.code == 2 and the_line(ran).endswith("check the API key in the environment; nothing is kept")
        server.reply = lambda received: answer_stage(received.ask)
        spent = command("ask", "note.txt", "Why furosemide?", *lm, "--max-calls", 1)
        assert spent.code == 130 and the_line(spent) == "archehr: --max-calls 1 is reached; nothing is kept"


def test_another_model_stops_the_run_unless_accepted(command: Command) -> None:
    with StubServer(lambda r: Reply(answer_stage(r.ask), model="totally-different")) as server:
        ran = run(command, server)
        assert ran.code == 2 and len(server.received) <= 8
        assert "asked for stub, answered by totally-different" in the_line(ran)
        assert run(command, server, "--accept-model-version").code == 0
    assert json.loads(Path("r/run.json").read_text())["sessions"][-1]["models"] == {"totally-different": 30}


def test_what_a_server_refuses_is_told_once_in_a_run(command: Command) -> None:
    def picky(received: Received) -> Reply | str:
        if (received.body.get("response_format") or {}).get("type") == "json_schema":
            return Reply(status=400, message="JSON schema conversion failed")
        if "temperature" in received.body:
            return Reply(status=400, message="'temperature' does not support 0.0 with this model")
        return answer_stage(received.ask)

    with StubServer(picky) as server:
        ran = run(command, server)
    assert ran.code == 0 and "lm_failed" not in ran.out
    told = [
        "openai/stub refuses temperature; it is left out",
        "openai/stub refuses the JSON schema; JSON mode is asked for instead",
    ]
    assert sorted(line for line in ran.err.splitlines() if "refuses" in line) == told
    assert sorted(json.loads(Path("r/run.json").read_text())["sessions"][0]["told"]) == told


def test_a_context_cut_in_silence_stops_the_run_at_once(command: Command) -> None:
    Path("note.txt").write_text(
        "\n".join(f"On day {i} he was given {i} mg of furosemide for oedema." for i in range(900))
    )
    with StubServer(lambda r: Reply(answer_stage(r.ask), tokens_in=min(len(r.prompt) // 4, 2048))) as server:
        ran = command("ask", "note.txt", "Why furosemide?", "--lm", "openai/m", "--api-base", server.openai)
    assert ran.code == 2 and "read 2048 of about" in the_line(ran) and "num_ctx" in the_line(ran)


def stages_by_model(server: StubServer) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for received in server.received:
        stage = next(f for f in ("question", "scores", "answer_sentences", "links") if f"`{f}`" in received.ask)
        found.setdefault(received.body["model"], set()).add(stage)
    return found


def test_stages_may_ask_models_of_their_own(command: Command) -> None:
    with StubServer() as server:
        ran = run(command, server, "--lm", "score=openai/cheap", "--lm", "generate=openai/strong", cases="101-102")
        assert ran.code == 0, ran
        assert stages_by_model(server) == {
            "stub": {"question", "links"}, "cheap": {"scores"}, "strong": {"answer_sentences"},
        }  # fmt: skip
        assert "with openai/stub (score: openai/cheap, generate: openai/strong)" in ran.out
        manifest = json.loads(Path("r/run.json").read_text())
        assert {stage: lm["model"] for stage, lm in manifest["lm"]["stages"].items()} == {
            "score": "openai/cheap", "generate": "openai/strong",
        }  # fmt: skip
        by_lm = manifest["sessions"][0]["by_lm"]
        assert {name: used["calls"] for name, used in by_lm.items()} == {
            "openai/stub": 6, "openai/cheap": 2, "openai/strong": 2,
        }  # fmt: skip
        assert sum(used["calls"] for used in by_lm.values()) == manifest["usage"]["calls"]
        assert "score: openai/cheap" in Path("r/report.html").read_text()
        assert "stub-key" not in Path("r/program.json").read_text() + Path("r/run.json").read_text()
        other = run(command, server, "--lm", "score=openai/other", cases="101-102")
        assert other.code == 2 and "another lm (stages)" in the_line(other)


def test_ask_takes_a_model_a_stage_too(command: Command) -> None:
    Path("note.txt").write_text("He was given furosemide for oedema.")
    with StubServer() as server:
        lm = ("--lm", "openai/plain", "--lm", "score=openai/cheap", "--api-base", server.openai)
        assert command("ask", "note.txt", "Why was I given furosemide?", *lm).code == 0
        assert stages_by_model(server) == {"plain": {"question", "answer_sentences", "links"}, "cheap": {"scores"}}


def test_two_models_from_python(tmp_path: Path) -> None:
    cases = read_cases("sample/test")[:2]
    with StubServer() as server:
        plain, cheap = (make_lm(f"openai/{name}", api_base=server.openai) for name in ("plain", "cheap"))
        program = load_program("handwritten")
        result = run_cases(cases, program, {"": plain, "score": cheap})
        assert stages_by_model(server) == {"plain": {"question", "answer_sentences", "links"}, "cheap": {"scores"}}
        assert program.score.predict.lm is None, "the caller's program is left as it is"
        program.score.set_lm(cheap)  # DSPy's own way
        program.set_lm(cheap)
        server.received.clear()
        alone = run_cases(read_cases("sample/test")[2:3], program)
        assert alone.manifest.lm is not None and alone.manifest.lm["model"] == "openai/cheap"
        assert set(stages_by_model(server)) == {"cheap"} and alone.manifest.usage.calls == 5
    assert result.manifest.lm is not None and result.manifest.lm["stages"]["score"]["model"] == "openai/cheap"


def test_a_program_is_saved_with_its_lm_but_not_with_the_key(tmp_path: Path) -> None:
    program = load_program("handwritten")
    with StubServer() as server:
        program.set_lm(make_lm("openai/m", api_base=server.openai, api_key="sk-secret-1", seed=5))
        program.save(str(tmp_path / "p.json"))
        again = load_program("zero_shot")
        again.load(str(tmp_path / "p.json"), allow_unsafe_lm_state=True)
        run_cases(read_cases("sample/test")[:1], again)
    assert "sk-secret-1" not in (tmp_path / "p.json").read_text()
    assert {r.body["seed"] for r in server.received} == {5}


@pytest.mark.parametrize(
    ("lms", "told"),
    [
        (["openai/a", "openai/b"], "openai/a and openai/b are both for all stages"),
        (["openai/a", "score=openai/b", "score=openai/c"], "openai/b and openai/c are both for stage score"),
        (["openai/a", "scor=openai/b"], "no stage scor; the stages are reformulate, score, generate, align"),
        (["score=openai/b"], "no LM for reformulate, generate, align"),
    ],
)
def test_lms_that_do_not_fit_are_one_line(lms: list[str], told: str, command: Command) -> None:
    named = [part for lm in lms for part in ("--lm", lm)]
    ran = command("run", "sample/test", *named, "--api-base", "http://127.0.0.1:9/v1", "--out", "r")
    assert ran.code == 2 and told in the_line(ran)


def test_the_lm_of_the_environment_is_that_of_the_other_stages(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StubServer() as server:
        monkeypatch.setenv("ARCHEHR_LM", "openai/plain")
        lm = ("--lm", "score=openai/cheap", "--api-base", server.openai)
        assert command("run", "sample/test", *lm, "--cases", "101", "--out", "r").code == 0
        assert set(stages_by_model(server)) == {"plain", "cheap"}


def test_a_program_without_an_lm_names_none(command: Command) -> None:
    ran = command("run", "sample/test", "--program", "extractive", "--lm", "knn", "--cases", "101", "--out", "r")
    assert ran.code == 0 and "extractive, no LM" in ran.out
