"""What a run leaves for other systems: a table, FHIR drafts that are valid R4, NOTE_NLP rows; and a way back in."""

from __future__ import annotations

import csv
import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

import archehr
from archehr.data.case import Case, DataError, Document, Sentence
from archehr.data.writers.answers import Answered, AnswerPart, Made
from archehr.data.writers.fhir import draft
from archehr.data.writers.omop import note_nlp
from archehr.data.writers.table import rows
from tests import sources
from tests.conftest import Ran

NOTE = "First one. Second one."
MADE = Made("d" * 64, "extractive", "p" * 64, "gemini/x", "0.2.0", datetime(2026, 1, 2, 3, 4, tzinfo=UTC))


def answered_case() -> Answered:
    """Two notes; the answer's first sentence cites one sentence of each, its second none."""
    sentences = (
        Sentence("1:0", "Discharge, 2026:"),
        Sentence("1:1", "First one.", None, 0, 10),
        Sentence("2:0", "Progress, 2025:"),
        Sentence("2:1", "x" * 300, None, 24, 34),
    )
    documents = (
        Document("d2", 0, 22, url="DocumentReference/d2"),
        Document("d1", 24, 46, url="notes/d1.txt"),
    )
    case = Case("c/1", "Why?", note=f"{NOTE}\n\n{NOTE}", sentences=sentences, documents=documents, patient="p1")
    parts = (AnswerPart("Because.", (sentences[0], sentences[1], sentences[3]), 0.8), AnswerPart("Rest.", ()))
    return Answered(case, parts)


def test_a_row_an_answer_sentence() -> None:
    first, second = rows([answered_case()])
    assert first == {
        "case_id": "c/1", "sentence": 1, "text": "Because.", "cited": "1:0 1:1 2:1", "notes": "d2 d1",
        "places": "0-10 0-10", "confidence": 0.8,
    }  # fmt: skip
    assert (second["cited"], second["places"], second["confidence"]) == ("", "", None)


def test_note_nlp_rows_point_into_the_notes() -> None:
    first, second = note_nlp([answered_case()], MADE)
    assert (first["note_id"], first["offset"], first["lexical_variant"]) == ("d2", 0, "First one.")
    assert (second["note_id"], second["offset"], len(second["lexical_variant"])) == ("d1", 0, 250)
    assert second["note_nlp_id"] == 2 and second["nlp_date"] == "2026-01-02" and "gemini/x" in second["nlp_system"]


def test_a_draft_is_valid_r4_and_names_what_made_it() -> None:
    r4b = pytest.importorskip("fhir.resources.R4B")
    made = draft(answered_case(), MADE)
    bundle = r4b.get_fhir_model_class("Bundle").model_validate(made)
    communication, provenance = (entry.resource for entry in bundle.entry)
    assert communication.status == "preparation" and communication.subject.reference == "Patient/p1"
    assert communication.payload[0].contentString == "Because. Rest."
    assert [about.reference or about.display for about in communication.about] == ["DocumentReference/d2", "d1"]
    assert len(communication.note) == 3
    assert provenance.target[0].reference == made["entry"][0]["fullUrl"]
    said = " ".join(agent.who.display for agent in provenance.agent)
    assert "archehr-dspy 0.2.0" in said and "extractive" in said and "gemini/x" in said
    assert draft(answered_case(), MADE) == made, "the same answer is the same draft"


def test_fhir_in_and_drafts_out(command: Callable[..., Ran], tmp_path: Path) -> None:
    sources.write_json(tmp_path / "b.json", sources.synthea())
    ran = command("run", "b.json", "--out", "r", "--export", "fhir", "--export", "omop", "--export", "parquet")
    assert ran.code == 0 and "r/fhir" in ran.out
    written = json.loads((tmp_path / "r/fhir/p1.json").read_text())
    communication = written["entry"][0]["resource"]
    assert communication["subject"] == {"reference": "Patient/p1"}
    assert {"reference": "DocumentReference/d2"} in communication["about"]
    assert "furosemide" in communication["payload"][0]["contentString"]
    if r4b := pytest.importorskip("fhir.resources.R4B"):
        r4b.get_fhir_model_class("Bundle").model_validate(written)
    table = list(csv.DictReader((tmp_path / "r/predictions.csv").open()))
    assert table[0]["case_id"] == "p1" and table[0]["notes"] and 0 <= float(table[0]["confidence"]) <= 1
    assert pd.read_parquet(tmp_path / "r/predictions.parquet")["cited"].tolist() == [row["cited"] for row in table]
    nlp = list(csv.DictReader((tmp_path / "r/note_nlp.csv").open()))
    assert {row["note_id"] for row in nlp} <= {"d1", "d2"}
    kept = [*(tmp_path / "r").glob("predictions.*"), tmp_path / "r/note_nlp.csv", *(tmp_path / "r/fhir").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    again = command("run", "r/fhir/p1.json", "--out", "s")
    assert again.code == 2 and "no patient's message" in again.err, "a draft of ours is no patient's message"


def test_exports_are_checked_before_anything_is_answered(command: Callable[..., Ran]) -> None:
    ran = command("run", "sample/test", "--cases", "101", "--out", "r", "--export", "hl7")
    assert ran.code == 2 and "--export hl7: there are parquet, fhir, omop" in ran.err
    assert not Path("r").exists()


def test_a_frame_of_answers_from_a_frame_of_notes() -> None:
    frame = pd.DataFrame({"id": ["a"], "message": [sources.WORDS], "note": [sources.NEW]})
    result = archehr.run_cases(archehr.read_cases(frame), archehr.load_program("extractive"))
    table = archehr.to_frame(result)
    assert table["case_id"].tolist()[0] == "a" and "furosemide" in table["text"][0]
    assert set(table["cited"][0].split()) <= {"1", "2"}
    with pytest.raises(DataError, match="--export x"):
        archehr.run_cases(archehr.read_cases(frame), archehr.load_program("extractive"), export=("x",))
