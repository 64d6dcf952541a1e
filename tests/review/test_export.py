"""Exports: what a reviewer left comes back byte for byte, in the official form and in three others."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import dspy
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archehr.data.case import AnswerSentence, Case, DataError, Gold, Relevance, Sentence
from archehr.data.dataset import read_cases
from archehr.data.submission import validate_submission
from archehr.program.declining import NOT_ANSWERED
from archehr.program.stages.registry import STAGES, has_gold
from archehr.review.agreement import Reviews
from archehr.review.export.forms import FORMS, export
from archehr.review.export.official import write_official
from archehr.review.export.settle import Reviewed, labelled, settled
from archehr.review.history import CaseReview, Open
from archehr.review.labels import AnswerLine, Labels

E, S, N = Relevance.ESSENTIAL, Relevance.SUPPLEMENTARY, Relevance.NOT_RELEVANT
CASE = Case(
    id='ward 3 / "7"\t<&>',
    narrative="Why?\n\n  Is it é, 😀 or &amp;?\r\nTell me, \u00a0please.",
    question_phrases=("Tell me",),
    clinician_question="Why?",
    specialty="Cardiology",
    note="Fell ill.\r\n\nGot “well”, then\nwent home, NA.",
    sentences=(
        Sentence("1", "Fell ill.", "1"),
        Sentence("1a", "Got “well”, then\nwent home, NA."),
        Sentence("10", "=1+1; \u2028 x"),
    ),
)
LABELS = Labels(
    question="What happened, “exactly”?",
    marks={"1": E, "1a": S, "10": N},
    answer=(AnswerLine(id="1", text="He fell ill,\tthen\r\nwell.", links=("1", "1a")), AnswerLine(id="2", text="NA")),
    harm="could mislead",
    remark="Say when & where.",
    finished=True,
)


def review_of(labels: Labels = LABELS, said: Labels | None = None) -> CaseReview:
    return CaseReview(Open(text="0", start=labels, said=said), seconds=12.34)


def reviewed(labels: Labels = LABELS, case: Case = CASE) -> Reviewed:
    review = review_of(labels, said=labels.model_copy(update={"marks": {"1": S, "1a": S, "10": None}}))
    return Reviewed(labelled(case, review), "ann", review)


def test_what_was_reviewed_is_read_back_as_it_was(tmp_path: Path) -> None:
    export([reviewed()], tmp_path / "out", "data")
    (case,) = read_cases(tmp_path / "out")
    assert (case.id, case.narrative, case.note) == (CASE.id, CASE.narrative, CASE.note)
    assert [(s.id, s.text, s.paragraph_id) for s in case.sentences] == [
        (s.id, s.text, s.paragraph_id) for s in CASE.sentences
    ]
    assert (case.specialty, case.question_phrases) == (CASE.specialty, CASE.question_phrases)
    assert case.clinician_question == LABELS.question
    assert case.gold is not None and case.gold.relevance == LABELS.marks
    assert [(a.id, a.text, a.citations) for a in case.gold.answer_sentences] == [
        ("1", "He fell ill,\tthen\r\nwell.", ("1", "1a")),
        ("2", "NA", ()),
    ]
    assert case.gold.remark == "Say when & where."
    assert case.gold.answer == "He fell ill,\tthen\r\nwell. NA"
    assert all(has_gold(stage, case) for stage in STAGES)
    assert (tmp_path / "out/archehr-qa.xml").stat().st_mode & 0o777 == 0o600


def test_the_key_is_in_the_official_form_with_the_review_beside_it(tmp_path: Path) -> None:
    export([reviewed()], tmp_path, "data")
    (entry,) = json.loads((tmp_path / "archehr-qa_key.json").read_text())
    assert entry["answers"][0] == {"sentence_id": "1", "relevance": "essential"}
    assert entry["clinician_answer"] == "He fell ill,\tthen\r\nwell. [1,1a] NA"
    assert entry["clinician_answer_sentences"][1] == {"id": "2", "text": "NA", "citations": []}
    told = {"reviewer": "ann", "not_answered": False, "harm": "could mislead", "remark": "Say when & where."}
    assert entry["review"] == {**told, "blind": False, "seconds": 12.3}


@pytest.mark.parametrize("name", ["dev", "test"])
def test_the_samples_survive_the_round_trip(tmp_path: Path, name: str) -> None:
    cases = read_cases(f"sample/{name}")
    write_official(cases, [{} for _ in cases], tmp_path)
    assert [without_order(c) for c in read_cases(tmp_path)] == [without_order(c) for c in cases]


def without_order(case: Case) -> Any:
    assert case.gold is not None
    return case, dict(case.gold.relevance or {})


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1).filter(
    lambda t: (
        t == t.strip(" \t\r\n\f\v") and all(c >= " " or c in "\t\n\r" for c in t) and not set(t) & {"\ufffe", "\uffff"}
    )
)


@given(TEXT, st.lists(TEXT, min_size=1, max_size=4), TEXT)
def test_any_text_that_can_be_read_is_written_so_that_it_is_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, narrative: str, sentences: list[str], answer: str
) -> None:
    numbered = tuple(Sentence(str(i), text) for i, text in enumerate(sentences, 1))
    gold = Gold(dict.fromkeys([s.id for s in numbered], E), answer, (AnswerSentence("1", answer, ("1",)),))
    case = Case("7", narrative, (), answer, None, None, numbered, (AnswerSentence("1", answer),), gold)
    folder = tmp_path_factory.mktemp("trip")
    write_official([case], [{}], folder)
    assert read_cases(folder) == [case]


def test_a_text_that_xml_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    odd = Case("7", "Why\x07?")
    with pytest.raises(DataError, match=r"case '7': holds a control character"):
        export([reviewed(LABELS.model_copy(update={"marks": {}}), odd)], tmp_path / "out", "data")
    assert not (tmp_path / "out").exists()


def test_a_note_that_does_not_answer_is_exported_as_such(tmp_path: Path) -> None:
    declined = LABELS.model_copy(update={"not_answered": True, "marks": {"1": N, "1a": N, "10": N}})
    export([reviewed(declined)], tmp_path, "data")
    (case,) = read_cases(tmp_path)
    assert case.gold is not None
    assert [(a.text, a.citations) for a in case.gold.answer_sentences] == [(NOT_ANSWERED, ())]
    assert not has_gold("generate", case) and has_gold("score", case)


def test_json_lines_are_examples_for_dspy(tmp_path: Path) -> None:
    export([reviewed()], tmp_path / "out.jsonl", "jsonl")
    (line,) = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    example = dspy.Example(**json.loads(line)).with_inputs("narrative", "sentences")
    assert example.question == LABELS.question and example.evidence == ["1"]
    assert example.links == [{"answer_id": "1", "evidence_ids": ["1", "1a"]}, {"answer_id": "2", "evidence_ids": []}]
    assert (example.harm, example.remark, example.reviewer) == ("could mislead", "Say when & where.", "ann")


def test_the_table_comes_back_from_pandas_as_it_was(tmp_path: Path) -> None:
    export([reviewed()], tmp_path / "out.csv", "csv")
    frame = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert list(frame["text"]) == [s.text for s in CASE.sentences] + [a.text for a in LABELS.answer]
    assert list(frame["relevance"]) == ["essential", "supplementary", "not-relevant", "", ""]
    assert list(frame["program_relevance"]) == ["supplementary", "supplementary", "", "", ""]
    assert list(frame["links"]) == ["1", "1", "", "1 1a", ""]
    assert set(frame["case_id"]) == {CASE.id}
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == 5


def test_label_studio_spans_hold_the_sentences_and_relations_the_links(tmp_path: Path) -> None:
    made = export([reviewed()], tmp_path / "out.json", "label-studio")
    (task,) = json.loads(made[0].read_text(encoding="utf-8"))
    result = task["annotations"][0]["result"]
    spans = [r for r in result if r["type"] == "labels"]
    assert [(s["id"], s["value"]["labels"]) for s in spans][:2] == [
        ("note-1", ["essential"]),
        ("note-1a", ["supplementary"]),
    ]
    for span in spans:
        value, text = span["value"], task["data"][span["to_name"]]
        assert text[value["start"] : value["end"]] == value["text"]
    links = [(r["from_id"], r["to_id"]) for r in result if r["type"] == "relation"]
    assert links == [("answer-1", "note-1"), ("answer-1", "note-1a")]
    config = made[1].read_text()
    for control in {r["from_name"] for r in result if "from_name" in r}:
        assert f'name="{control}"' in config


def test_only_finished_cases_count_and_an_adjudication_before_what_reviewers_said() -> None:
    cases = {i: Case(i, "Why?") for i in ("1", "2", "3", "4")}
    plain = Labels(question="Why?", answer=(AnswerLine(id="1", text="So."),), finished=True)
    other = plain.model_copy(update={"question": "How?"})
    reviews: dict[str, Reviews] = {
        "ann": {i: review_of(plain) for i in ("1", "2", "3")},
        "bob": {
            "1": review_of(plain.model_copy(update={"harm": "none"})),
            "2": review_of(other),
            "3": review_of(other),
        },
    }
    found, left = settled(cases, reviews, {"3": review_of(other)})
    assert [(r.case.id, r.reviewer, r.case.clinician_question) for r in found] == [
        ("1", "ann", "Why?"),
        ("3", "adjudicated", "How?"),
    ]
    assert left == ["2"]
    mine, left = settled(cases, reviews, {"3": review_of(plain)}, only="bob")
    assert [r.case.clinician_question for r in mine] == ["Why?", "How?", "How?"] and left == []


def test_what_cannot_be_exported_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="--format xls: it is data, jsonl, csv, label-studio"):
        export([reviewed()], tmp_path, "xls")
    with pytest.raises(DataError, match="is a file"):
        export([reviewed()], tmp_path / "file", "data")
    for form in FORMS.keys() - {"data"}:
        with pytest.raises(DataError, match="is a folder"):
            export([reviewed()], tmp_path, form)
    with pytest.raises(DataError, match="no finished case"):
        export([], tmp_path / "out", "data")


def test_exported_data_takes_the_submission_that_it_is_the_answer_to(tmp_path: Path) -> None:
    export([reviewed()], tmp_path, "data")
    cases = read_cases(tmp_path)
    links = [{"case_id": CASE.id, "prediction": [{"answer_id": i, "evidence_id": ["1"]} for i in ("1", "2")]}]
    assert validate_submission(links, cases, 4).ok
