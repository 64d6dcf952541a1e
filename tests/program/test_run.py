"""run_cases as a library call: what it tells, and what run.json says of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM

from archehr.data.dataset import Dataset, read_cases, read_dataset
from archehr.program.lm import make_lm
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program
from archehr.program.run.run import CREDENTIALED, run_cases
from tests.fake_lm import asked, fake_lm
from tests.stub_server import Reply, StubServer, answer_stage

CASES = read_cases("sample/test")[:3]
MINE = [replace(c, narrative=c.narrative + " Please help.") for c in CASES]


def lm(endpoint: str | None = None) -> dspy.LM:
    made = fake_lm(lambda request: answer_stage(asked(request)))
    made.engine.backend = replace(made.engine.backend, endpoint=endpoint)
    return made


def told(out: Path, cases: list, endpoint: str | None) -> int:
    lines: list[str] = []
    run_cases(cases, load_program("zero_shot"), lm(endpoint), out=out, tell=lines.append)
    return lines.count(CREDENTIALED)


def test_a_hosted_lm_on_data_of_ones_own_is_told_of_once_per_folder(tmp_path: Path) -> None:
    assert told(tmp_path / "r", MINE, "https://lm.example.org/v1") == 1
    assert told(tmp_path / "r", MINE, "https://lm.example.org/v1") == 0


@pytest.mark.parametrize("endpoint", [None, "http://127.0.0.1:8000/v1"])
def test_an_lm_of_this_machine_is_not(tmp_path: Path, endpoint: str | None) -> None:
    assert told(tmp_path / "r", MINE, endpoint) == 0


def test_nor_is_the_sample(tmp_path: Path) -> None:
    assert told(tmp_path / "r", read_cases("sample/test"), "https://lm.example.org/v1") == 0


def test_run_json_says_what_was_run_and_what_it_took(tmp_path: Path) -> None:
    run_cases(read_dataset("sample/test").only("101-103"), load_program("handwritten"), lm(), out=tmp_path)
    manifest = json.loads((tmp_path / "run.json").read_text())
    assert manifest["program"] == "handwritten" and manifest["lm"]["model"] == "fake/lm"
    assert manifest["cases_done"] == 3 and manifest["subtask_4_links"] == "given" and not manifest["in_sample"]
    (session,) = manifest["sessions"]
    assert session["usage"]["calls"] == 15 and session["usage"]["tokens_in"] == 1500
    assert {stage: used["calls"] for stage, used in session["by_stage"].items()} == {
        "reformulate": 3, "score": 3, "generate": 3, "align": 6,
    }  # fmt: skip
    journal = [json.loads(line) for line in (tmp_path / "predictions.jsonl").read_text().splitlines()]
    assert [line["usage"]["calls"] for line in journal] == [5, 5, 5]


def test_own_links_are_submitted_where_no_answer_is_given(tmp_path: Path) -> None:
    bare = [replace(c, answer_sentences=(), gold=None) for c in CASES]
    result = run_cases(bare, load_program("extractive"), out=tmp_path)
    assert result.manifest.subtask_4_links == "own"
    made = {e["case_id"]: e["prediction"] for e in json.loads(result.files[4].read_text())}
    for record in result.records:
        assert [p["answer_id"] for p in made[record.case_id]] == [
            str(i) for i in range(1, len(record.answer_sentences or []) + 1)
        ]


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_cases(CASES, load_program("extractive"))
    assert [r.case_id for r in result.records] == [c.id for c in CASES]
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_run_sums_what_all_its_sessions_took(tmp_path: Path) -> None:
    lines: list[str] = []
    for cases in (CASES[:1], CASES, CASES[:2]):
        manifest = run_cases(
            Dataset(tuple(cases), chosen_from=tuple(CASES)),
            load_program("zero_shot"),
            lm(),
            out=tmp_path,
            tell=lines.append,
        ).manifest
    assert [s.usage.calls for s in manifest.sessions if s.usage] == [5, 10, 0]
    assert manifest.usage and manifest.usage.calls == 15 and manifest.usage.tokens_in == 1500
    told = f"the submissions and the report hold 1 more cases that were finished in {tmp_path} before"
    assert lines == [told]


def test_a_later_call_for_fewer_cases_takes_nothing_away(tmp_path: Path) -> None:
    data = Dataset(tuple(CASES))
    whole = run_cases(data, load_program("extractive"), out=tmp_path)
    before = {path: path.read_bytes() for path in (*whole.files.values(), tmp_path / "scores.json")}
    part = run_cases(data.only(CASES[0].id), load_program("extractive"), out=tmp_path)
    assert [r.case_id for r in part.records] == [CASES[0].id] and part.files == whole.files
    assert {path: path.read_bytes() for path in before} == before
    assert all(f"Case {c.id}" in (tmp_path / "report.html").read_text() for c in CASES)


def test_two_runs_of_one_lm_are_counted_apart() -> None:
    one = fake_lm(lambda request: answer_stage(asked(request)), cache=True)
    first, second = (run_cases(CASES, load_program("zero_shot"), one) for _ in range(2))
    for result, calls, hits in ((first, 5, 0), (second, 0, 5)):
        usage = result.manifest.sessions[-1].usage
        assert usage and (usage.calls, usage.cache_hits) == (3 * calls, 3 * hits)
        assert {(r.usage["calls"], r.usage["cache_hits"]) for r in result.records} == {(calls, hits)}
    assert one.ledger.totals()["calls"] == one.ledger.totals()["cache_hits"] == 15


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        (Reply('{"quest', finish="length"), "the reply was cut at the token limit; raise --max-tokens"),
        (Reply("", finish="content_filter"), "the provider blocked the reply: "),
        (Reply(""), "the reply was empty"),
        (Reply(status=400, message="bad: Why was it given?"), "LMInvalidRequestError (HTTP 400)"),
    ],
)
@pytest.mark.parametrize("wire", ["openai", "gemini"])
def test_a_notice_says_why_the_lm_failed_and_quotes_no_server(wire: str, reply: Reply, detail: str) -> None:
    name = "openai/m" if wire == "openai" else "gemini/gemini-3.8-flash"
    with StubServer(lambda received: reply) as server:
        one = make_lm(name, api_base=getattr(server, wire), api_key="k", num_retries=0)
        result = run_cases(CASES[:1], load_program("zero_shot"), one, stages={"reformulate"})
    (notice,) = result.records[0].notices
    assert notice["kind"] == "lm_failed" and notice["detail"].startswith(detail)


def test_an_lm_that_is_not_ours_and_has_no_engine_will_do(tmp_path: Path) -> None:
    def dummy() -> DummyLM:
        replies = [{"question": "Why was it given?"}, {"answer_sentences": ["It helped."]}]
        return DummyLM(replies * 8, adapter=dspy.JSONAdapter())

    with dspy.context(lm=dummy()):
        assert GroundedQA()(case=CASES[0]).question == "Why was it given?"
    result = run_cases(CASES[:1], GroundedQA(), dummy(), out=str(tmp_path / "r"))
    assert result.records[0].question == "Why was it given?" and result.records[0].usage == {}
    assert result.manifest.sessions[-1].usage is None
