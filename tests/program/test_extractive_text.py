"""The extractive stages' reading of text: abbreviations, stems, concepts, sections, cues."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.program.extractive import concepts
from archehr.program.extractive.abbreviations import expand
from archehr.program.extractive.cues import CUES, cue_row, what_is_asked
from archehr.program.extractive.fitted.features import NAMES, sentence_features
from archehr.program.extractive.sections import places, strip_mark, whole_sentences
from archehr.program.extractive.text import is_stop_word, stem, stems, terms, units


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("63F w/ cirrhosis s/p TIPS c/b HE", "63F with cirrhosis after TIPS complicated by hepatic encephalopathy"),
        ("W/o HTN.", "Without hypertension."),
        ("K 3.1, Na 134", "potassium 3.1, sodium 134"),
        ("Taken to OR", "Taken to the operating room"),
        ("d/c'd home on PO abx", "discontinued home on by mouth antibiotics"),
        ("PNA 2/2 aspiration", "pneumonia due to aspiration"),
    ],
)
def test_unambiguous_abbreviations_are_written_out(short: str, long: str) -> None:
    assert expand(short) == long


@pytest.mark.parametrize(
    "text", ["PT and MS", "vitamin K", "1/2/2160", "a w/w solution", "HD line", "fever OR chills", "x2/2y", "Na-K pump"]
)
def test_what_has_two_readings_stays(text: str) -> None:
    assert expand(text) == text


def test_inflections_share_a_stem_and_other_words_do_not() -> None:
    assert stem("bleeding") == stem("bleeds") == stem("bleed")
    assert stem("biopsies") == stem("biopsy")
    assert stem("infused") == stem("infusing")
    assert len({stem(w) for w in ("shunt", "shut", "stent", "sepsis", "septic")}) == 5


def test_a_patients_word_and_the_notes_word_meet_in_a_concept() -> None:
    for lay, clinical in [
        ("kidney trouble", "renal US"),
        ("jardiance", "empagliflozin 25 mg"),
        ("did she have a heart attack", "NSTEMI, medically managed"),
        ("blood clot in the lung", "CTPA w/ segmental PE"),
        ("breathing machine", "intubated on HD2"),
    ]:
        assert any(t.startswith("=") for t in set(terms(lay)) & set(terms(clinical))), (lay, clinical)
    assert not set(terms("the weather was fine")) & set(terms("renal US"))


def test_no_entry_of_the_concept_table_is_an_everyday_word() -> None:
    table = (Path(concepts.__file__).with_name("concepts.txt")).read_text(encoding="utf-8").splitlines()
    lines = [line.split("|") for line in table if not line.startswith("#")]
    assert all(len(members) >= 2 for members in lines)
    everyday = [m for members in lines for m in members if all(is_stop_word(s) for s in stems(m))]
    assert everyday == []


NOTE = [
    "Brief Hospital Course:",
    "# Bradycardia/shock:",
    "Felt to be due to hyperkalemia.",
    "# AKI on CKD: resolved with fluids and time",
    "Family History: uncle with ESRD on HD.",
    "DISCHARGE PLAN",
    "- home O2 1L",
]


def test_a_sentence_knows_its_section_and_its_problem() -> None:
    found = places(NOTE)
    assert [p.is_header for p in found] == [True, True, False, False, False, True, False]
    assert [p.kind for p in found] == ["course"] * 4 + ["history"] + ["followup"] * 2
    assert found[2].title == "Bradycardia/shock" and found[3].title == "AKI on CKD"
    assert found[1].block == found[2].block != found[3].block
    assert [p.section for p in found] == [1, 1, 1, 1, 1, 2, 2]


NUMBERED = [
    "A/P:", "1. AKI on CKD.", "Felt to be prerenal.", "2. Type 2 diabetes.", "A1c 12.1.", "3. Anemia.", "Dispo: home",
]  # fmt: skip


def test_a_number_titles_a_problem_where_the_list_goes_on_without_one() -> None:
    found = places(NUMBERED)
    assert [p.title for p in found[1:6]] == ["AKI on CKD"] * 2 + ["Type 2 diabetes"] * 2 + ["Anemia"]
    assert [p.is_header for p in found] == [True, True, False, True, False, True, False]
    assert [p.title for p in places(["1) Resp: stable on 2 L", "2) GI: eating"])] == ["Resp", "GI"]
    assert not any(p.is_header for p in places(["1) Resp: stable on 2 L", "2) GI: eating"]))


@pytest.mark.parametrize(
    "texts",
    [
        ["Recommendations:", "1. Stop vancomycin.", "Random level daily.", "2. Hold losartan.", "Restart later."],
        ["IMPRESSION:", "1. Pulmonary embolism.", "Segmental.", "2. Emphysema.", "Moderate."],
        ["Meds:", "1. Aspirin 81 mg daily", "2. Lasix 40 mg.", "Increased.", "3. Glargine 10 units"],
        ["URINE CULTURE:", "ESCHERICHIA COLI.", "Resistant to ciprofloxacin."],
    ],
    ids=["plan", "findings", "medicines", "result in capitals"],
)
def test_what_says_something_is_no_title(texts: list[str]) -> None:
    assert [p.is_header for p in places(texts)] == [True, *[False] * (len(texts) - 1)]
    assert {p.block for p in places(texts)} == {1}


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("two shots of steroids", "betamethasone x2"),
        ("a blood pressure pill", "nifedipine XL 30 mg"),
        ("bed sores", "Stage 2 pressure ulcer"),
        ("heart attack", "ACS unlikely"),
        ("surgery", "s/p sigmoid colectomy"),
        ("anemia", "iron deficiency anaemia"),
        ("swelling", "ankle oedema"),
        ("tied down", "mitts applied"),
    ],
)
def test_what_patients_say_and_what_notes_write_are_one_thing(said: str, noted: str) -> None:
    assert set(terms(said)) & set(terms(noted))


def test_who_is_scared_has_no_scar() -> None:
    assert not set(terms("I am scared")) & set(terms("a scar"))


def test_the_longest_entry_is_one_thing() -> None:
    found = units("Why was the blood thinner stopped in 2019?")
    assert [unit.stems for unit in found] == [set(stems("blood thinner")), {"stop"}]
    assert "=blood thinner" in found[0].concepts and "=stop" in found[1].concepts


@pytest.mark.parametrize(
    "marked", ["# HTN", "- HTN", "1. HTN", "2) HTN", "[ ] HTN", "* HTN", "#3. HTN"], ids=lambda m: m[:-4]
)
def test_list_marks_go(marked: str) -> None:
    assert strip_mark(marked) == "HTN"


def test_a_dose_in_front_is_no_list_mark() -> None:
    assert strip_mark("1.5 mg daily") == "1.5 mg daily"


def test_sentences_torn_at_a_title_are_one() -> None:
    torn = ["Seen by Dr.", "___, who listed him.", "Wire pulled.", "Per Dr.", "Drs.", "end"]
    assert whole_sentences(torn) == [0, 0, 1, 2, 2, 2]


def test_a_cue_counts_double_only_where_the_message_asks_for_it() -> None:
    why, when = what_is_asked("Why did this happen"), what_is_asked("Will he walk again")
    row = dict(zip(CUES, cue_row("Attributed to vasospasm.", why), strict=True))
    assert row["reason"] == row["reason_asked"] == 1
    assert dict(zip(CUES, cue_row("Attributed to vasospasm.", when), strict=True))["reason_asked"] == 0


@settings(deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=12), st.text(), st.text())
def test_any_text_has_features(texts: list[str], question: str, narrative: str) -> None:
    rows = sentence_features(question, narrative, texts)
    assert rows.shape == (len(texts), len(NAMES))
    assert bool((abs(rows) < 1e6).all())  # no NaN, no infinity
