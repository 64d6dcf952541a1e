"""A note that says nothing on the question: every program says so, in one sentence, without a citation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15

from archehr.data.case import Case
from archehr.data.dataset import read_cases
from archehr.data.splitter import split_note
from archehr.data.submission import read_submission, validate_submission
from archehr.optimize.students.answerable import fit_answerable
from archehr.program.declining import NOT_ANSWERED, RULE
from archehr.program.extractive_program import extractive_program
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program, save_program_file, to_file
from archehr.program.prompts.show import stage_messages
from archehr.program.run.records import CaseRecord
from archehr.program.run.run import run_cases
from archehr.program.settings import PRESETS
from archehr.program.stages.generate import GenerateSignature, check_answer
from tests.benchmarks.declining import KINDS, declined, pairs
from tests.fake_lm import asked, fake_lm
from tests.stub_server import answer_stage

NOTES = {
    "shoulder": "Brief Hospital Course:\nThe patient was admitted with pain in the left shoulder that began three "
    "weeks ago. X-rays showed no fracture. It is most likely a tendon problem of the rotator cuff. An MRI was ordered "
    "and he was sent to physical therapy for six to eight weeks.",
    "lungs": "Brief Hospital Course:\nCT of the chest was done because of concern for pulmonary embolism (ruled out). "
    "She was treated for a heart attack with a stent to the LAD.\n\nDischarge Instructions:\nTake lisinopril 10 mg "
    "daily for your blood pressure (hold if SBP < 100).",
    "hip": "Brief Hospital Course:\nShe was admitted with a broken hip after a fall and had it pinned on [**8-12**]. "
    "She drinks about [**11-26**] alcoholic drinks a week and was watched for withdrawal.\n\nFollowup Instructions:\n"
    "See the surgeon in [**1-16**] weeks.",
}
CASE = read_cases("sample/test")[0]


def case_of(note: str, message: str) -> Case:
    return Case("1", message, note=NOTES[note], sentences=split_note(NOTES[note]))


def extractive(case: Case, **changed: Any) -> CaseRecord:
    program = extractive_program(PRESETS["default"].model_copy(update=changed))
    return run_cases([case], program).records[0]


def kinds(record: CaseRecord) -> list[str]:
    return [n["kind"] for n in record.notices]


def check_declined(record: CaseRecord) -> None:
    assert record.declined and record.answer == NOT_ANSWERED and record.answer_sentences == [NOT_ANSWERED]
    assert record.evidence == [] and [link.evidence_ids for link in record.links or []] == [[]]
    assert kinds(record).count("not_answered") == 1


@pytest.mark.parametrize("note", NOTES)
@pytest.mark.parametrize(
    "message",
    [
        "When is my baby due?",
        "Should I get the shingles vaccine?",
        "Is my thyroid cancer coming back?",
        "I am having a rash on both legs that itches at night. Which cream should I use?",
        "Was my colonoscopy normal?",
    ],
)
def test_without_an_lm_what_the_note_says_nothing_on_is_declined(note: str, message: str) -> None:
    check_declined(extractive(case_of(note, message)))


@pytest.mark.parametrize(
    ("note", "message"),
    [
        ("shoulder", "What is wrong with my shoulder?"),
        ("shoulder", "Did the x-ray show a fracture?"),
        ("shoulder", "How long do I need physical therapy?"),
        ("lungs", "Did she have a pulmonary embolism?"),
        ("lungs", "When should I hold the lisinopril?"),
        ("lungs", "My mother went in with chest pain, they said heart attack. Did she have a clot in her lungs?"),
        ("hip", "My mom broke her hip. When was her surgery?"),
        ("hip", "When do I see the surgeon?"),
        ("hip", "Why?"),
        ("shoulder", "It says rotator cuff, what is that about?"),
    ],
)
def test_without_an_lm_what_the_note_speaks_of_is_answered(note: str, message: str) -> None:
    record = extractive(case_of(note, message))
    assert not record.declined and record.evidence and "not_answered" not in kinds(record)


def test_no_abstain_answers_in_any_case() -> None:
    record = extractive(case_of("shoulder", "When is my baby due?"), abstain=False)
    assert record.declined is False and record.answer != NOT_ANSWERED and record.evidence


def test_out_of_sample_four_in_five_foreign_questions_are_declined_and_hardly_an_own_one() -> None:
    """The goal on sample/test; the curve itself: python -m tests.benchmarks.declining."""
    cases = read_cases("sample/test")
    model = fit_answerable(read_cases("sample/dev"))
    for kind in KINDS:
        true, crossed = declined([p for case in cases for p in pairs(case, kind, cases, model)], KINDS[kind])
        assert true <= 0.05 and crossed >= 0.8


@pytest.mark.parametrize(
    "said",
    [
        ["The note does not answer this question."],
        ["the note does not answer this question"],
        ["  The note doesn't answer this question. "],
        ['"The note does not answer this question."'],
        ["“The note does not answer this question”."],
        ["**The note does not answer this question.**"],
        ["Answer: The note does not answer this question."],
        ["", "THE NOTE DOES NOT ANSWER THIS QUESTION!"],
        ["The note does not answer this question.", "The note does not answer the question."],
    ],
)
def test_a_declining_reply_is_known_in_any_dress(said: list[str]) -> None:
    checked = check_answer(said, PRESETS["default"])
    assert checked.value == [NOT_ANSWERED] and checked.fault is None
    assert [n.kind for n in checked.notices] == ["not_answered"]


@pytest.mark.parametrize(
    "said",
    [["It was an ulcer.", NOT_ANSWERED], [NOT_ANSWERED, "It was an ulcer."], [f"{NOT_ANSWERED} It was an ulcer."]],
)
def test_beside_an_answer_the_declining_sentence_goes_with_a_notice(said: list[str]) -> None:
    checked = check_answer(said, PRESETS["default"])
    assert checked.value == ["It was an ulcer."] and [n.kind for n in checked.notices] == ["repaired"]


@pytest.mark.parametrize(
    "said",
    [["The note does not answer this question of dose, but says when."], ["The note does answer this question."]],
)
def test_what_only_resembles_it_is_an_answer(said: list[str]) -> None:
    assert check_answer(said, PRESETS["default"]).value == said


def test_where_every_case_has_an_answer_the_sentence_is_one_like_any_other() -> None:
    assert check_answer([NOT_ANSWERED, "It was."], PRESETS["seed"]).value == [NOT_ANSWERED, "It was."]


def declining_lm(generate: str) -> dspy.LM:
    def reply(request: lm15.Request) -> str:
        text = asked(request)
        return generate if "`answer_sentences`" in text.rsplit("Respond with", 1)[-1] else answer_stage(text)

    return fake_lm(reply)


def test_a_declined_answer_of_an_lm_is_not_linked_and_the_submissions_are_acceptable(tmp_path: Path) -> None:
    lm = declining_lm(json.dumps({"answer_sentences": ["The note does not answer this question"]}))
    without_answers = replace(CASE, answer_sentences=())
    for number, case in enumerate((CASE, without_answers)):
        result = run_cases([case], GroundedQA(), lm, out=tmp_path / str(number))
        (record,) = result.records
        check_declined(record)
        if case.answer_sentences:
            assert any(link.evidence_ids for link in record.given_links or [])  # the clinician's answer is another
        for subtask, path in result.files.items():
            assert validate_submission(read_submission(path), [case], subtask).faults == []
        assert set(result.files) == {1, 2, 3, 4}
        assert "Not answered:" in (tmp_path / str(number) / "report.html").read_text()
        assert result.manifest.notices["not_answered"] == 1
        assert json.loads((tmp_path / str(number) / "predictions.jsonl").read_text())["declined"] is True


def test_where_the_lm_fails_the_twin_declines() -> None:
    lm = declining_lm("no JSON")
    (record,) = run_cases([case_of("shoulder", "When is my baby due?")], GroundedQA(), lm).records
    check_declined(record)
    assert "lm_failed" in kinds(record)


def test_a_run_with_and_one_without_are_two_runs(tmp_path: Path) -> None:
    case = case_of("shoulder", "When is my baby due?")
    program = extractive_program(PRESETS["default"].model_copy(update={"abstain": False}))
    run_cases([case], extractive_program(), out=tmp_path)
    with pytest.raises(ValueError, match="settings"):
        run_cases([case], program, out=tmp_path)


@pytest.mark.parametrize("name", ["zero_shot", "handwritten"])
def test_an_lm_is_asked_for_it_in_so_many_words_but_not_by_the_published_system(name: str) -> None:
    inputs = dict.fromkeys(("question", "evidence", "note"), "x")
    assert GenerateSignature.instructions.endswith(RULE) and NOT_ANSWERED in RULE
    assert RULE in stage_messages(load_program(name), "generate", inputs)[0]["content"].replace("\n        ", "\n")
    seed = stage_messages(load_program(name, PRESETS["seed"]), "generate", inputs)[0]["content"]
    assert NOT_ANSWERED not in seed and "no filler, no citations." in seed


def test_a_program_file_without_the_rule_asks_for_it_too(tmp_path: Path) -> None:
    program = GroundedQA(PRESETS["seed"])
    file = to_file(program)
    save_program_file(file.model_copy(update={"settings": PRESETS["default"]}), tmp_path / "p.json")
    assert load_program(tmp_path / "p.json").generate.predict.signature.instructions.endswith(RULE)


@pytest.mark.parametrize(
    ("note", "question"),
    [
        ("He was admitted with confusion from liver disease. Lactulose was started.", "Why was my dad confused?"),
        ("An infection of the knee was drained.", "Is my knee infected?"),
        ("She has a depression and takes sertraline.", "Why am I so depressed?"),
        (
            "Discharge Medications:\nmetoprolol 50 mg twice a day\napixaban 5 mg",
            "What are my heart medicines and doses?",
        ),
        ("Meds: warfarin 2.5 mg nightly", "How many tablets should my mother take, and which?"),
    ],
)
def test_other_words_of_one_family_and_lists_of_medicines_are_answers(note: str, question: str) -> None:
    case = Case("x", narrative=question, note=note, sentences=split_note(note))
    (record,) = run_cases([case], load_program("extractive")).records
    assert record.declined is False


@pytest.mark.parametrize("question", ["Which pills should I take for my thyroid?", "What dose of insulin do I need?"])
def test_a_note_without_a_dose_names_no_medicine(question: str) -> None:
    note = "The patient was admitted with pain in the left shoulder. X-rays showed no fracture."
    case = Case("x", narrative=question, note=note, sentences=split_note(note))
    (record,) = run_cases([case], load_program("extractive")).records
    assert record.declined is True
