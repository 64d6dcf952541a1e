"""The steps of stage 1 without an LM: which sentence is the question, who is asked about, how it is put."""

from __future__ import annotations

import re

import pytest

from archehr.data.dataset import read_cases
from archehr.program.extractive.question.cut import close, without_tail
from archehr.program.extractive.question.focus import asks
from archehr.program.extractive.question.message import read_message
from archehr.program.extractive.question.patient import Patient, who_is_the_patient
from archehr.program.extractive.question.person import third_person
from archehr.program.extractive.question.topic import complaints, diseases, subject_topic
from archehr.program.extractive.question.word_order import directly
from archehr.program.extractive.reformulate import reformulate

WRITER = Patient("writer")
MOTHER = Patient("other", frozenset({"mother", "mom"}), "f")
HUSBAND = Patient("other", frozenset({"husband"}), "m")


@pytest.mark.parametrize(
    ("text", "subject", "sentences"),
    [
        ("SUBJECT: Gout\nMESSAGE: Hello sir, is it safe? thanks", "Gout", ["is it safe?", "thanks"]),
        ("SUBJECT: Gout MESSAGE: is it safe?", "Gout", ["is it safe?"]),
        ("Re: my results. I am 60.", "my results", ["I am 60."]),
        ("I had a scan.\nNote: it was clear.kindly reply", "", ["I had a scan.", "it was clear.", "kindly reply"]),
        ("seen by Dr. Smith at 1.5 mg, see nih.gov for it", "", ["seen by Dr. Smith at 1.5 mg, see nih.gov for it"]),
        ("It goes on over\nthe line end. Then stops", "", ["It goes on over the line end.", "Then stops"]),
        ("...!?", "", []),
    ],
)
def test_a_message_is_read_without_its_labels_and_greetings(text: str, subject: str, sentences: list[str]) -> None:
    message = read_message(text)
    assert (message.subject, list(message.sentences)) == (subject, sentences)


@pytest.mark.parametrize(
    ("message", "main"),
    [
        ("He fell. Was it the warfarin? Thank you in advance.", "Was it the warfarin?"),
        ("I dont get why they stopped the heparin. He is fine.", "why they stopped the heparin."),
        ("My question is: should we worry about his leg. Regards", "should we worry about his leg."),
        ("She was told to rest. I want to know what causes the seizures", "what causes the seizures"),
        ("When my brother had it he got pills. So why the IV line", "So why the IV line"),
        ("Can you help? Is this from the lupus?", "Is this from the lupus?"),
        ("I was sent home, which is far away. is this normal", "is this normal"),
        ("That's why I am here. Can it burst?", "Can it burst?"),
        (
            "Was admitted twice. Do reply me. Whether kidney failure can be cured.",
            "Whether kidney failure can be cured.",
        ),
    ],
)
def test_the_main_question_is_found_without_its_lead_in(message: str, main: str) -> None:
    assert asks(message)[0].text == main


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("My dad fell. Why did they stop his warfarin??", "Why did they stop the patient's warfarin?"),
        ("I had a stent. Do I need dialysis for life or not", "Does the patient need dialysis for life or not?"),
        ("I am 63 and tired of this. why can't I just take pills", "Why can't the patient just take pills?"),
        ("My wife has lupus and she hurts. Could this be cause by lupus?", "Could this be cause by lupus?"),
        ("MY MOTHER HAD TIPS. WHY SHE GOT CONFUSED", "Why did the patient get confused?"),
        ("my mom is weak. please suggest whether her seizures can be cured", "Can the patient's seizures be cured?"),
        ("I have a fever and a rash. Is this normal?", "Is this normal, given fever and rash?"),
        (
            "I have a fever, a cough and a rash. Please help",
            "What explains fever, cough and rash, and what treatment is advised?",
        ),
    ],
)  # fmt: skip
def test_a_message_becomes_a_clinicians_question(message: str, question: str) -> None:
    assert reformulate(message) == question


def test_given_focus_phrases_take_the_place_of_the_search() -> None:
    message = "Why is the food so bad? My dad had dialysis. Will his kidneys recover"
    assert reformulate(message) == "Why is the food so bad, and will the patient's kidneys recover?"
    assert reformulate(message, ("Will his kidneys recover",)) == "Will the patient's kidneys recover?"


def test_on_the_sample_nobody_is_i_or_a_relative_unless_the_writer_asks_of_themselves() -> None:
    kept = set()
    for case in [*read_cases("sample/dev"), *read_cases("sample/test")]:
        for phrases in ((), case.question_phrases):
            asked = re.findall(r"[a-z']+", reformulate(case.narrative, phrases).lower())
            assert not {"dad", "mom", "mother", "wife", "husband", "son", "daughter"} & set(asked), case.id
            if {"i", "i'm", "my", "me"} & set(asked):
                assert "patient" not in asked, case.id  # the writer's own words, whole
                kept.add(case.id)
    assert kept <= {"101", "110"}  # "did I cause this", and a mother's own blood pressure beside her baby


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("I'm 34 and this was my 2nd baby. I woke up in the ICU and my husband cried.", "writer"),
        ("26 m, never sick. Did a workout, pee turned brown.", "writer"),
        ("I am a woman of 71 years with a cough.", "writer"),
        ("My dad is 78, he was ok on thursday. I was there when they told him.", "other"),
        ("I look after a woman with hepatitis C who cannot pay.", "other"),
        ("Is it safe for my daughter to fly with an ear infection?", "other"),
        ("I am a nurse. Is ibuprofen safe?", "unknown"),
        ("I am writing a report on measles.", "unknown"),
        ("", "unknown"),
    ],
)
def test_who_the_patient_is(text: str, who: str) -> None:
    assert who_is_the_patient(text).who == who


@pytest.mark.parametrize(
    ("patient", "question", "put"),
    [
        (WRITER, "am I going to walk again", "is the patient going to walk again"),
        (WRITER, "do I have cancer", "does the patient have cancer"),
        (WRITER, "should I stop if I am dizzy", "should the patient stop if they are dizzy"),
        (WRITER, "why do they say I need my pills", "why do they say the patient needs their pills"),
        (WRITER, "is it ok that I take it and feel sick", "is it ok that the patient takes it and feels sick"),
        (WRITER, "I have fever and cough", "the patient has fever and cough"),
        (WRITER, "can we have a baby", None),
        (WRITER, "can I zap it", "can the patient zap it"),
        (WRITER, "is it bad that I zap it", None),  # a verb we do not know may be past or present
        (MOTHER, "did it hurt her leg or her", "did it hurt the patient's leg or her"),
        (MOTHER, "do my mom have cancer", "does the patient have cancer"),
        (MOTHER, "can my sister get it", None),
        (MOTHER, "is he right", "is he right"),
        (MOTHER, "will her mother come", "will the patient's mother come"),
        (MOTHER, "am I going to have one too", None),
        (MOTHER, "should I give her my pills", None),
        (MOTHER, "should I worry", "should the family worry"),
        (HUSBAND, "can his wife help him", "can the patient's wife help him"),
        (Patient("unknown"), "where can I buy it", None),
        (Patient("unknown"), "who makes it", "who makes it"),
    ],
)
def test_third_person_or_none(patient: Patient, question: str, put: str | None) -> None:
    assert third_person(question, patient) == put


@pytest.mark.parametrize(
    ("embedded", "text", "question"),
    [
        (True, "why she got confused", "why did she get confused"),
        (True, "what I should do", "what should I do"),
        (True, "how serious her situation is", "how serious is her situation"),
        (True, "if severe gout is related to diet", "is severe gout related to diet"),
        (True, "if I have gout", "do I have gout"),
        (True, "if the drug that is given can hurt", "is it true that the drug that is given can hurt"),
        (False, "if it fails will I need dialysis", "will I need dialysis if it fails"),
        (False, "What if I were to stop", "What if I were to stop"),
        (False, "When my brother had it he got pills", "When my brother had it he got pills"),
    ],
)
def test_indirect_questions_become_direct(embedded: bool, text: str, question: str) -> None:
    assert directly(text, embedded) == question


def test_a_long_question_is_cut_where_a_clause_ends() -> None:
    long = "why did the clinic stop it in march, when all of them had said that it should go on"
    assert close(long) == "Why did the clinic stop it in march?"
    assert close("one two three four five six seven eight nine ten eleven twelve thirteen fourteen of the") == (
        "One two three four five six seven eight nine ten eleven twelve thirteen fourteen?"
    )
    assert without_tail("is there a test for it I am 63 years old") == "is there a test for it"
    assert without_tail("what should I do when I am 63") == "what should I do when I am 63"


def test_diseases_are_spelled_as_the_writer_spelled_them_and_denied_ones_left_out() -> None:
    told = read_message(
        "I have Friedreich's ataxia. They ruled out lymphoma, no diabetes. My limb-girdle dystropy hurts"
    )
    assert diseases(told) == ["Friedreich's ataxia"]
    assert diseases(read_message("SUBJECT: CPTII Deficiency\nMESSAGE: help")) == ["CPTII Deficiency"]
    assert complaints(read_message("a dry cough, then severe chest pain. No fever.")) == [
        "dry cough",
        "severe chest pain",
    ]
    assert complaints(read_message("we drove home and had lunch")) == []


def test_a_subject_line_is_a_topic_only_where_it_names_a_thing() -> None:
    assert subject_topic(read_message("SUBJECT: rectal prolapse\nMESSAGE: help")) == "rectal prolapse"
    for subject in ("Customer Service Request", "What should I do", "Question", "[NAME]", "URGENT HELP NEEDED"):
        assert subject_topic(read_message(f"SUBJECT: {subject}\nMESSAGE: help me please")) == "", subject
