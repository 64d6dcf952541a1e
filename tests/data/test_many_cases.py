"""Cases and JSON that are too many or too long to hold: what is read back is what was there, and faults are named."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import archehr
from archehr.data import case_file, json_stream
from archehr.data.case import AnswerSentence, Case, DataError, Document, Gold, Relevance, Sentence
from archehr.data.case_file import CaseFile, filter_cases, hold_cases, ids_of
from archehr.data.dataset import Dataset, data_sha256, read_dataset
from archehr.data.files import xml_cases
from archehr.data.json_stream import json_array, json_pieces
from archehr.data.key import read_key
from tests.conftest import Ran

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
IDS = st.lists(TEXT, max_size=3).map(tuple)
ANSWERS = st.lists(st.builds(AnswerSentence, TEXT, TEXT, st.none() | IDS), max_size=2).map(tuple)
GOLD = st.builds(
    Gold,
    st.none() | st.dictionaries(TEXT, st.sampled_from(Relevance), max_size=3),
    st.none() | TEXT,
    ANSWERS,
    st.none() | TEXT,
)
NUMBER = st.none() | st.integers(0, 2**40)
CASES = st.lists(
    st.builds(
        Case,
        TEXT,
        narrative=TEXT,
        question_phrases=IDS,
        clinician_question=st.none() | TEXT,
        specialty=st.none() | TEXT,
        note=st.none() | TEXT,
        sentences=st.lists(st.builds(Sentence, TEXT, TEXT, st.none() | TEXT, NUMBER, NUMBER), max_size=3).map(tuple),
        answer_sentences=ANSWERS,
        gold=st.none() | GOLD,
        documents=st.lists(st.builds(Document, TEXT, st.just(0), st.just(9), date=st.none() | TEXT), max_size=2).map(
            tuple
        ),
        patient=st.none() | TEXT,
    ),
    max_size=6,
    unique_by=lambda case: case.id,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(CASES)
def test_cases_on_disk_are_the_cases(cases: list[Case]) -> None:
    stored = CaseFile.of(iter(cases))
    assert list(stored) == cases and list(stored.ids) == [case.id for case in cases]
    assert data_sha256(stored) == data_sha256(cases)
    some = {case.id for case in cases[::2]}
    part = filter_cases(stored, some.__contains__)
    assert list(part) == cases[::2] and list(part[1:]) == cases[::2][1:]
    assert data_sha256(part) == data_sha256(cases[::2])


def test_few_cases_are_a_tuple_and_more_a_file_that_is_gone_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_file, "FEW", 3)
    cases = archehr.read_cases("sample/test")
    assert hold_cases(iter(cases[:3])) == tuple(cases[:3]) and hold_cases(cases) == tuple(cases)
    stored = hold_cases(iter(cases))
    assert isinstance(stored, CaseFile) and list(stored) == cases and ids_of(stored) == ids_of(cases)
    data = Dataset.of(iter(cases)).only("101-105")
    assert isinstance(data.cases, CaseFile) and data.sha256 == data_sha256(cases)
    assert "visit" not in repr(stored), "no note text in a log"


def test_a_full_disk_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, content: Any) -> int:
            raise OSError(28, os.strerror(28))

    monkeypatch.setattr(case_file.tempfile, "TemporaryFile", Full)
    with pytest.raises(DataError, match=r"no room for the cases .*TMPDIR"):
        CaseFile.of(iter(archehr.read_cases("sample/test")))


@pytest.mark.parametrize("sample", ["dev", "test"])
def test_data_and_key_read_the_same_beyond_a_few(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few = read_dataset(f"sample/{sample}")
    monkeypatch.setattr(case_file, "FEW", 2)
    many = read_dataset(f"sample/{sample}")
    assert isinstance(few.cases, tuple) and isinstance(many.cases, CaseFile)
    assert list(many.cases) == list(few.cases) and many.sha256 == few.sha256 and many.notes == few.notes


@settings(deadline=None)
@given(JSON)
def test_pieces_are_what_json_dumps_gives(value: Any) -> None:
    assert "".join(json_pieces(value)) == json.dumps(value, indent=1)
    assert "".join(json_pieces(value, ascii_only=False)) == json.dumps(value, indent=1, ensure_ascii=False)
    if isinstance(value, list):
        assert "".join(json_pieces({"a": iter(value)})) == json.dumps({"a": value}, indent=1)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.lists(JSON, max_size=5),
    damage=st.none() | st.tuples(st.integers(0, 200), st.sampled_from(["", "]", ",", "x", '"', "\\ud800", "{", " 7 "])),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
    chunk=st.integers(1, 9),
    indent=st.none() | st.just(1),
)
def test_an_array_reads_as_json_does_or_is_refused(
    value: list[Any],
    damage: tuple[int, str] | None,
    encoding: str,
    chunk: int,
    indent: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if damage is not None:
        at = min(damage[0], len(text))
        text = text[:at] + damage[1] if damage[1] == "" else text[:at] + damage[1] + text[at:]
    path = tmp_path / "a.json"
    path.write_bytes(text.encode(encoding))
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    try:
        wanted = json.loads(text)
        json.dumps(wanted, ensure_ascii=False).encode()
    except ValueError:
        wanted = None
    if isinstance(wanted, list):
        assert list(json_array(path, "it")) == wanted
    else:
        with pytest.raises(DataError, match=r"a\.json"):
            list(json_array(path, "it"))


def test_a_fault_in_a_long_array_names_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", 16)
    lines = [f'{{"case_id": "{n}", "prediction": []}},' for n in range(200)]
    lines[150] = '{"case_id": "150" "prediction": []},'
    (tmp_path / "s.json").write_text("[\n" + "\n".join(lines).rstrip(",") + "\n]\n")
    with pytest.raises(DataError, match=r"s\.json: not valid JSON at line 152 \(Expecting ',' delimiter\)"):
        list(json_array(tmp_path / "s.json", "a submission"))


def many_xml(cases: int) -> str:
    one = '<case id="{0}"><patient_narrative>Why? {1}</patient_narrative><note_excerpt>{1}</note_excerpt></case>'
    return "<annotations>" + "\n".join(one.format(n, "Stable. " * 50) for n in range(cases)) + "</annotations>"


def test_xml_is_let_go_of_as_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(many_xml(50))
    coming = xml_cases(path)
    first = next(coming)
    assert [next(coming).get("id") for _ in range(30)][-1] == "30"
    assert first.get("id") == "0" and len(list(coming)) == 19


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda text: text[:-200], "truncated or not XML at line 300"),
        (lambda text: text.replace("<case id=\"250\">", "<case id=\"250\"><b>"), "not well-formed XML at line 251"),
        (lambda text: text.replace("250", "17"), "case 17 stands twice"),
        (lambda text: "<!DOCTYPE a [<!ENTITY b 'c'>]>" + text, "declares entities"),
    ],
)  # fmt: skip
def test_a_fault_far_into_xml_is_one_line(
    spoil: Callable[[str], str], said: str, command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case_file, "FEW", 3)
    Path("a.xml").write_text(spoil(many_xml(300)))
    ran = command("run", "a.xml", "--stages", "reformulate")
    assert ran.code == 2 and said in ran.err and "Traceback" not in ran.err and len(ran.err.splitlines()) == 1


def test_a_key_that_stands_twice_or_is_too_long_is_named_beyond_a_few_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case_file, "FEW", 2)
    entries = [{"case_id": str(n), "answers": [{"sentence_id": "1", "relevance": "essential"}]} for n in range(5)]
    (tmp_path / "k.json").write_text(json.dumps(entries))
    golds = read_key(tmp_path / "k.json")
    assert list(golds) == list("01234") and golds["3"].essential == {"1"} and "9" not in golds
    (tmp_path / "k.json").write_text(json.dumps([*entries, entries[1]]))
    with pytest.raises(DataError, match="case 1 stands twice in the key"):
        read_key(tmp_path / "k.json")
