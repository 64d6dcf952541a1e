"""Stage 2 without an LM: the scores' contract, what they follow, and how good they are on cases not fitted on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.case import Sentence
from archehr.data.dataset import read_cases
from archehr.metrics.evidence import count_evidence, evidence_table
from archehr.optimize.students.examples import sentences_by_key
from archehr.optimize.students.fit import fit_evidence
from archehr.program.extractive import EXTRACTIVE_CUT
from archehr.program.extractive.fitted.at_work import at_work
from archehr.program.extractive.fitted.features import (
    NAMES,
    STRUCTURE,
    concept_vectors,
    sentence_features,
    shared_concepts,
)
from archehr.program.extractive.fitted.file import SHIPPED, shipped
from archehr.program.extractive.fitted.models import EvidenceModel
from archehr.program.extractive.fitted.tfidf import bm25
from archehr.program.extractive.reformulate import reformulate
from archehr.program.extractive.score_sentences import ExtractiveScoreSentences

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


@pytest.mark.parametrize("name", SHIPPED)
def test_the_edges_divide_the_chances_into_five_scores(name: str) -> None:
    model = shipped(name).evidence
    assert [model.score(c) for c in (0.0, model.edges[0], model.edges[3], 1.0)] == [1, 2, 5, 5]
    assert model.score(model.edges[EXTRACTIVE_CUT - 2]) == EXTRACTIVE_CUT


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
    shared = shared_concepts(concept_vectors(texts), np.array([0.9, 0.1, 0.1]))
    assert shared[1] > shared[2] == 0
    assert not shared_concepts(concept_vectors(["!", "?"]), np.array([0.5, 0.5])).any()


def test_a_message_that_asks_of_two_problems_has_a_block_for_each() -> None:
    texts = [
        "# AKI:", "Kidney injury due to dehydration.", "# Rash:", "The rash came from the antibiotic.", "# Nutrition:",
        "Regular diet.",
    ]  # fmt: skip
    message = "Why did her kidneys fail? Also, what caused the rash on her back?"
    asked = sentence_features("Why did the kidneys fail?", message, texts)[:, NAMES.index("block_asked")]
    assert asked[1] == asked[3] == 1 and asked[5] < 0.5
    assert (asked[::2] == asked[1::2]).all()
    assert not sentence_features("", "", ["...", "!"])[:, NAMES.index("block_asked")].any()


def test_bm25_counts_rare_words_and_short_documents_more() -> None:
    documents = [["rash", "back"], ["rash", *["word"] * 20], ["fever"], ["back"], ["back", "pain"]]
    rash, back = bm25(documents, ["rash"]), bm25(documents, ["back"])
    assert rash[0] > rash[1] > rash[2] == 0 and rash[0] > back[0]
    assert bm25(documents, ["rash", "rash"]) == rash and bm25([[]], ["rash"]) == [0.0]


def strict_f1(model: EvidenceModel) -> float:
    """On sample/test, from the program's own question."""
    cases, counts = read_cases("sample/test"), []
    for case in cases:
        question = reformulate(case.narrative, case.question_phrases)
        with at_work(shipped().model_copy(update={"evidence": model})):
            scored = ExtractiveScoreSentences()(
                question=question, narrative=case.narrative, sentences=case.sentences
            ).scores
        assert case.gold is not None
        chosen = [s.id for s in scored if s.score >= EXTRACTIVE_CUT]
        counts.append(count_evidence(chosen, case.gold.essential, case.gold.supplementary))
    return evidence_table([c.id for c in cases], counts).leaderboard()["strict_micro_f1"]


def test_on_cases_not_fitted_on_it_passes_the_floor_and_reading_adds_to_structure() -> None:
    no_concepts = shipped("extractive-dev").evidence.model_copy(update={"concepts_weight": 0.0})
    blind = fit_evidence(sentences_by_key(read_cases("sample/dev")), no_concepts, names=STRUCTURE)
    assert strict_f1(shipped("extractive-dev").evidence) >= max(64.0, strict_f1(blind))
