"""Bad sources get one line that names file, row or resource and shows no note; --skip-bad leaves them out and lists."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.case import DataError
from archehr.data.dataset import read_cases, read_dataset
from archehr.data.reading.reader import ReadOptions, parse_columns
from tests import sources
from tests.conftest import Ran

SECRET = "He has gout and does not want it known."
ROW = f'1,Why?,"{SECRET}"\n'
Made = Callable[[Path], Path]


def text(name: str, content: str | bytes) -> Made:
    def make(folder: Path) -> Path:
        raw = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(raw)
        return folder / name

    return make


def table(rows: str, header: str = "id,message,note\n", name: str = "t.csv") -> Made:
    return text(name, header + rows)


def fhir(*resources: dict[str, Any]) -> Made:
    return text("b.json", json.dumps(sources.bundle(*resources)))


def doc(**more: Any) -> dict[str, Any]:
    return sources.document("d1", SECRET, "2020", **more)


def attached(**attachment: Any) -> dict[str, Any]:
    return doc(content=[{"attachment": attachment}])


def folder_of(**files: str) -> Made:
    def make(folder: Path) -> Path:
        for name, content in files.items():
            (folder / name.replace("_", ".")).write_text(content)
        return folder

    return make


def cut_parquet(folder: Path) -> Path:
    pd.DataFrame({"id": ["1"], "message": ["Why?"], "note": [SECRET * 100]}).to_parquet(folder / "t.parquet")
    raw = (folder / "t.parquet").read_bytes()
    (folder / "t.parquet").write_bytes(raw[: len(raw) // 2])
    return folder / "t.parquet"


def bomb(folder: Path) -> Path:
    rows = "".join(f"{i},Why?,{'a' * 1000}\n" for i in range(12_000))
    (folder / "t.csv.gz").write_bytes(gzip.compress(f"id,message,note\n{rows}".encode()))
    return folder / "t.csv.gz"


ASK = sources.communication("m1", "Why?")
BAD: dict[str, tuple[Made, str]] = {
    "no note": (table("1,Why?,\n"), "row 1: has no note"),
    "no message": (table(ROW + f'2,,"{SECRET}"\n'), "row 2: has no message"),
    "no id": (table(f',Why?,"{SECRET}"\n'), "row 1: has no id"),
    "id twice": (table(ROW * 2), "case 1 stands twice"),
    "no such columns": (table("1,2\n", "a,b\n"), "no column message"),
    "no rows": (table(""), "no rows"),
    "empty": (text("t.csv", ""), "no rows"),
    "a cell too many": (table(f"1,Why?,{SECRET},x\n"), "row 1: has 4 cells"),
    "a quote not closed": (table(f'1,Why?,"{SECRET}\n2,Why?,x\n'), "row 1: not well-formed CSV"),
    "latin-1": (text("t.csv", "id,message,note\n1,Why?,Ödem\n".encode("latin-1")), "not UTF-8"),
    "a huge cell": (table(f"1,Why?,{'gout ' * 2_000_000}\n"), "row 1: a note of over 5 MB"),
    "evidence unknown": (table(f'1,Why?,"{SECRET}",7\n', "id,message,note,evidence\n"), "evidence names 7"),
    "a file that is not there": (table("1,Why?,a.txt\n"), "not there"),
    "a file elsewhere": (table("1,Why?,../../../etc/hostname.txt\n"), "row 1"),
    "a cut parquet": (cut_parquet, "damaged Parquet"),
    "a gz bomb": (bomb, "--max-mb"),
    "a cut gz": (
        text(
            "t.csv.gz",
            gzip.compress(f"id,message,note\n{''.join(f'{i},Why?,x {i}.' + chr(10) for i in range(999))}".encode())[
                :-40
            ],
        ),
        "cut short",
    ),
    "no gz": (text("t.csv.gz", b"\x1f\x8b" + b"x" * 100), "gzip"),
    "bad JSON line": (text("t.jsonl", '{"id": 1, "message": "Why?", "note": "x"}\n{"id": \n'), "row 2: not valid JSON"),
    "a JSON line that is a list": (text("t.jsonl", "[1]\n"), "no JSON object"),
    "half a surrogate": (text("t.jsonl", '{"id": "1", "message": "Why?", "note": "\\ud83d x"}\n'), "row 1"),
    "two tables": (folder_of(a_csv="id,message,note\n", b_csv="id,message,note\n"), "has 2 tables"),
    "notes and no table": (folder_of(a_txt=SECRET), "no table of their messages"),
    "a folder of nothing": (folder_of(a_xyz=SECRET), "holds nothing"),
    "a note for DATA": (text("note.txt", SECRET), "ask takes one note"),
    "HL7 v2": (text("m.hl7", f"MSH|^~\\&|A|B\rOBX|1|TX|||{SECRET}\r"), "HL7 version 2"),
    "C-CDA": (text("c.xml", f'<?xml version="1.0"?><ClinicalDocument xmlns="x">{SECRET}</ClinicalDocument>'), "C-CDA"),
    "FHIR as XML": (text("b.xml", '<Bundle xmlns="http://hl7.org/fhir"><type value="x"/></Bundle>'), "FHIR as XML"),
    "no base64": (fhir(attached(data="###"), ASK), "DocumentReference/d1: its data is no base64"),
    "binary data": (fhir(attached(data=sources.base64_of(b"\x00\x01\x02")), ASK), "DocumentReference/d1"),
    "a note not UTF-8": (fhir(attached(data=sources.base64_of(b"\xd6dem")), ASK), "not UTF-8"),
    "a scanned PDF": (fhir(attached(data=sources.base64_of(sources.pdf())), ASK), "no text in it"),
    "a C-CDA attached": (fhir(attached(data=sources.base64_of("<ClinicalDocument/>")), ASK), "C-CDA"),
    "an image": (fhir(attached(data=sources.base64_of(b"\x89PNG\r\n")), ASK), "an image"),
    "a docx bomb": (fhir(attached(data=sources.base64_of(sources.zip_bomb())), ASK), "DocumentReference/d1"),
    "a url elsewhere": (fhir(attached(url="https://ehr.example.org/note/1"), ASK), "nothing is ever fetched"),
    "a url of the machine": (fhir(attached(url="file:///etc/hostname"), ASK), "DocumentReference/d1"),
    "nothing attached": (fhir(doc(content=[]), ASK), "has no attachment"),
    "two patients": (
        fhir(doc(), sources.document("d2", "x", "2020", patient="Patient/p2"), ASK),
        "2 patients (p1, p2)",
    ),
    "no message in it": (fhir(doc()), "no patient's message"),
    "no note in it": (fhir(ASK), "no note for the message of p1"),
    "a wrong shape": (fhir(doc(content={"attachment": SECRET}), ASK), "DocumentReference/d1: content"),
    "no subject": (
        text("b.ndjson", json.dumps({**doc(), "subject": None}) + "\n" + json.dumps(ASK) + "\n"),
        "DocumentReference/d1: has no subject",
    ),
    "a cut bundle": (text("b.json", json.dumps(sources.synthea())[:-9]), "not valid JSON"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_sources_end_in_one_line(tmp_path: Path, kind: str) -> None:
    make, told = BAD[kind]
    path = make(tmp_path)
    with pytest.raises(DataError) as error:
        read_cases(path)
    line = str(error.value)
    assert told in line and str(tmp_path) in line
    assert "\n" not in line and "gout" not in line and len(line) < 900


def test_an_error_is_exit_2_and_one_line_of_the_command(command: Callable[..., Ran], tmp_path: Path) -> None:
    table(ROW + f'2,,"{SECRET}"\n')(tmp_path)
    ran = command("run", "t.csv", "--out", "r")
    assert ran.code == 2 and ran.err.count("\n") == 1 and "t.csv: row 2" in ran.err
    skipped = command("run", "t.csv", "--out", "r", "--skip-bad")
    assert skipped.code == 0 and "1 answered" in skipped.out
    assert "1 left out by --skip-bad:" in skipped.err and "t.csv: row 2: has no message" in skipped.err
    assert "gout" not in skipped.err


def test_skip_bad_of_notes_and_bundles(tmp_path: Path) -> None:
    sources.write_json(tmp_path / "good.json", sources.synthea())
    two = sources.bundle(doc(), sources.document("d9", "x", "2020", patient="Patient/p9"))
    sources.write_json(tmp_path / "two.json", two)
    with pytest.raises(DataError, match="2 patients"):
        read_cases(tmp_path)
    data = read_dataset(tmp_path, options=ReadOptions(skip_bad=True))
    assert [c.id for c in data.cases] == ["p1"]
    assert sum("2 patients" in note for note in data.notes) == 1
    with pytest.raises(DataError, match="no case in it"):
        read_dataset(text("t.csv", "id,message,note\n1,,\n")(tmp_path), options=ReadOptions(skip_bad=True))


def test_the_limits_can_be_raised(tmp_path: Path) -> None:
    assert len(read_cases(bomb(tmp_path), options=ReadOptions(max_mb=15))) == 12_000


def test_columns_that_are_not_there_or_could_be_two(tmp_path: Path) -> None:
    path = table(ROW)(tmp_path)
    for columns, told in (({"note": "TEXT"}, "no column TEXT"), ({"notes": "note"}, "--columns notes")):
        with pytest.raises(DataError, match=told):
            read_cases(path, options=ReadOptions(columns=columns))
    both = table("1,Why?,a b.,c d.\n", "id,message,note_text,text\n", "u.csv")(tmp_path)
    with pytest.raises(DataError, match="note_text or text: which is the note"):
        read_cases(both)
    with pytest.raises(DataError, match="NAME=COLUMN"):
        parse_columns("note")


def test_messages_of_a_note_table(tmp_path: Path) -> None:
    (tmp_path / "discharge.csv").write_text(sources.MIMIC)
    for content, told in (
        (None, "--messages"),
        ("note,message\n1,Why?\n", "no column note_id or hadm_id or subject_id"),
        ("note_id,words\n1,Why?\n", "no column message"),
        ("note_id,message\nnone,Why?\n", "no note for the message of none"),
        ("note_id,message\n10-DS-1,\n", "row 1: has no message"),
    ):
        if content is not None:
            (tmp_path / "messages.csv").write_text(content)
        with pytest.raises(DataError, match=told):
            read_cases(tmp_path / "discharge.csv")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "d1", SECRET, "Patient/p1", "final"]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(["reference", "data"]), inside),
    max_leaves=4,
)


@settings(deadline=None)
@given(st.data())
def test_anything_anywhere_in_a_bundle_is_read_or_gets_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    made = json.loads(json.dumps(sources.synthea()))  # a copy: its parts share values
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key, inside in value.items() if isinstance(value, dict) else enumerate(value):
            places.append((value, key))
            if isinstance(inside, (dict, list)):
                walk(inside)

    walk(made)
    place, key = places[data.draw(st.integers(0, len(places) - 1))]
    place[key] = data.draw(JSON)
    path = sources.write_json(tmp_path_factory.mktemp("fuzz") / "b.json", made)
    try:
        read_cases(path)
    except DataError as error:
        assert len(str(error).splitlines()) == 1 and "gout" not in str(error)


@settings(deadline=None)  # the first Parquet file loads its library
@given(st.binary(max_size=300), st.sampled_from(["t.csv", "t.jsonl", "t.parquet", "b.json", "t.csv.gz", "x"]))
def test_no_bytes_make_a_reader_raise_anything_else(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, name: str
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / name
    for content in (raw, b"id,message,note\n" + raw, b'{"resourceType": ' + raw, b"PAR1" + raw):
        path.write_bytes(content)
        try:
            read_cases(path)
        except DataError as error:
            assert len(str(error).splitlines()) == 1
