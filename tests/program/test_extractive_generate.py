"""Stage 3 without an LM: the note's own words in their own order, within the limit, never less and never more."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.case import Sentence
from archehr.data.dataset import read_cases
from archehr.data.splitter import split_note
from archehr.program.extractive.abbreviations import LIKELY, ONE_READING
from archehr.program.extractive.generate import ExtractiveGenerate, own_words
from archehr.program.settings import PipelineSettings
from archehr.program.stages.limits import count_words

SAMPLE = [s.text for name in ("dev", "test") for case in read_cases(f"sample/{name}") for s in case.sentences]
FIELD_NOTES = [
    "CT of the chest was done because of concern for pulmonary embolism (ruled out). Take lisinopril 10 mg daily for "
    "your blood pressure (hold if SBP < 100). Take acetaminophen 500 mg every 6 hours for pain (no more than 3 g a "
    "day). Biopsy showed carcinoma (not confirmed).",
    "HE WAS BROUGHT TO THE ED AFTER HE HIT HIS HEAD ON THE SINK. HE MUST NOT DRIVE UNTIL THEN.",
    "Had it pinned on [**8-12**]. Her pain was [**7-10**] on arrival and [**2-3**] after surgery. She drinks about "
    "[**11-26**] alcoholic drinks a week. 1. Oxycodone 5 mg Tablet Sig: [**1-2**] Tablets PO Q4H as needed for pain.",
    "SUBJECTIVE:,  She has asthma but needs no daily inhaler.,MEDICATIONS: , Birth control pill.,PLAN:,1.  Stop it.",
    "Ms. ___ was started on warfarin ___ mg daily with an INR goal of ___. She had a reaction to ___, since then none.",
    "Seen by Dr. Good, who felt it was ATN. CVA tenderness on the left. PCP prophylaxis with TMP-SMX. PEG 17 g daily. "
    "Oxycodone IR 5 mg. Clinic on 2/2 at 9 am. Vitamin K 5 mg. Duloxetine 20 mg CAP daily.",
]
FIELD = [s.text for note in FIELD_NOTES for s in split_note(note)]
PIECES = st.sampled_from(
    [
        *("(ruled out)", "(hold if SBP < 100)", "(___)", "(Dr. ___)", "[**Name 7**]", "as needed", "([**8-12**])"),
        *"no not denies ___ [**8-12**] [**1-2**] [**2118-3-9**] on until with and mg 5 1.5 4- -> # - 1. q6h".split(),
        *"PRN PO BID HE HTN w/ w/o s/p 2/2 c/b i.e. if SBP yo AKI. , ; pH Dr. 2) [ ] : . PRN: approx. e.g.".split(),
    ]
)
GENERATED = st.one_of(st.lists(PIECES, max_size=25).map(" ".join), st.text())
ANY = st.one_of(st.sampled_from(SAMPLE + FIELD), GENERATED)
EVIDENCE = st.lists(st.one_of(ANY, st.just("word " * 90)), max_size=12)

_MARK = re.compile(r"\s*(?:#+\s*(?:\d+[.)])?|\[\s?[xX]?\]|[-*•·]+(?!\d)|\(?\d{1,2}[.)](?=\s))\s*")
_MASK_ASIDE = re.compile(r"\((?:\s*(?:_{2,}|\[\*\*(?![\d-]+\*\*\])[^][]*\*\*\])[\s,;/]*)+\)")
_EDGES = "()[]*,;:.!?…\"'"


def tokens(text: str) -> list[str]:
    """Words, numbers, signs and blanks, without punctuation."""
    return [core for t in re.findall(r"[\w/.*'-]+|[^\w\s]", text) if (core := t.strip(_EDGES))]


def is_copy(source: str, answer: str) -> bool:
    """Whether `answer` is `source`, allowed marks and asides taken off and allowed abbreviations written out."""
    said = [t.lower() for t in tokens(answer)]
    long_forms = {k.strip(_EDGES).lower(): tokens(v.lower()) for k, v in ONE_READING.items()}
    place = 0
    for token in tokens(_MASK_ASIDE.sub("", _MARK.sub("", source, count=1) if _MARK.match(source) else source)):
        for reading in ([token.lower()], long_forms.get(token.lower(), [])):
            if reading and said[place : place + len(reading)] == reading:
                place += len(reading)
                break
        else:
            return False
    return place == len(said)


def test_every_sentence_of_the_samples_and_of_notes_from_the_field_is_copied_whole_and_in_order() -> None:
    assert [source for source in SAMPLE + FIELD if not is_copy(source, own_words(source))] == []


@settings(max_examples=300)
@given(GENERATED)
def test_any_sentence_is_copied_whole_and_in_order(source: str) -> None:
    if tokens(source):
        assert is_copy(source, own_words(source)) or not tokens(_MARK.sub("", _MASK_ASIDE.sub("", source), count=1))


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("Pulmonary embolism (ruled out).", "Pulmonary embolism."),
        ("No fever.", "Fever."),
        ("10 mg daily (hold if SBP < 100)", "10 mg daily."),
        ("Take 5 mg as needed.", "Take 5 mg."),
        ("HE HIT HIS HEAD", "hepatic encephalopathy HIT HIS HEAD"),
        ("warfarin ___ mg daily", "warfarin mg daily"),
        ("fever and rash", "rash and fever"),
        ("on 2/2 at 9 am", "on due to at 9 am"),
    ],
)
def test_the_check_of_a_copy_can_fail(source: str, told: str) -> None:
    assert not is_copy(source, told)


@pytest.mark.parametrize(
    ("note", "read"),
    [
        ("- home O2 1L w/ ambulation", "Home O2 1L with ambulation."),
        ("concern for pulmonary embolism (ruled out)", "Concern for pulmonary embolism (ruled out)."),
        ("Take 10 mg daily (hold if SBP < 100).", "Take 10 mg daily (hold if SBP < 100)."),
        ("Take 500 mg q6h PRN (no more than 3 g a day).", "Take 500 mg q6h as needed (no more than 3 g a day)."),
        ("carcinoma (not confirmed)", "Carcinoma (not confirmed)."),
        ("HE WAS BROUGHT TO THE ED AFTER HE HIT HIS HEAD.", "HE WAS BROUGHT TO THE ED AFTER HE HIT HIS HEAD."),
        ("CVA tenderness, PCP prophylaxis, PEG 17 g", "CVA tenderness, PCP prophylaxis, PEG 17 g."),
        ("Clinic on 2/2 at 9 am", "Clinic on 2/2 at 9 am."),
        ("PICC line placed", "PICC line placed."),
        ("vitamin K 5 mg", "Vitamin K 5 mg."),
        ("Plan cefazolin through at least [**2118-4-14**].", "Plan cefazolin through at least 2118-4-14."),
        ("Had it pinned on [**8-12**].", "Had it pinned on 8-12."),
        ("On [**8-12**] and later.", "On 8-12 and later."),
        ("Was on [**1-2**] liters.", "Was on [**1-2**] liters."),
        ("1. Sig: [**1-2**] Tablets PO Q4H", "Sig: [**1-2**] Tablets PO Q4H."),
        ("Her pain was [**7-10**] on arrival.", "Her pain was [**7-10**] on arrival."),
        ("See the surgeon in [**1-16**] weeks.", "See the surgeon in [**1-16**] weeks."),
        ("warfarin ___ mg daily, INR goal ___", "Warfarin ___ mg daily, INR goal ___."),
        ("Her echo showed mild ___.", "Her echo showed mild ___."),
        ("referred by Dr. Good", "Referred by Dr. Good."),
        ("Vascular (Dr. ___): best therapy is medical", "Vascular (Dr. ___): best therapy is medical."),
        ("Given ([**Date range (1) **]), tolerated (___).", "Given, tolerated."),
        ("Net ([**2-3**]) liters", "Net ([**2-3**]) liters."),
        ("HD started (K 6.6, Cr 9.8) for volume", "HD started (K 6.6, Cr 9.8) for volume."),
        ("-2 L net, quads 4-", "-2 L net, quads 4-."),
        ("pH 7.2", "pH 7.2."),
        ("# AKI on CKD: resolved", "Acute kidney injury on chronic kidney disease: resolved."),
        (",PLAN:,1.  Stop loratadine.,", "PLAN:,1. Stop loratadine."),
    ],
)
def test_a_note_sentence_in_its_own_words(note: str, read: str) -> None:
    assert own_words(note) == read


def test_no_abbreviation_that_is_written_out_is_an_everyday_word_or_has_a_likely_other_reading() -> None:
    words_in_capitals = {w.upper() for w in "he hit cap peg us or id it all as am in is on so to".split()}
    assert not words_in_capitals & {k.upper() for k in ONE_READING}
    named = {"HE", "HIT", "CVA", "PCP", "IR", "2/2", "PEG", "CAP", "PICC", "MS", "RA", "PT", "US", "HLD", "POD", "n/v"}
    assert not named & set(ONE_READING) and {"HE", "HIT", "CVA", "PCP", "IR", "2/2", "PEG", "CAP"} <= set(LIKELY)


def answer_from(
    texts: list[str], question: str = "Why?", limit: int = 75
) -> tuple[list[str], list[list[str]], list[str]]:
    evidence = [Sentence(str(i), text) for i, text in enumerate(texts)]
    made = ExtractiveGenerate(PipelineSettings(answer_words=limit))(question=question, evidence=evidence, note="")
    return made.answer_sentences, made.sources, [n.kind for n in made.notices]


@settings(deadline=None)
@given(EVIDENCE, st.text(), st.integers(1, 100))
def test_an_answer_is_whole_copies_of_its_sources_or_one_cut_at_its_end(
    texts: list[str], question: str, limit: int
) -> None:
    answer_sentences, sources, kinds = answer_from(texts, question, limit)
    assert len(answer_sentences) == len(sources)
    wholes = [own_words(" ".join(texts[int(i)].strip() for i in ids).strip()) for ids in sources]
    if kinds == ["cut_words"]:
        ((cut,), (whole,)) = answer_sentences, wholes
        assert count_words(whole) > limit == count_words(cut) and cut.endswith("…")
        assert whole.split()[: limit - 1] == cut.split()[: limit - 1]
    else:
        assert kinds == [] and answer_sentences == wholes


@settings(deadline=None)
@given(EVIDENCE, st.integers(1, 100))
def test_an_answer_keeps_its_limit_and_comes_wherever_there_is_a_visible_character(
    texts: list[str], limit: int
) -> None:
    answer_sentences, _, _ = answer_from(texts, limit=limit)
    assert count_words(" ".join(answer_sentences)) <= limit
    assert all("\n" not in s and s.split() for s in answer_sentences)
    assert bool(answer_sentences) == any(text.strip() for text in texts)


@pytest.mark.parametrize("texts", [["# AKI:", ";"], [";"], ["___"], ["Brief Hospital Course:"], ["\u200b"]])
def test_a_header_a_blank_or_a_sign_answers_where_there_is_nothing_else(texts: list[str]) -> None:
    assert answer_from(texts)[0]


def test_the_words_asked_for_are_kept() -> None:
    case = read_cases("sample/test")[0]
    texts = [s.text for s in case.sentences]
    for limit in (20, 40, 75):
        answer_sentences, _, _ = answer_from(texts, case.clinician_question or "", limit)
        assert limit / 2 < count_words(" ".join(answer_sentences)) <= limit


def test_the_reason_comes_before_the_record_when_room_is_short() -> None:
    record = "Received 3 units and was transferred " + "and seen again " * 12
    reason = "Bleeding was attributed to an ulcer that the team felt was caused by ibuprofen " + "as found there " * 6
    answer_sentences, sources, _ = answer_from([record, record, reason, record], "Why did he bleed?")
    assert ["2"] in sources and len(answer_sentences) == 2


def test_torn_sentences_answer_as_one_and_headers_not_at_all() -> None:
    answer_sentences, sources, _ = answer_from(["# AKI:", "Consulted by Dr.", "___, who felt it was ATN."])
    assert sources == [["1", "2"]]
    assert answer_sentences == ["Consulted by Dr. ___, who felt it was ATN."]
