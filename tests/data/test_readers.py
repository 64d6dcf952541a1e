"""Every source that DATA may be becomes cases: each small, and in the shape that the system which makes it gives it."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from archehr.data.case import Case, DataError, Relevance
from archehr.data.dataset import iter_cases, read_cases, read_dataset
from archehr.data.reading.reader import ReadOptions
from tests import sources
from tests.sources import NEW, OLD, WORDS

TABLE = {
    "id": ["a", "b"],
    "message": [WORDS, "When?"],
    "note": [NEW, OLD],
    "evidence": ["1", ""],
    "answer": ["Oedema.", ""],
}


def csv_of(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def texts(case: Case) -> list[str]:
    return [s.text for s in case.sentences]


def check_table(cases: list[Case]) -> None:
    first, second = cases
    assert (first.id, first.narrative, second.id) == ("a", WORDS, "b")
    assert texts(first) == NEW.split("\n") and texts(second) == OLD.split("\n")
    assert first.gold is not None and first.gold.answer == "Oedema." and first.gold.essential == {"1"}
    assert first.gold.relevance is not None and first.gold.relevance["2"] is Relevance.NOT_RELEVANT
    assert second.gold is None


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t", "t.jsonl", "t.jsonl.gz", "t.parquet", "noext"])
def test_a_table_with_a_case_a_row(tmp_path: Path, name: str) -> None:
    frame, path = pd.DataFrame(TABLE), tmp_path / name
    if ".jsonl" in name or name == "noext":
        frame.to_json(path, orient="records", lines=True)
    elif ".parquet" in name:
        frame.to_parquet(path)
    else:
        csv_of(frame, path)
    check_table(read_cases(path))
    check_table(list(iter_cases(path)))
    assert read_dataset(path).title == name.split(".")[0]


def test_a_pandas_frame(tmp_path: Path) -> None:
    check_table(read_cases(pd.DataFrame(TABLE)))
    gaps = pd.DataFrame({"id": [1.0, 2.0], "message": ["Why?", "When?"], "note": [NEW, OLD], "answer": ["So.", None]})
    assert [c.id for c in read_cases(gaps)] == ["1", "2"]
    assert read_cases(gaps)[1].gold is None


def test_half_of_a_character_in_a_frame_is_told() -> None:
    frame = pd.DataFrame({"id": ["1"], "message": pd.Series(["Why \ud83d?"], dtype=object), "note": [NEW]})
    with pytest.raises(DataError, match=r"^the frame: row 1: half of a character"):
        read_cases(frame)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_what_spreadsheets_save_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("id;message;note\r\n1;Why — so?;Ödem. Well.\r\n\r\n".encode(encoding))
    (case,) = read_cases(path)
    assert case.narrative == "Why — so?" and texts(case) == ["Ödem.", "Well."]


def test_columns_of_other_names_are_mapped(tmp_path: Path) -> None:
    frame = pd.DataFrame({"nr": [5], "Q": ["Why?"], "TEXT": [NEW], "note": ["not this one"], "day": ["2020-02-03"]})
    options = ReadOptions(columns={"id": "nr", "message": "Q", "note": "TEXT", "date": "day"})
    (case,) = read_cases(csv_of(frame, tmp_path / "t.csv"), options=options)
    assert (case.id, case.narrative, texts(case)) == ("5", "Why?", NEW.split("\n"))
    assert case.documents[0].date == "2020-02-03"


def test_rows_without_an_id_are_numbered_and_told(tmp_path: Path) -> None:
    data = read_dataset(csv_of(pd.DataFrame({"message": ["A?", "B?"], "note": [NEW, OLD]}), tmp_path / "t.csv"))
    assert [c.id for c in data.cases] == ["1", "2"] and "has no column id" in data.notes[0]


def test_notes_in_files_beside_the_table(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text(NEW)
    (tmp_path / "b.rtf").write_text(sources.RTF)
    (tmp_path / "c.html").write_text(sources.HTML)
    (tmp_path / "d.docx").write_bytes(sources.docx("He was given furosemide.", "Stable."))
    (tmp_path / "e.pdf").write_bytes(sources.pdf("He was given furosemide.", "Stable."))
    names = ["notes/a.txt", "b.rtf", "c.html", "d.docx", "e.pdf"]
    frame = pd.DataFrame({"id": range(5), "message": ["Why?"] * 5, "note": names})
    cases = read_cases(csv_of(frame, tmp_path / "t.csv"))
    assert all("furosemide" in " ".join(texts(case)) for case in cases)
    assert [case.documents[0].url for case in cases] == names
    assert texts(cases[2]) == ["Course", "He was given furosemide.", "Stable."]
    assert "Sodium | 140" in texts(cases[3])


def test_a_folder_of_notes_with_a_table(tmp_path: Path) -> None:
    for name, text in (("a", NEW), ("b", OLD)):
        (tmp_path / f"{name}.txt").write_text(text)
    csv_of(pd.DataFrame({"id": ["a", "b"], "message": [WORDS, "When?"]}), tmp_path / "messages.csv")
    assert [texts(c) for c in read_cases(tmp_path)] == [NEW.split("\n"), OLD.split("\n")]
    assert read_dataset(tmp_path).title == tmp_path.name


# ------------------------------------------------------------------------------------------- notes and messages


def check_two_notes(case: Case, ids: list[str], dates: tuple[str, str]) -> None:
    """NEW and OLD of one patient: newest first, ids "note:sentence", a heading with title and date for each."""
    assert [d.id for d in case.documents] == ids
    assert [s.id for s in case.sentences] == ["1:0", "1:1", "1:2", "2:0", "2:1", "2:2"]
    assert texts(case)[1:3] == NEW.split("\n") and texts(case)[4:] == OLD.split("\n")
    assert dates[0] in texts(case)[0] and dates[1] in texts(case)[3]
    assert case.note is not None
    assert [case.note[d.start : d.end] for d in case.documents] == [NEW, OLD]
    assert case.document_of("2:1") == case.documents[1]


def mimic(folder: Path, messages: str, name: str = "discharge.csv.gz") -> Path:
    raw = sources.MIMIC.encode()
    (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    (folder / "messages.csv").write_text(messages)
    return folder / name


def test_mimic_notes_of_a_patient(tmp_path: Path) -> None:
    data = read_dataset(mimic(tmp_path, f"subject_id,message\n10,{WORDS}\n"))
    (case,) = data.cases
    assert (case.id, case.narrative, data.title) == ("10", WORDS, "discharge")
    check_two_notes(case, ["10-DS-2", "10-DS-1"], ("2150-03-04", "2150-01-02"))
    assert any("1 notes have no message" in note for note in data.notes)


@pytest.mark.parametrize(("key", "value", "note"), [("note_id", "10-DS-1", OLD), ("hadm_id", "502", NEW)])
def test_mimic_notes_by_note_and_by_stay(tmp_path: Path, key: str, value: str, note: str) -> None:
    (case,) = read_cases(mimic(tmp_path, f"{key},message,question\n{value},Why?,What for?\n", "discharge.csv"))
    assert texts(case) == note.split("\n") and case.clinician_question == "What for?" and case.id == value


def test_a_table_of_messages_of_another_place_and_two_messages_of_one_patient(tmp_path: Path) -> None:
    path = mimic(tmp_path, "x\n")
    other = tmp_path / "asked.jsonl"
    other.write_text('{"subject_id": 10, "message": "Why?"}\n{"subject_id": 10, "message": "When?"}\n')
    cases = read_cases(path, options=ReadOptions(messages=other))
    assert [(c.id, c.narrative) for c in cases] == [("10", "Why?"), ("10-2", "When?")]
    assert cases[0].sentences == cases[1].sentences


@pytest.mark.parametrize("name", ["note.csv", "note.parquet"])
def test_an_omop_note_table(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(sources.OMOP)
    if name.endswith("parquet"):
        pd.read_csv(path).to_parquet(path)
    (tmp_path / "messages.csv").write_text(f"person_id,message\n7,{WORDS}\n")
    (case,) = read_cases(path)
    check_two_notes(case, ["2", "1"], ("2019-03-04", "2019-01-02"))
    assert texts(case)[0] == "Discharge summary, 2019-03-04:"
    (only,) = read_cases(path, options=ReadOptions(note_type=frozenset({"progress note"})))
    assert texts(only) == OLD.split("\n")


def as_bundle(folder: Path) -> Path:
    return sources.write_json(folder / "b.json", sources.synthea())


def as_ndjson(folder: Path) -> Path:
    return sources.write_ndjson(folder / "b.ndjson", *(e["resource"] for e in sources.synthea()["entry"]))


def as_packed(folder: Path) -> Path:
    (folder / "b.ndjson.gz").write_bytes(gzip.compress(as_ndjson(folder).read_bytes()))
    return folder / "b.ndjson.gz"


def as_folder_of_kinds(folder: Path) -> Path:
    """As bulk exports are: a file a resource type."""
    for entry in sources.synthea()["entry"]:
        with (folder / f"{entry['resource']['resourceType']}.ndjson").open("a") as out:
            out.write(sources.json.dumps(entry["resource"]) + "\n")
    return folder


def as_folder_of_resources(folder: Path) -> Path:
    for entry in sources.synthea()["entry"]:
        sources.write_json(folder / f"{entry['resource']['id']}.json", entry["resource"])
    return folder


def as_folder_of_bundles(folder: Path) -> Path:
    sources.write_json(folder / "hospital.json", {"resourceType": "Bundle", "type": "collection", "entry": []})
    as_bundle(folder)
    return folder


@pytest.mark.parametrize(
    "made",
    [as_bundle, as_ndjson, as_packed, as_folder_of_kinds, as_folder_of_resources, as_folder_of_bundles],
)
def test_fhir_as_synthea_writes_it(tmp_path: Path, made: Callable[[Path], Path]) -> None:
    data = read_dataset(made(tmp_path))
    (case,) = data.cases
    assert (case.id, case.narrative) == ("p1", WORDS)
    check_two_notes(case, ["d2", "d1"], ("2020-03-04", "2020-01-02"))
    assert case.documents[0].url == "DocumentReference/d2" and case.documents[0].type == "18842-5"
    assert any("same text" in note for note in data.notes), "the report repeats the document"


def test_fhir_as_a_hapi_server_gives_it(tmp_path: Path) -> None:
    (case,) = read_cases(sources.write_json(tmp_path / "h.json", sources.hapi()))
    assert case.narrative == WORDS and case.id == "p1"
    assert texts(case)[0] == "Course:" and "Stable & well." in texts(case) and "Weigh daily." in texts(case)
    assert case.documents[0].title == "Hospital discharge"


def test_fhir_attachments_by_url_are_local_files(tmp_path: Path) -> None:
    (tmp_path / "Binary").mkdir()
    (tmp_path / "Binary/note1.html").write_text(sources.HTML)
    (case,) = read_cases(sources.write_json(tmp_path / "e.json", sources.epic()))
    assert "He was given furosemide." in texts(case)


@pytest.mark.parametrize("kind", ["bundle", "ndjson"])
def test_fhir_attachments_in_binary_resources(tmp_path: Path, kind: str) -> None:
    made = sources.epic()
    binary = {
        "resourceType": "Binary",
        "id": "note1",
        "contentType": "text/html",
        "data": sources.base64_of(sources.HTML),
    }
    made["entry"].append({"fullUrl": "https://epic.example.org/api/FHIR/R4/Binary/note1", "resource": binary})
    if kind == "bundle":
        path = sources.write_json(tmp_path / "e.json", made)
    else:
        path = sources.write_ndjson(tmp_path / "e.ndjson", *(e["resource"] for e in made["entry"]))
    assert "He was given furosemide." in texts(read_cases(path)[0])


def test_fhir_takes_the_plainest_form_that_can_be_read(tmp_path: Path) -> None:
    forms = [
        {"attachment": {"contentType": "application/pdf", "data": sources.base64_of(sources.pdf())}},
        {"attachment": {"contentType": "text/html", "data": sources.base64_of("<p>As HTML.</p>")}},
        {
            "attachment": {
                "contentType": "text/plain;charset=ISO-8859-1",
                "data": sources.base64_of("Ödem.".encode("latin-1")),
            }
        },
        {"attachment": {"contentType": "text/rtf", "data": sources.base64_of(sources.RTF)}},
    ]
    made = sources.bundle(sources.document("d1", "", "2020", content=forms), sources.communication("m", WORDS))
    assert texts(read_cases(sources.write_json(tmp_path / "b.json", made))[0]) == ["Ödem."]
    forms[2]["attachment"]["url"] = forms[2]["attachment"].pop("data") and "https://elsewhere.example.org/x"
    assert texts(read_cases(sources.write_json(tmp_path / "b.json", made))[0]) == ["As HTML."]


def test_fhir_notes_that_are_not_final_are_left_out_and_told(tmp_path: Path) -> None:
    made = sources.bundle(
        sources.document("d1", "Draft.", "2020", docStatus="preliminary"),
        sources.document("d2", "Wrong patient.", "2020", docStatus="entered-in-error"),
        sources.document("d3", "Replaced.", "2020", status="superseded"),
        sources.document("d4", NEW, "2020", docStatus="final"),
        sources.communication("m1", WORDS),
        sources.communication("m2", "A draft of ours.", status="preparation"),
        sources.communication("m3", "From the doctor.", sender={"reference": "Practitioner/9"}),
    )
    data = read_dataset(sources.write_json(tmp_path / "b.json", made))
    (case,) = data.cases
    assert texts(case) == NEW.split("\n") and any("3 notes were left out" in note for note in data.notes)
    made["entry"] = [e for e in made["entry"] if e["resource"]["id"] != "d4"]
    with pytest.raises(DataError, match=r"no note for the message of p1.*3 notes were left out"):
        read_cases(sources.write_json(tmp_path / "b.json", made))


def test_fhir_notes_of_one_type(tmp_path: Path) -> None:
    path = as_bundle(tmp_path)
    for wanted in ("18842-5", "discharge SUMMARY"):
        (case,) = read_cases(path, options=ReadOptions(note_type=frozenset({wanted.lower()})))
        assert texts(case) == NEW.split("\n")


def test_fhir_without_messages_takes_a_table_of_them(tmp_path: Path) -> None:
    made = sources.synthea()
    made["entry"].pop()
    (tmp_path / "messages.csv").write_text(f"patient_id,message\np1,{WORDS}\n")
    (case,) = read_cases(sources.write_json(tmp_path / "b.json", made))
    assert case.narrative == WORDS and len(case.documents) == 2


def test_many_patients_in_ndjson(tmp_path: Path) -> None:
    resources = [
        made
        for n in range(5)
        for made in (
            sources.document(f"d{n}", f"Note {n}. Seen.", "2020", patient=f"Patient/p{n}"),
            sources.communication(f"m{n}", f"Why {n}?", patient=f"Patient/p{n}"),
        )
    ]
    cases = read_cases(sources.write_ndjson(tmp_path / "all.ndjson", *resources))
    assert [(c.id, c.narrative, texts(c)[0]) for c in cases] == [(f"p{n}", f"Why {n}?", f"Note {n}.") for n in range(5)]
