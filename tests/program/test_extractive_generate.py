"""Stage 3 without an LM: within the limit, readable, and never a word that the evidence does not hold."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.case import Sentence
from archehr.data.dataset import read_cases
from archehr.program.extractive.abbreviations import ABBREVIATIONS, BEFORE_A_NUMBER
from archehr.program.extractive.generate import MONTHS, ExtractiveGenerate, compress
from archehr.program.stages.limits import count_words

NOTES = [s.text for case in read_cases("sample/dev") for s in case.sentences]
EVIDENCE = st.lists(st.one_of(st.sampled_from(NOTES), st.text(), st.just("word " * 90)), max_size=12)


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.lower()))


OURS = words_of(" ".join([*ABBREVIATIONS.values(), *BEFORE_A_NUMBER.values(), *MONTHS]))


def answer_from(texts: list[str], question: str = "Why?") -> tuple[list[str], list[list[str]]]:
    evidence = [Sentence(str(i), text) for i, text in enumerate(texts)]
    prediction = ExtractiveGenerate()(question=question, evidence=evidence, note="")
    return prediction.answer_sentences, prediction.sources


@settings(deadline=None)
@given(EVIDENCE, st.text())
def test_every_word_comes_from_its_sources_or_the_abbreviation_table(texts: list[str], question: str) -> None:
    answer_sentences, sources = answer_from(texts, question)
    assert len(answer_sentences) == len(sources)
    for sentence, ids in zip(answer_sentences, sources, strict=True):
        invented = words_of(sentence) - words_of(" ".join(texts[int(i)] for i in ids)) - OURS
        assert not invented


@settings(deadline=None)
@given(EVIDENCE)
def test_an_answer_has_1_to_75_words_and_none_only_where_there_is_no_word(texts: list[str]) -> None:
    answer_sentences, _ = answer_from(texts)
    assert count_words(" ".join(answer_sentences)) <= 75
    assert all("\n" not in s and s[-1] in ".!?" for s in answer_sentences)
    if any(re.search(r"[a-z]{3}", compress(text)) for text in texts):
        assert answer_sentences


@pytest.mark.parametrize(
    ("note", "read"),
    [
        ("- home O2 1L w/ ambulation", "Home oxygen 1L with ambulation."),
        ("Plan cefazolin through at least [**2118-4-14**].", "Plan cefazolin through at least April 14."),
        ("Felt c/w ILD per Dr. ___.", "Felt consistent with interstitial lung disease."),
        ("Vascular (Dr. ___): best therapy is medical", "Vascular: best therapy is medical."),
        ("HD started (K 6.6, Cr 9.8) for volume", "HD started for volume."),
        ("Drugs (an opioid with serotonergic effect) stopped", "Drugs (an opioid with serotonergic effect) stopped."),
        ("Given [**Date range (1) **], tolerated.", "Given, tolerated."),
        ("___ (Dr. ___)", ""),
        ("# :", ""),
    ],
)
def test_a_note_sentence_is_compressed_to_one_that_reads(note: str, read: str) -> None:
    assert compress(note) == read


def test_the_reason_comes_before_the_record_when_room_is_short() -> None:
    record = "Received 3 units and was transferred " + "and seen again " * 12
    reason = "Bleeding was attributed to an ulcer that the team felt was caused by ibuprofen " + "as found there " * 6
    answer_sentences, sources = answer_from([record, record, reason, record], "Why did he bleed?")
    assert ["2"] in sources and len(answer_sentences) == 2


def test_torn_sentences_answer_as_one_and_headers_not_at_all() -> None:
    answer_sentences, sources = answer_from(["# AKI:", "Consulted by Dr.", "___, who felt it was ATN."])
    assert sources == [["1", "2"]]
    assert "AKI" not in " ".join(answer_sentences)
