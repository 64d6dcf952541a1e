"""The command as a user meets it: results on stdout, notices on stderr, one line and exit 2 for bad input."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archehr.data.dataset import read_cases
from tests.conftest import Ran
from tests.stub_server import Received, Reply, StubServer, answer_stage

Command = Callable[..., Ran]


def one_line(ran: Ran) -> str:
    assert ran.code == 2, ran
    lines = [line for line in ran.err.splitlines() if line.startswith("archehr: ")]
    assert len(lines) == 1 and "Traceback" not in ran.err
    return lines[0]


def test_run_without_an_lm_writes_four_acceptable_submissions_and_resumes(command: Command) -> None:
    first = command("run", "sample/test", "--out", "r")
    assert first.code == 0 and "20 answered" in first.out
    checked = command("validate", "r", "--data", "sample/test")
    assert checked.code == 0 and checked.out.count(": acceptable") == 4
    before = {p.name: p.read_bytes() for p in Path("r").iterdir() if p.name not in ("run.json", "lock")}
    second = command("run", "sample/test", "--out", "r")
    assert second.code == 0 and "all 20 cases were already done" in second.out
    assert {p.name: p.read_bytes() for p in Path("r").iterdir() if p.name not in ("run.json", "lock")} == before


def test_run_folders_are_the_users_alone_and_hold_no_note_text_in_run_json(command: Command) -> None:
    command("run", "sample/test", "--out", "r", "--cases", "101-103")
    assert stat.S_IMODE(Path("r").stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in Path("r").iterdir()} == {0o600}
    manifest = Path("r/run.json").read_text()
    for case in read_cases("sample/test")[:3]:
        assert not any(s.text in manifest for s in case.sentences)


def test_scores_of_a_run_are_those_of_the_score_command(command: Command) -> None:
    command("run", "sample/test", "--out", "r")
    scores = json.loads(Path("r/scores.json").read_text())
    for subtask in (1, 2, 3, 4):
        scored = command(
            "score", f"r/submission_subtask_{subtask}.json", "--subtask", subtask, "--data", "sample/test", "--json"
        )
        assert json.loads(scored.out)["leaderboard"] == scores[f"subtask_{subtask}"]["leaderboard"]


def test_narratives_alone_are_answered_for_stage_one_and_one_line_says_why(command: Command, tmp_path: Path) -> None:
    cases = "".join(f'<case id="{i}"><patient_narrative>Why {i}?</patient_narrative></case>' for i in range(3))
    (tmp_path / "st1.xml").write_text(f"<annotations>{cases}</annotations>")
    ran = command("run", "st1.xml", "--out", "r")
    assert ran.code == 0
    assert [line for line in ran.err.splitlines() if "stages 2-4" in line] == [
        "stages 2-4 (score, generate, align) did not run: no case has note sentences in the data"
    ]
    assert [p.name for p in Path("r").glob("submission*")] == ["submission_subtask_1.json"]
    assert len(json.loads(Path("r/submission_subtask_1.json").read_text())) == 3


def test_an_lm_server_sees_the_prompts_that_show_prints(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "stub")
    with StubServer() as server:
        ran = command(
            "run", "sample/test", "--lm", "openai/stub", "--api-base", server.openai, "--cases", "101", "--out", "r"
        )
        assert ran.code == 0, ran
        assert 4 <= len(server.received) <= 8
        sent = [r.body["messages"] for r in server.received]
    shown = json.loads(command("show", "default", "--json", "--case", "101", "--data", "sample/test").out)["stages"]
    assert shown["reformulate"] in sent
    for stage in ("score", "generate", "align"):
        assert shown[stage][0] in [messages[0] for messages in sent]
    template = command("show", "default").out
    for message in shown["reformulate"][:-1]:
        assert message["content"] in template


def test_a_server_that_is_down_costs_no_case_and_is_shouted(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "stub")
    with StubServer(lambda _: Reply(status=500)) as server:
        lm = ("--lm", "openai/stub", "--api-base", server.openai, "--retries", 0)
        ran = command("run", "sample/test", *lm, "--cases", "101-102", "--out", "r")
    assert ran.code == 1
    assert "no LM call succeeded (LMServerError (HTTP 500))" in ran.err
    again = command("run", "sample/test", *lm, "--cases", "101-102", "--out", "r")
    assert again.code == 1 and "no LM call succeeded" in again.err, "resuming makes no answer the LM's"
    Path("note.txt").write_text("He was given furosemide for oedema.")
    asked = command("ask", "note.txt", "Why furosemide?", *lm)
    assert asked.code == 1 and "[1]" in asked.out and "no LM call succeeded" in asked.err
    assert command("validate", "r", "--data", "sample/test", "--cases", "101-102").code == 0


def test_a_refused_key_stops_the_run_in_one_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key-of-mine")

    def echo(received: Received) -> Reply:
        return Reply(status=401, message=f"bad key {received.headers['authorization']} for: {received.ask[:500]}")

    with StubServer(echo) as server:
        ran = command("run", "sample/test", "--lm", "openai/stub", "--api-base", server.openai, "--out", "r")
    line = one_line(ran)
    assert "cannot be used" in line and "key" in line
    sent = server.received[0]
    assert sent.headers["authorization"].split()[-1] not in ran.err + ran.out
    assert sent.ask[25:60] not in ran.err + ran.out


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["run", "nowhere"], "no such file"),
        (["run", "sample/dev", "--cases", "99"], "no case 99"),
        (["run", "sample/dev", "--stages", "guess"], "no stage guess"),
        (["run", "sample/dev", "--question", "mine"], "own or given"),
        (["run", "sample/dev", "--program", "handwritten"], "--lm"),
        (["run", "sample/dev", "--program", "missing.json"], "no such program"),
        (["run", "sample/dev", "--preset", "best"], "seed, default"),
        (["show", "extractive", "--stage", "reformulate"], "fitted models in score, generate, align"),
        (["show", "handwritten", "--stage", "x"], "the stages are"),
        (["validate", "nothing.json", "--data", "sample/dev", "--subtask", "2"], "No such file"),
        (["validate", "answers.json", "--data", "sample/dev"], "--subtask"),
        (["score", "nothing.json", "--subtask", "2", "--data", "sample/dev"], "No such file"),
    ],
)
def test_a_wrong_call_gets_one_line_with_the_remedy(command: Command, args: list[str], told: str) -> None:
    assert told in one_line(command(*args))


def test_a_folder_of_another_run_is_refused_with_what_differs(command: Command) -> None:
    command("run", "sample/test", "--out", "r", "--cases", "101")
    assert "data" in one_line(command("run", "sample/dev", "--out", "r"))
    assert "stages" in one_line(command("run", "sample/test", "--out", "r", "--stages", "score"))
    assert command("run", "sample/dev", "--out", "r", "--fresh", "--cases", "1").code == 0
    assert len(Path("r/predictions.jsonl").read_text().splitlines()) == 1


def test_many_faults_are_shown_in_part_and_counted(command: Command) -> None:
    entries = [{"case_id": f"none-{n}", "prediction": []} for n in range(100)]
    Path("submission_subtask_2.json").write_text(json.dumps(entries))
    call = ("validate", "submission_subtask_2.json", "--data", "sample/test")
    ran = command(*call)
    assert ran.code == 1 and ran.out.count(": fault: ") == 40
    assert "80 more faults; --json lists them all" in ran.out  # 100 unknown ones, and the 20 that are missing
    (report,) = json.loads(command(*call, "--json").out).values()
    assert len(report["faults"]) == 120


def test_faulty_submissions_are_found_without_a_key(command: Command, tmp_path: Path) -> None:
    (tmp_path / "submission_subtask_2.json").write_text(json.dumps([{"case_id": "101", "prediction": ["999"]}]))
    ran = command("validate", "submission_subtask_2.json", "--data", "sample/test", "--cases", "101", "--json")
    assert ran.code == 1
    (report,) = json.loads(ran.out).values()
    assert report["faults"] == ["case 101: prediction has ids that the note does not have: 999"]


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from archehr.cli import main; sys.argv = ['archehr', '--help']\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += "print([m for m in ('dspy', 'sklearn', 'pandas', 'numpy', 'google.genai') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_the_public_names_are_there() -> None:
    import archehr

    assert {name: callable(getattr(archehr, name)) for name in archehr.__all__} == dict.fromkeys(archehr.__all__, True)
    assert answer_stage  # the stub answers all stages, see tests/stub_server.py


def test_ask_prints_an_answer_with_the_sentences_it_cites(command: Command, tmp_path: Path) -> None:
    case = read_cases("sample/test")[3]
    (tmp_path / "note.txt").write_text(case.note or "")
    ran = command("ask", "note.txt", case.narrative)
    assert ran.code == 0
    cited = set(re.findall(r"^\[(\d+)\] ", ran.out, re.MULTILINE))
    assert cited and cited <= set(re.findall(r"\d+", " ".join(re.findall(r"\[([\d, ]+)\]$", ran.out, re.MULTILINE))))
    record = json.loads(command("ask", "note.txt", case.narrative, "--json").out)
    assert record["answer_sentences"] and f"Question: {record['question']}" in ran.out
    assert not Path("runs").exists()
    assert "cannot be read" in one_line(command("ask", "nothing.txt", "Why?"))


def test_scores_on_what_the_program_was_fitted_on_are_called_in_sample(command: Command) -> None:
    assert "IN SAMPLE" in command("run", "sample/dev", "--out", "dev").out
    assert "IN SAMPLE" in command("run", "sample/test", "--out", "test").out
    apart = command("run", "sample/test", "--program", "extractive-dev", "--out", "apart")
    assert apart.code == 0 and "IN SAMPLE" not in apart.out


def test_local_only_lets_the_scores_download_nothing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    command("run", "sample/test", "--out", "r", "--cases", "101")
    call = ("score", "r/submission_subtask_2.json", "--subtask", 2, "--data", "sample/test", "--cases", "101")
    assert command(*call).code == 0 and os.environ["HF_HUB_OFFLINE"] == "0"
    assert command(*call, "--local-only").code == 0 and os.environ["HF_HUB_OFFLINE"] == "1"


def test_the_version_is_told(command: Command) -> None:
    import archehr

    assert command("--version").out == f"archehr {archehr.__version__}\n"


def test_ask_gives_a_case_the_answer_that_run_gives_it(command: Command) -> None:
    """One splitter and one choice: the same sentences under the same numbers, whichever way the note came in."""
    case = next(case for case in read_cases("sample/test") if case.id == "104")
    Path("m.txt").write_text(case.narrative)
    Path("note.txt").write_text(str(case.note))
    assert command("run", "sample/test", "--cases", "104", "--out", "r").code == 0
    run = json.loads(Path("r/predictions.jsonl").read_text())
    for source in (("sample/test", "m.txt", "--case", "104"), ("note.txt", "m.txt")):
        asked = json.loads(command("ask", *source, "--json").out)
        for field in ("question", "evidence", "answer_sentences", "links"):
            assert asked[field] == run[field], field


def test_fewer_cases_take_nothing_from_a_folder(command: Command) -> None:
    asked = ("run", "sample/test", "--out", "r", "--cases")
    assert command(*asked, "101-106").code == 0
    files = {p: p.read_bytes() for p in Path("r").glob("s*.json")}
    fewer = command(*asked, "101-102")
    assert fewer.code == 0 and "the submissions and the report hold 4 more cases" in fewer.err
    assert len(files) == 5 and {p: p.read_bytes() for p in Path("r").glob("s*.json")} == files
    page = Path("r/report.html").read_text()
    assert page.count("<article") == 6
    elsewhere = command("run", "sample/test", "--out", "two", "--cases", "101-102")
    assert elsewhere.code == 0 and len(json.loads(Path("two/submission_subtask_2.json").read_text())) == 2
