"""Stage 4 without an LM: the links' contract, and how good they are on cases not fitted on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.case import AnswerSentence, Sentence
from archehr.data.dataset import read_cases
from archehr.metrics.alignment import alignment_table, count_links
from archehr.program.extractive.align import ExtractiveAlign
from archehr.program.extractive.fitted.at_work import at_work
from archehr.program.extractive.fitted.file import shipped
from archehr.program.extractive.fitted.pairs import PAIR_NAMES, pair_features
from archehr.program.extractive.reformulate import reformulate

TEXTS = st.lists(st.one_of(st.text(), st.sampled_from(["Her kidneys failed.", "Cr 4.1 c/w AKI.", "# AKI:", "?"])))


@settings(deadline=None, max_examples=30)
@given(TEXTS, TEXTS, st.text())
def test_every_answer_id_has_one_link_to_known_ids_in_note_order(
    answers: list[str], notes: list[str], question: str
) -> None:
    given_sentences = [AnswerSentence(f"a{i}", text) for i, text in enumerate(answers)]
    sentences = [Sentence(f"n{i}", text) for i, text in enumerate(notes)]
    links = ExtractiveAlign()(answer_sentences=given_sentences, sentences=sentences, question=question).links
    assert [link.answer_id for link in links] == [a.id for a in given_sentences]
    for link in links:
        assert link.evidence_ids == [s.id for s in sentences if s.id in link.evidence_ids]


def test_support_is_found_across_lay_and_clinical_words_and_may_be_none() -> None:
    note = read_cases("sample/test")[0].sentences[:12]
    support = Sentence("new", "Cr peaked at 4.1, AKI felt prerenal due to hypovolemia and hypotension.")
    answers = [
        AnswerSentence("1", "The kidney injury was caused by low blood pressure and dehydration."),
        AnswerSentence("2", "Bananas are yellow."),
    ]
    sentences = [*note[:5], support, *note[5:]]
    links = ExtractiveAlign()(answer_sentences=answers, sentences=sentences, question="Why?").links
    assert [link.evidence_ids for link in links] == [["new"], []]


@pytest.mark.parametrize(("answers", "notes"), [(["a b"], ["c"]), (["?"], ["!", "."]), (["x"] * 3, ["x"] * 2)])
def test_pairs_have_a_row_each_whatever_the_text(answers: list[str], notes: list[str]) -> None:
    rows = pair_features(answers, notes, "")
    assert rows.shape == (len(answers) * len(notes), len(PAIR_NAMES))
    assert bool((abs(rows) < 1e6).all())


def test_a_spelled_number_and_a_digit_are_one() -> None:
    rows = pair_features(["for eleven months"], ["approx 11 months ago", "approx 12 months ago"], "")
    assert (rows[0] != rows[1]).any()


def test_on_cases_not_fitted_on_it_passes_the_floor() -> None:
    counts, ids = [], []
    for case in read_cases("sample/test"):
        assert case.gold is not None and case.gold.links is not None
        with at_work(shipped("extractive-dev")):
            links = ExtractiveAlign()(
                answer_sentences=case.gold.answer_sentences,
                sentences=case.sentences,
                question=reformulate(case.narrative),
            ).links
        counts.append(count_links([(k.answer_id, i) for k in links for i in k.evidence_ids], case.gold.links))
        ids.append(case.id)
    assert alignment_table(ids, counts).leaderboard()["micro_f1"] >= 64
