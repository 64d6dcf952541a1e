"""Stage 1 without an LM: which sentence is the question, and how it is put."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.dataset import read_cases
from archehr.program.extractive.focus import asks
from archehr.program.extractive.person import is_about_writer, third_person
from archehr.program.extractive.reformulate import ExtractiveReformulate, close, reformulate, topics

FRAGMENTS = st.sampled_from(
    ["my dad had a stroke", "why did they stop it??", "I have AKI", "please help", "can you advise?", "thanks", "?",
     "is this normal", "doctor said u need dialysis", "WHY NO PACEMAKER", "...", "!!", "\n", "what to do.", "her leg"]
)  # fmt: skip
MESSAGES = st.one_of(st.text(), st.lists(FRAGMENTS, max_size=12).map(" ".join))


@settings(deadline=None)
@given(MESSAGES, st.lists(MESSAGES, max_size=3))
def test_a_question_is_one_line_of_1_to_15_words_with_one_question_mark(narrative: str, phrases: list[str]) -> None:
    question = ExtractiveReformulate()(narrative=narrative, phrases=tuple(phrases)).question
    assert 1 <= len(question.split()) <= 15
    assert "\n" not in question
    assert question.endswith("?") and question.count("?") == 1


@pytest.mark.parametrize(
    ("message", "main"),
    [
        ("He fell. Was it the warfarin? Thank you in advance.", "Was it the warfarin?"),
        ("I dont get why they stopped the heparin. He is fine.", "why they stopped the heparin."),
        ("My question is: should we worry about his leg. Regards", "should we worry about his leg."),
        ("She was told to rest. I want to know what causes the seizures", "what causes the seizures"),
        ("When my brother had it he got pills. So why the IV line", "So why the IV line"),
        ("Can you help? Is this from the lupus?", "Is this from the lupus?"),
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
        ("My dad fell. Why did they stop his warfarin??", "Why did the team stop the patient's warfarin?"),
        ("I had a stent. Do I need dialysis for life or not", "Does the patient need dialysis for life?"),
        ("I am 63 and tired of this. why can't I just take pills", "Why can't the patient take pills?"),
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


def test_nobody_in_the_question_is_i_or_a_relative() -> None:
    for case in [*read_cases("sample/dev"), *read_cases("sample/test")]:
        for phrases in ((), case.question_phrases):
            asked = re.findall(r"[a-z]+", reformulate(case.narrative, phrases).lower())
            assert not {"i", "im", "my", "me", "dad", "mom", "mother", "wife", "husband"} & set(asked), case.id


def test_who_the_patient_is() -> None:
    assert is_about_writer("I'm 34 and this was my 2nd baby. I woke up in the ICU and my husband cried.")
    assert not is_about_writer("My dad is 78, he was ok on thursday. I was there when they told him.")
    assert third_person("Will he walk again??", about_writer=False) == "will the patient walk again"
    assert third_person("am I going to walk again", about_writer=True) == "is the patient going to walk again"
    assert (
        third_person("did it hurt her leg or her", about_writer=False) == "did it hurt the patient's leg or the patient"
    )


def test_a_long_question_is_cut_where_a_clause_ends() -> None:
    long = "why did the clinic stop it in march, when all of them had said that it should go on"
    assert close(long) == "Why did the clinic stop it in march?"
    assert close("one two three four five six seven eight nine ten eleven twelve thirteen fourteen of the") == (
        "One two three four five six seven eight nine ten eleven twelve thirteen fourteen?"
    )


def test_topics_are_the_patients_own_words_most_mentioned_first() -> None:
    assert topics("a rash, then kidney failure. Now kidneys on dialysis and my kidney hurts")[0] == "kidneys"
    assert topics("we drove home and had lunch") == []
