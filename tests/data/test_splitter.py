"""Notes of every shape become the sentences a reader sees in them, however they are wrapped, and lose nothing."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.dataset import read_cases
from archehr.data.splitter import split_note
from tests.data.note_shapes import SHAPES

WIDTHS = range(60, 101)


def texts(note: str) -> list[str]:
    return [s.text for s in split_note(note)]


def wrap(note: str, width: int) -> str:
    """The note with every line broken where it gets longer than `width`."""
    return "\n".join(
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in note.split("\n")
    )


def kept(notes: Iterable[str], width: int) -> float:
    """The share of the notes' sentences that are the same when the notes are wrapped."""
    same = found = 0
    for note in notes:
        plain, wrapped = Counter(texts(note)), Counter(texts(wrap(note, width)))
        same += (plain & wrapped).total()
        found += max(plain.total(), wrapped.total())
    return same / found


def sample_notes() -> list[str]:
    return [case.note or "" for name in ("sample/dev", "sample/test") for case in read_cases(name)]


# ------------------------------------------------------------------------------------------------ shapes of notes


@pytest.mark.parametrize("shape", SHAPES)
def test_a_note_of_this_shape(shape: str) -> None:
    note, sentences = SHAPES[shape]
    assert texts(note) == sentences


@pytest.mark.parametrize("shape", SHAPES)
def test_a_wrapped_note_of_this_shape(shape: str) -> None:
    note, sentences = SHAPES[shape]
    wrong = {width for width in WIDTHS if texts(wrap(note, width)) != sentences}
    assert not wrong


@pytest.mark.parametrize(
    ("note", "sentences"),
    [
        # lines that go on with a digit, a bracket, a capital, a mask, a blank, a unit; ragged ends
        (
            "Laboratory:\nCreatinine had come down to\n1.1 with fluids. Troponin was less than\n0.01 on two draws.",
            [
                "Laboratory:",
                "Creatinine had come down to 1.1 with fluids.",
                "Troponin was less than 0.01 on two draws.",
            ],
        ),
        (
            "She rated her headache 9 over\n10. It was better at home. She was told to come back in\n2 weeks.",
            ["She rated her headache 9 over 10.", "It was better at home.", "She was told to come back in 2 weeks."],
        ),
        (
            "He fell twice. The dose of warfarin was raised to 5 mg\n(from 2.5 mg). He was seen at\nMercy Hospital on\n"
            "[**3-4**] and was given\n___ mg of furosemide. His weight fell by 4\nkg in a week.",
            [
                "He fell twice.",
                "The dose of warfarin was raised to 5 mg (from 2.5 mg).",
                "He was seen at Mercy Hospital on [**3-4**] and was given ___ mg of furosemide.",
                "His weight fell by 4 kg in a week.",
            ],
        ),
        (
            "He completed a\n14 day course of ceftriaxone. Creatinine rose to 3.1\n(baseline 1.0) and he needed\n"
            "dialysis for 3 days. He was seen by\nNephrology, who\nfelt that this was ATN.",
            [
                "He completed a 14 day course of ceftriaxone.",
                "Creatinine rose to 3.1 (baseline 1.0) and he needed dialysis for 3 days.",
                "He was seen by Nephrology, who felt that this was ATN.",
            ],
        ),
        ("Follow up with Dr.\nSmith in 2 weeks. Call first.", ["Follow up with Dr. Smith in 2 weeks.", "Call first."]),
        # lists without bullets
        ("Allergies:\npenicillin\nsulfa", ["Allergies:", "penicillin", "sulfa"]),
        ("Allergies:\nPenicillin\nSulfa (hives)\nlatex", ["Allergies:", "Penicillin", "Sulfa (hives)", "latex"]),
        (
            "Meds:\nlisinopril 10 mg daily\nalbuterol inhaler 2 puffs every 4 hours as needed for wheezing\n"
            "fluticasone-salmeterol 250/50 one puff twice a day\nvitamin D 1000 units daily",
            [
                "Meds:",
                "lisinopril 10 mg daily",
                "albuterol inhaler 2 puffs every 4 hours as needed for wheezing",
                "fluticasone-salmeterol 250/50 one puff twice a day",
                "vitamin D 1000 units daily",
            ],
        ),
        # a wrapped item keeps its dose and frequency
        (
            "Discharge Medications:\n"
            "1. Oxycodone 5 mg Tablet Sig: 1-2 Tablets PO every 4-6 hours as needed\nfor pain.\n"
            "2. Lisinopril 10 mg Tablet Sig: One (1) Tablet PO DAILY (Daily), hold if\nSBP < 100.\n"
            "3. Insulin Glargine 100 unit/mL Solution Sig: Fourteen (14) units\nSubcutaneous at bedtime.",
            [
                "Discharge Medications:",
                "1. Oxycodone 5 mg Tablet Sig: 1-2 Tablets PO every 4-6 hours as needed for pain.",
                "2. Lisinopril 10 mg Tablet Sig: One (1) Tablet PO DAILY (Daily), hold if SBP < 100.",
                "3. Insulin Glargine 100 unit/mL Solution Sig: Fourteen (14) units Subcutaneous at bedtime.",
            ],
        ),
        ("1.\nAspirin 81 mg\n2.\nLisinopril 10 mg", ["1. Aspirin 81 mg", "2. Lisinopril 10 mg"]),
        # numbers within a line
        (
            "Meds: 1. aspirin 81 mg 2. clopidogrel 75 mg\n3. atorvastatin 40 mg",
            ["Meds:", "1. aspirin 81 mg", "2. clopidogrel 75 mg", "3. atorvastatin 40 mg"],
        ),
        ("Hgb was 9.8 and INR 2. He was given 2. units.", ["Hgb was 9.8 and INR 2.", "He was given 2. units."]),
        ("He takes one (1) tablet, (2) times a day.", ["He takes one (1) tablet, (2) times a day."]),
        ("Mental Status: Confused - sometimes.", ["Mental Status: Confused - sometimes."]),
        # rows of results, wrapped and within a line
        (
            "[**6-2**] 05:30AM BLOOD WBC-9.8 RBC-3.40* Hgb-10.1* Hct-31.2* MCV-92\nMCH-29.7 Plt Ct-288\n"
            "[**6-3**] 05:30AM BLOOD WBC-8.8",
            [
                "[**6-2**] 05:30AM BLOOD WBC-9.8 RBC-3.40* Hgb-10.1* Hct-31.2* MCV-92 MCH-29.7 Plt Ct-288",
                "[**6-3**] 05:30AM BLOOD WBC-8.8",
            ],
        ),
        (
            "[**6-2**] 21:10 AST 212 ALT 188 [**6-3**] 05:40 AST 540 ALT 467",
            ["[**6-2**] 21:10 AST 212 ALT 188", "[**6-3**] 05:40 AST 540 ALT 467"],
        ),
        # headers
        ("Plan\n----\n- Rest", ["Plan", "----", "- Rest"]),
        ("**1. Heart failure**\nRest.", ["**1. Heart failure**", "Rest."]),
        ("**Plan**\nRest.\n\n## Diet\nNo salt.", ["**Plan**", "Rest.", "## Diet", "No salt."]),
        (
            "Service: SURGERY Chief Complaint: back pain Brief Hospital Course: He was seen and went home.",
            ["Service: SURGERY", "Chief Complaint: back pain", "Brief Hospital Course:", "He was seen and went home."],
        ),
        # exports: commas after abbreviations are none of theirs
        (
            "HISTORY: , Seen by Dr. Doe, M.D., Boston, e.g., Tuesday.,PLAN:,1.  Rest.,2.  Ice.",
            ["HISTORY:", "Seen by Dr. Doe, M.D., Boston, e.g., Tuesday.", "PLAN:", "1. Rest.", "2. Ice."],
        ),
        ("He takes aspirin, etc.,Tylenol and 1,000 units.", ["He takes aspirin, etc.,Tylenol and 1,000 units."]),
        # other white space
        ("A fall.\r\nHe was seen\r\non Monday.\x0cHe\tleft.", ["A fall.", "He was seen on Monday.", "He left."]),
    ],
)
def test_sentences(note: str, sentences: list[str]) -> None:
    assert texts(note) == sentences


# ------------------------------------------------------------------------------------------------ wrapping


@pytest.mark.parametrize("width", [60, 65, 70, 75, 80, 85, 90, 95, 100])
def test_the_samples_wrapped(width: int) -> None:
    assert kept(sample_notes(), width) >= 0.99


WORDS = (
    "patient had fever pain with the and of to was on for from [**3-4**] ___ 2.4 10 120/80 Boston Lasix 40 mg (mild) "
    "CT chest aspirin daily followed by cardiology (EF 35 %) no improvement over 24 hours then discharged home x3"
).split()
sentences = st.lists(st.sampled_from(WORDS), min_size=4, max_size=25).map(
    lambda words: "He " + " ".join(words).rstrip(".") + " today."
)
paragraphs = st.lists(sentences, min_size=4, max_size=12).map(" ".join)
drugs = st.sampled_from(
    ("metoprolol 50 mg twice a day", "Aspirin 81 mg", "apixaban 5 mg BID", "insulin 12 units at night")
)
lists = st.lists(drugs, min_size=2, max_size=8)
marked = st.tuples(st.sampled_from(("- ", "* ", "• ", "[ ] ")), st.lists(sentences, min_size=1, max_size=6)).map(
    lambda made: [made[0] + sentence for sentence in made[1]]
)
numbered = st.lists(sentences, min_size=2, max_size=12).map(lambda s: [f"{i}. {text}" for i, text in enumerate(s, 1)])
bodies = st.one_of(paragraphs.map(lambda p: [p]), lists, marked, numbered)
headers = st.sampled_from(("Brief Hospital Course:", "Discharge Medications:", "## Plan", "ASSESSMENT AND PLAN"))
notes = st.lists(st.tuples(headers, bodies), min_size=1, max_size=4).map(
    lambda parts: "\n\n".join("\n".join((header, *body)) for header, body in parts)
)


@settings(deadline=None)
@given(paragraphs, st.integers(60, 100))
def test_running_text_does_not_care_how_it_is_wrapped(paragraph: str, width: int) -> None:
    assert texts(wrap(paragraph, width)) == texts(paragraph)


def test_generated_notes_wrapped() -> None:
    drawn: list[str] = []

    @settings(max_examples=200, database=None, derandomize=True, deadline=None)
    @given(notes)
    def draw(note: str) -> None:
        drawn.append(note)

    draw()
    assert min(kept(drawn, width) for width in (60, 70, 80, 90, 100)) >= 0.99


# ------------------------------------------------------------------------------------------------ offsets


def check_offsets(note: str) -> None:
    found = split_note(note)
    assert [s.id for s in found] == [str(i) for i in range(1, len(found) + 1)]
    at = 0
    for s in found:
        assert s.start is not None and s.end is not None and at <= s.start < s.end <= len(note)
        assert not note[at : s.start].strip()
        assert note[s.start : s.end].split() == s.text.split() and s.text == s.text.strip() != ""
        at = s.end
    assert not note[at:].strip()


@settings(deadline=None)
@given(st.text(alphabet="aB9 .:#\n\r\t1?-*•([_]/)") | st.text() | notes, st.integers(20, 100))
def test_offsets_are_of_the_original_and_nothing_is_lost(note: str, width: int) -> None:
    check_offsets(note)
    check_offsets(wrap(note, width))


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "exported"])
def test_offsets_in_notes_of_every_shape(shape: str) -> None:
    for width in (60, 80, 100):
        check_offsets(wrap(SHAPES[shape][0], width))


def test_an_exports_commas_are_all_that_it_loses() -> None:
    note = SHAPES["exported"][0]
    found = split_note(note)
    between = [note[a.end : b.start] for a, b in pairwise(found)]
    assert set("".join(between)) <= {",", " "}
    assert all(note[s.start : s.end].split() == s.text.split() for s in found)


def test_paragraphs_are_numbered() -> None:
    assert [s.paragraph_id for s in split_note("A fall. He hit his head.\n\n \nB.\nC.")] == ["1", "1", "2", "2"]


# ------------------------------------------------------------------------------------------------ hostile input


@pytest.mark.parametrize(
    "text",
    [
        " " * 200_000 + "a",
        "." * 200_000,
        "(" * 200_000,
        "a. " * 60_000,
        "...)))" * 30_000,
        " ".join(f"{i % 99}." for i in range(40_000)),
        "Aa " * 60_000,
        ": , A" + " ," * 60_000,
    ],
)
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    found = split_note(text)
    assert sum(len(re.sub(r"\s", "", s.text)) for s in found) <= len(text)
