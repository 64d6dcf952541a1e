"""Stage 1 without an LM on messages of every kind: no unknown word, verbs that agree, the right person, the limit."""

from __future__ import annotations

import re

import dspy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archehr.program.extractive.reformulate import ExtractiveReformulate, reformulate
from archehr.program.extractive.text import words
from archehr.program.extractive_program import extractive_program
from archehr.program.settings import PRESETS
from archehr.program.stages.reformulate import Reformulate
from tests.fake_lm import fake_lm
from tests.program.question.messages import MESSAGES, Sent

IDS = [f"{i}-{sent.kind}" for i, sent in enumerate(MESSAGES)]

# What a question may say that its message does not: who it is about, how it asks, and the frames of a message without
# a question.
CLOSED = frozenset(
    """
    the patient patient's family they them their themselves is are was were does do did has have can
    what when if that it there true and given about for
    information treatment advised explains help
    """.split()
)
FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|me|my|mine|myself)\b", re.IGNORECASE)
# "do the patient", "the patient have" (unless "does" or "help" stands before), "they is".
WRONG_VERB = re.compile(
    r"\b(?:do|don't|are|am|have|were) the (?:patient|family)\b(?! and)"
    r"|(?<!does )(?<!did )(?<!can )(?<!will )(?<!could )(?<!should )(?<!would )(?<!help )"
    r"\bthe patient (?:am|are|have|do|need|take|feel)\b"
    r"|\b(?:does|did|can|will|could|should|would) the patient (?:has|is|needs|takes|feels|gets|does)\b"
    r"|\bthey (?:am|is|was|has|does)\b",
    re.IGNORECASE,
)  # fmt: skip


def unknown_words(question: str, message: str) -> set[str]:
    """Words of the question that are neither in the message, in whatever ending, nor in the closed list."""
    told = {_root(w) for w in words(message)} | ({"get"} if "got" in words(message) else set())
    return {w for w in words(question) if w not in CLOSED and _root(w) not in told}


def _root(word: str) -> str:
    """ "stopped", "stops" and "stop" alike; "dont" as "don't"."""
    return re.sub(r"(.)\1$", r"\1", re.sub(r"(?<=\w{3})(?:ed|es|s|e)$", "", word.replace("'", "")))


@pytest.mark.parametrize("sent", MESSAGES, ids=IDS)
def test_each_message_gets_its_question(sent: Sent) -> None:
    assert reformulate(sent.message) == sent.question


@pytest.mark.parametrize("sent", MESSAGES, ids=IDS)
def test_no_unknown_word_and_every_verb_agrees(sent: Sent) -> None:
    question = reformulate(sent.message)
    assert not unknown_words(question, sent.message)
    assert not WRONG_VERB.search(question)


@pytest.mark.parametrize("sent", MESSAGES, ids=IDS)
def test_the_question_asks_about_the_right_person(sent: Sent) -> None:
    question = reformulate(sent.message)
    is_of_patient = "the patient" in question.lower()
    if sent.asked_about == "writer":
        assert FIRST_PERSON.search(question) and not is_of_patient
    elif sent.asked_about == "patient":
        assert is_of_patient and not FIRST_PERSON.search(question)
    elif sent.asked_about == "family":
        assert "the family" in question and not FIRST_PERSON.search(question)
    else:
        assert not is_of_patient


def test_the_set_is_large_and_its_checks_can_fail() -> None:
    assert len(MESSAGES) >= 60
    assert len({sent.message for sent in MESSAGES}) == len(MESSAGES)
    assert unknown_words("Does the patient have cirrhosis?", "I have a cough. Do I have it?") == {"cirrhosis"}
    for wrong in (
        "Do the patient have cancer?",
        "Does the patient has cancer?",
        "Is it bad that the patient feel ill?",
    ):
        assert WRONG_VERB.search(wrong), wrong


# Messages put together from what writers say of themselves or a relative, and from what they ask.
OF_MYSELF = st.sampled_from(
    ["I had a stroke in May.", "I have kidney failure and I am tired.", "I was told my heart is weak.",
     "I'm 63 and took warfarin for years."]
)  # fmt: skip
ASKED_OF_MYSELF = st.sampled_from(
    ["do I have {x}", "am I going to have {x}", "why was I given {x}", "should I take {x} if I feel dizzy",
     "have I had {x}", "I want to know if I need {x}", "how long do I need {x}", "what happens when I'm off {x}",
     "is it safe that I take {x} and feel ill", "If I stop will I need {x}"]
)  # fmt: skip
KIN = st.sampled_from(["mother", "dad", "wife", "husband", "son", "sister", "uncle"])
HE_OR_SHE = {"mother": "she", "wife": "she", "sister": "she"}
ASKED_OF_KIN = st.sampled_from(
    ["does {he} have {x}", "is {he} going to have {x}", "do my {kin} have {x}", "I wonder if {he} needs {x}",
     "why {he} got {x}", "should my {kin} take {x}", "If {he} stops will {he} need {x}"]
)  # fmt: skip
THING = st.sampled_from(["dialysis", "an infection", "a pacemaker", "chemo"])


@settings(deadline=None, max_examples=150)
@given(OF_MYSELF, ASKED_OF_MYSELF, THING, st.sampled_from(["?", "??", ".", ""]))
def test_what_the_writer_asks_of_themselves(told: str, asked: str, thing: str, mark: str) -> None:
    message = f"{told} {asked.format(x=thing)}{mark}"
    question = reformulate(message)
    assert "the patient" in question.lower() and not FIRST_PERSON.search(question), question
    assert not WRONG_VERB.search(question), question
    assert not unknown_words(question, message), question


@settings(deadline=None, max_examples=150)
@given(KIN, ASKED_OF_KIN, THING, st.sampled_from(["?", "??", ""]))
def test_what_the_writer_asks_of_a_relative(kin: str, asked: str, thing: str, mark: str) -> None:
    he = HE_OR_SHE.get(kin, "he")
    message = f"My {kin} had a stroke and {he} is weak. {asked.format(kin=kin, he=he, x=thing)}{mark}"
    question = reformulate(message)
    assert "the patient" in question.lower() and not FIRST_PERSON.search(question), question
    assert not WRONG_VERB.search(question), question
    assert not unknown_words(question, message), question


@settings(deadline=None, max_examples=100)
@given(KIN, st.sampled_from(["Am I going to get it too", "Should I be tested", "Could I be a carrier", "Do I have it"]))
def test_what_the_writer_asks_of_themselves_stays_theirs_though_a_relative_is_ill(kin: str, asked: str) -> None:
    he = HE_OR_SHE.get(kin, "he")
    assert reformulate(f"My {kin} has lupus and {he} is on steroids. {asked}?") == f"{asked}?"


PIECES = st.sampled_from(
    ["my dad had a stroke", "why did they stop it??", "I have AKI", "please help", "can you advise?", "thanks", "?",
     "is this normal", "doctor said u need dialysis", "WHY NO PACEMAKER", "...", "!!", "\n", "what to do.", "her leg",
     "SUBJECT: gout", "MESSAGE:", "Re:", "if I stop, will it", "(hold", "e.g.", "I", "my", "she's", '"', "1) Is it"]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=12).map(" ".join))


@settings(deadline=None)
@given(TEXTS, st.lists(TEXTS, max_size=3), st.integers(1, 30))
def test_any_text_gives_one_line_within_the_limit(narrative: str, phrases: list[str], limit: int) -> None:
    question = ExtractiveReformulate(limit)(narrative=narrative, phrases=tuple(phrases)).question
    assert 1 <= len(question.split()) <= limit
    assert len(question.splitlines()) == 1
    assert question.endswith("?") and question.count("?") == 1 and len(question) > 1


@settings(deadline=None)
@given(st.lists(PIECES, max_size=12).map(" ".join))
@example("thanks Re: please help")
@example('" Re: please help')
def test_a_label_never_opens_a_question(narrative: str) -> None:
    assert not re.match(r"(?:subject|message|note|re)\b\s*:", reformulate(narrative), re.IGNORECASE)


def test_the_limit_of_the_settings_is_kept() -> None:
    settings = PRESETS["default"].model_copy(update={"question_words": 6})
    long = "I had a stent. Why did they stop the metoprolol on Monday and not tell me about it at all?"
    assert len(extractive_program(settings).reformulate(narrative=long).question.split()) <= 6
    with dspy.context(lm=fake_lm(lambda request: '{"question": ""}'), adapter=dspy.JSONAdapter()):
        fallen_back = Reformulate(settings)(narrative=long)
    assert 1 <= len(fallen_back.question.split()) <= 6 and fallen_back.notices
    assert len(reformulate(long, limit=6).split()) <= 6 < len(reformulate(long).split())
