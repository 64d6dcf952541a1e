"""Stage 2 without an LM: the scores' contract, what they follow, and how good they are on cases not fitted on."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.case import Case, Sentence
from archehr.data.dataset import read_cases
from archehr.metrics.evidence import count_evidence, evidence_table
from archehr.program.extractive import EXTRACTIVE_CUT, score_sentences
from archehr.program.extractive.features import shared_concepts
from archehr.program.extractive.reformulate import reformulate
from archehr.program.extractive.score_sentences import ExtractiveScoreSentences, fit, to_score

TEXTS = st.lists(st.one_of(st.text(), st.sampled_from(["# AKI:", "Cr 2.1 c/w ATN.", "Seen by Dr.", "...", "æ ∆"])))


def numbered(texts: Sequence[str]) -> list[Sentence]:
    return [Sentence(str(i), text) for i, text in enumerate(texts)]


@settings(deadline=None, max_examples=30)
@given(TEXTS, st.text(), st.text())
def test_every_id_is_scored_once_in_note_order_whatever_the_text(texts: list[str], question: str, message: str) -> None:
    sentences = numbered(texts)
    scores = ExtractiveScoreSentences()(question=question, narrative=message, sentences=sentences).scores
    assert [s.id for s in scores] == [s.id for s in sentences]
    assert all(1 <= s.score <= 5 for s in scores)


def test_the_edges_divide_the_chances_into_five_scores() -> None:
    low, *_, high = score_sentences.SCORE_EDGES
    assert list(score_sentences.SCORE_EDGES) == sorted(score_sentences.SCORE_EDGES)
    assert [to_score(c) for c in (0.0, low, high, 1.0)] == [1, 2, 5, 5]
    assert to_score(score_sentences.SCORE_EDGES[EXTRACTIVE_CUT - 2]) == EXTRACTIVE_CUT


NOTE = [
    "Brief Hospital Course:",
    "# Encephalopathy:",
    "Received lactulose 30 mL.",
    "Felt to be due to missed lactulose and opioids after the shunt was created, per hepatology.",
    "Seen on rounds by Dr.",
    "___, who explained that the confusion is reversible and expected to resolve.",
    "# Nutrition: regular diet.",
]


def test_a_reason_outscores_a_header_and_a_record_and_torn_halves_agree() -> None:
    scored = ExtractiveScoreSentences()(
        question="Why did the patient become confused?", narrative="Why was mum so confused?", sentences=numbered(NOTE)
    ).scores
    score = [s.score for s in scored]
    assert score[3] >= EXTRACTIVE_CUT > max(score[0], score[1], score[2], score[6])
    assert score[4] == score[5]


def test_a_fact_that_the_likely_evidence_names_shares_its_concepts() -> None:
    import numpy as np

    texts = ["Due to opioids and constipation.", "Had been taking oxycodone.", "Wears glasses."]
    shared = shared_concepts(texts, np.array([0.9, 0.1, 0.1]))
    assert shared[1] > shared[2] == 0
    assert not shared_concepts(["!", "?"], np.array([0.5, 0.5])).any()


def test_the_fit_is_the_same_every_time() -> None:
    cases = read_cases("sample/dev")[:6]
    first, second = fit(cases), fit(cases)
    assert first.chances("Why?", "Why?", NOTE) == second.chances("Why?", "Why?", NOTE)


def test_workers_that_start_together_share_one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    real = score_sentences.fit
    monkeypatch.setattr(score_sentences, "fit", lambda cases: fits.append(1) or real(cases))
    score_sentences._dev_model.cache_clear()
    stage = ExtractiveScoreSentences()
    calls = [
        threading.Thread(target=lambda: stage(question="Why?", narrative="Why?", sentences=numbered(NOTE)))
        for _ in range(4)
    ]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert len(fits) == 1


def strict_f1(cases: Sequence[Case], structure_only: bool) -> float:
    model = fit(read_cases("sample/dev"), structure_only)
    counts = []
    for case in cases:
        texts = [s.text for s in case.sentences]
        chances = model.chances(reformulate(case.narrative), case.narrative, texts)
        chosen = [s.id for s, c in zip(case.sentences, chances, strict=True) if to_score(c) >= EXTRACTIVE_CUT]
        assert case.gold is not None
        counts.append(count_evidence(chosen, case.gold.essential, case.gold.supplementary))
    return evidence_table([c.id for c in cases], counts).leaderboard()["strict_micro_f1"]


def test_on_cases_not_fitted_on_it_passes_the_floor_and_reading_adds_to_structure() -> None:
    cases = read_cases("sample/test")
    assert strict_f1(cases, structure_only=False) >= max(64.0, strict_f1(cases, structure_only=True))
