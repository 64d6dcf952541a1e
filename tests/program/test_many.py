"""A run of many cases keeps them on disk: it gives what a run of few gives, however it was come by."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archehr.data import case_file
from archehr.data.case import Case, DataError
from archehr.data.case_file import CaseFile
from archehr.data.dataset import Dataset, read_cases, read_dataset
from archehr.data.writers import EXPORTS, table
from archehr.metrics import score, tables
from archehr.program.prompts.program_file import load_program
from archehr.program.run import journal
from archehr.program.run.folder import JOURNAL, RunFolder, read_run_folder
from archehr.program.run.journal import Journal, Records
from archehr.program.run.manifest import Identity
from archehr.program.run.records import CaseRecord, Tally, submissions
from archehr.program.run.report import write
from archehr.program.run.run import run_cases
from archehr.program.stages.registry import STAGES
from archehr.program.types import Link
from tests.conftest import Ran
from tests.fake_lm import asked, fake_lm
from tests.stub_server import Reply, StubServer, answer_stage

Command = Callable[..., Ran]
FILES = [*(f"submission_subtask_{n}.json" for n in (1, 2, 3, 4)), "scores.json", "predictions.csv"]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than three cases are many."""
    for module in (case_file, journal, score):
        monkeypatch.setattr(module, "FEW", 3)
    monkeypatch.setattr(tables, "BATCH", 3)


def written(folder: Path) -> dict[str, str]:
    """The files of a run, the report without its times."""
    report = re.sub(r"\d+\.\d s\b|<dd>[\d-]+T[^<]*", "", (folder / "report.html").read_text())
    return {name: (folder / name).read_text() for name in FILES} | {"report": report}


@pytest.mark.parametrize("sample", ["dev", "test"])
@pytest.mark.parametrize("lm", [[], ["--lm", "knn"]], ids=["extractive", "knn"])
def test_many_cases_leave_the_files_that_few_leave(
    sample: str, lm: list[str], command: Command, request: pytest.FixtureRequest
) -> None:
    assert command("run", f"sample/{sample}", *lm, "--out", "few").code == 0
    assert command("cache", "--clear").code == 0
    request.getfixturevalue("many")
    ran = command("run", f"sample/{sample}", *lm, "--out", "many", "--json")
    assert ran.code == 0, ran
    few, found = written(Path("few")), written(Path("many"))
    assert [name for name in few if few[name] != found[name]] == []
    assert json.loads(ran.out)["scores"] == json.loads(found["scores.json"])
    assert command("score", "many").code == 0


def test_the_parquet_of_many_cases_is_that_of_few(
    command: Command, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    call = ("run", "sample/test", "--export", "parquet", "--out")
    assert command(*call, "few").code == 0
    request.getfixturevalue("many")
    monkeypatch.setattr(table, "_AT_ONCE", 10)
    assert command(*call, "many").code == 0
    few, many = (pd.read_parquet(f"{folder}/predictions.parquet") for folder in ("few", "many"))
    pd.testing.assert_frame_equal(many, few)
    rows = pd.read_csv("many/predictions.csv", dtype={"case_id": str, "cited": str, "notes": str, "places": str})
    pd.testing.assert_frame_equal(many, rows.fillna(dict.fromkeys(("cited", "notes", "places"), "")))
    assert list(dict.fromkeys(many["case_id"])) == [case.id for case in read_cases("sample/test")]
    in_groups = pq.ParquetFile("many/predictions.parquet").metadata
    assert [in_groups.row_group(n).num_rows for n in range(in_groups.num_row_groups - 1)] == [10] * (len(many) // 10)


def test_answers_come_in_any_order_and_are_written_in_that_of_the_data(many: None, tmp_path: Path) -> None:
    data = read_dataset("sample/test")
    slowest_first = {case.narrative: 0.3 - n / 50 for n, case in enumerate(data.cases)}

    def reply(request: object) -> str:
        text = asked(request)
        time.sleep(next((s for narrative, s in slowest_first.items() if narrative in text), 0))
        return answer_stage(text)

    result = run_cases(data, load_program("zero_shot"), fake_lm(reply), out=tmp_path, workers=20)
    ids = [case.id for case in data.cases]
    in_journal = [json.loads(line)["case_id"] for line in (tmp_path / JOURNAL).read_text().splitlines()]
    assert sorted(in_journal) == sorted(ids) and in_journal != ids
    assert isinstance(result.records, Records) and [r.case_id for r in result.records] == ids
    assert [r.case_id for r in result.records[5:7]] == ids[5:7] and result.records[-1].case_id == ids[-1]
    for path in result.files.values():
        assert [entry["case_id"] for entry in json.loads(path.read_text())] == ids


def test_some_then_a_torn_line_then_all_is_as_all_at_once(many: None, command: Command) -> None:
    assert command("run", "sample/test", "--cases", "105-109", "--out", "r").code == 0
    journal_file = Path("r") / JOURNAL
    lines = journal_file.read_bytes().splitlines(keepends=True)
    journal_file.write_bytes(b"".join(lines[:4]) + lines[4][:-20])
    ran = command("run", "sample/test", "--out", "r")
    assert ran.code == 0 and "torn" in ran.err and "4 of them before" in ran.out
    assert command("run", "sample/test", "--out", "whole").code == 0
    assert [name for name, text in written(Path("whole")).items() if written(Path("r"))[name] != text] == []
    fewer = command("run", "sample/test", "--cases", "107", "--out", "r")
    assert "19 more cases that were finished" in fewer.err and "all 1 cases were already done" in fewer.out
    estimate = command("run", "sample/test", "--lm", "knn", "--dry-run", "--out", "none", "--json")
    assert estimate.code == 0


def test_a_fallback_is_answered_again_and_counts_once(
    many: None, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "stub")
    case = read_cases("sample/test")[1]

    def stumbling(received: object) -> Reply | str:
        down = case.narrative in received.ask and "`scores`" in received.ask
        return Reply(status=500, message="out of memory") if down else answer_stage(received.ask)

    call = ("run", "sample/test", "--cases", "101-106", "--out", "r")
    with StubServer(stumbling) as server:
        lm = ("--lm", "openai/stub", "--api-base", server.openai)
        ran = command(*call, *lm)
        assert ran.code == 1 and "102 (score)" in ran.err, ran
        server.reply = lambda received: answer_stage(received.ask)
        assert command(*call, *lm).code == 0
    manifest, records = read_run_folder(Path("r"))
    assert manifest.cases_done == len(records) == 6 and manifest.unreached == []
    assert len((Path("r") / JOURNAL).read_text().splitlines()) == 7
    assert manifest.notices == Tally(records.values()).notices and not records["102"].unreached


def test_data_without_gold_or_sentences_is_many_cases_too(many: None, tmp_path: Path) -> None:
    told: list[str] = []
    cases = [Case(f"\u2028 {n}", f"Why, {n}?") for n in range(8)]
    result = run_cases(Dataset.of(iter(cases)), load_program("extractive"), out=tmp_path, tell=told.append)
    assert isinstance(result.cases, CaseFile) and result.scores == {} and list(result.files) == [1]
    assert any("no case has note sentences" in line for line in told)
    again = run_cases(Dataset.of(iter(cases)), load_program("extractive"), out=tmp_path)
    assert again.resumed == 8 and [r.case_id for r in again.records] == [c.id for c in cases]


def test_a_subtask_that_a_case_lacks_has_no_submission_and_none_of_before(many: None, tmp_path: Path) -> None:
    cases = [*read_cases("sample/test")[:5], Case("without a note", "Why?")]
    data, program, told = Dataset.of(cases), load_program("extractive"), list[str]()
    assert list(run_cases(replace(data, cases=cases[:5], chosen_from=cases), program, out=tmp_path).files) == [
        1,
        2,
        3,
        4,
    ]
    result = run_cases(data, program, out=tmp_path, tell=told.append)
    assert list(result.files) == [1] and [p.name for p in tmp_path.glob("sub*")] == ["submission_subtask_1.json"]
    assert "stages 2-4 (score, generate, align) did not run for 1 of 6 cases: these have no note sentences" in told[0]
    lacking = [line for line in told if line.startswith("no submission of subtask")]
    assert len(lacking) == 3 and all("1 of 6 cases have no answer to it" in line for line in lacking)


def test_a_journal_that_changes_under_its_reader_is_told(many: None, tmp_path: Path) -> None:
    data = read_dataset("sample/test")
    result = run_cases(data, load_program("extractive"), out=tmp_path, engine="threads")
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    (tmp_path / JOURNAL).write_bytes(b"".join(reversed(lines)))
    with pytest.raises(DataError, match=r"predictions\.jsonl: was changed while it was read"):
        list(result.records)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LINKS = st.none() | st.lists(st.builds(Link, answer_id=TEXT, evidence_ids=st.lists(TEXT, max_size=2)), max_size=2)
RECORDS = st.lists(
    st.builds(
        CaseRecord,
        case_id=st.sampled_from(["1", "\u2028", "a\nb", " ", "é"]) | TEXT,
        question=st.none() | TEXT,
        evidence=st.none() | st.lists(TEXT, max_size=2),
        answer=st.none() | TEXT,
        links=LINKS,
        given_links=LINKS,
        notices=st.lists(st.fixed_dictionaries({"kind": TEXT, "stage": TEXT, "detail": TEXT}), max_size=2),
        unreached=st.lists(TEXT, max_size=1),
    ),
    max_size=8,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS, torn=st.binary(max_size=9).filter(lambda b: b"\n" not in b))
def test_the_last_line_of_a_case_counts_and_the_sums_are_those_of_what_counts(
    records: list[CaseRecord], torn: bytes, tmp_path: Path
) -> None:
    path = tmp_path / JOURNAL
    path.write_bytes(b"")
    held = Journal(path)
    held.open()
    for record in records:
        held.append(record)
    held.close()
    path.write_bytes(path.read_bytes() + torn)
    again = Journal(path)
    assert again.open() == bool(torn)
    again.close()
    last = {record.case_id: record for record in records}
    for found in (held, again):
        tally, wanted = found.tally, Tally(last.values())
        assert dict(found) == last and list(found) == list(last)
        assert (tally.cases, tally.notices, tally.links, tally.subtasks) == (
            wanted.cases, wanted.notices, wanted.links, wanted.subtasks,
        )  # fmt: skip
        assert set(tally.unreached) == set(wanted.unreached)
        assert tally.subtasks == list(submissions(list(last.values())))


def test_run_json_is_written_without_reading_the_cases(many: None, tmp_path: Path, monkeypatch) -> None:
    data = read_dataset("sample/test")
    data = replace(data, cases=data.cases)
    read: list[str] = []
    monkeypatch.setattr(Journal, "__getitem__", lambda self, i: read.append(i))
    from archehr.program.run import run

    monkeypatch.setattr(run, "MANIFEST_EVERY", 0)
    monkeypatch.setattr(run, "_finished", lambda *_: None)
    run_cases(data, load_program("extractive"), out=tmp_path, engine="threads")
    assert read == [] and json.loads((tmp_path / "run.json").read_text())["cases_done"] == 20


def test_a_run_is_scored_whatever_its_ids_are(many: None, command: Command) -> None:
    case = read_cases("sample/dev")[0]
    ids = ["1,2", "3 4", "12-3", "9-8", "…", "-x", "..", "{}"]
    note = "\n".join(s.text for s in case.sentences)
    row = {"message": case.narrative, "question": case.clinician_question, "note": note, "evidence": "1,3"}
    Path("d.jsonl").write_text("".join(json.dumps({"id": i, **row}) + "\n" for i in ids))
    ran = command("run", "d.jsonl", "--out", "r")
    assert ran.code == 0, ran
    scored = command("score", "r")
    assert scored.code == 0 and f"{len(ids)} cases" in scored.out, scored
    assert "1 cases" in command("score", "r", "--cases", "12-3").out


def test_starting_over_leaves_nothing_of_the_run_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "ONE_PAGE", 3)
    data, program = read_dataset("sample/test"), load_program("extractive")
    run_cases(data, program, out=tmp_path, export=EXPORTS)
    assert (tmp_path / "report" / "0001.html").exists() and len(list((tmp_path / "fhir").iterdir())) == len(data.cases)
    (tmp_path / "report" / "mine.txt").write_text("kept")
    (tmp_path / "review").mkdir()
    (tmp_path / "review" / "reviewer.jsonl").write_text("kept")
    with RunFolder(tmp_path, Identity.of(program, None, data, "own", tuple(STAGES)), fresh=True):
        files = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert files == {"lock", "lock.pid", JOURNAL, "report/mine.txt", "review/reviewer.jsonl"}
    assert (tmp_path / JOURNAL).read_bytes() == b""
