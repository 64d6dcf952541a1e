import pytest

from archehr.data.case import AnswerSentence, Case, DataError, Gold, Relevance
from archehr.metrics import feedback
from archehr.metrics.scorers.text import bleu, rouge_l_sum, sari

GOLD = Gold(
    relevance={
        "1": Relevance.ESSENTIAL,
        "2": Relevance.ESSENTIAL,
        "10": Relevance.ESSENTIAL,
        "3": Relevance.SUPPLEMENTARY,
        "4": Relevance.NOT_RELEVANT,
    },
    answer="He was given antibiotics for the infection.",
    answer_sentences=(AnswerSentence("1", "", ("1", "2")),),
)
CASE = Case("7", narrative="why antibiotics", clinician_question="Why was he given antibiotics?", gold=GOLD)


def test_evidence_feedback_names_each_kind_of_error():
    said = feedback.evidence_feedback(["1", "3", "4"], GOLD)
    assert "not picked: sentence 2, 10." in said
    assert "supplementary: sentence 3." in said
    assert "not relevant: sentence 4." in said


def test_feedback_on_perfect_work_finds_nothing():
    assert "Exactly" in feedback.evidence_feedback(["10", "2", "1"], GOLD)
    assert "none is missing" in feedback.alignment_feedback([("1", "2"), ("1", "1")], GOLD)


def test_alignment_feedback_tells_missing_from_wrong():
    said = feedback.alignment_feedback([("1", "1"), ("1", "4")], GOLD)
    missing, wrong = said.split("Wrong links")
    assert "1 to 2" in missing and "1 to 4" in wrong and "1 to 1" not in said


def test_question_score_is_cut_as_on_the_leaderboard():
    assert feedback.question_score("Why was he given antibiotics?", CASE) == 1
    fifteen = "x " * 15
    assert feedback.question_score(fifteen + "Why was he given antibiotics?", CASE) == 0


def test_answer_score_averages_the_components_without_a_model():
    text = "He was given antibiotics for fever."
    parts = (bleu(text, GOLD.answer), rouge_l_sum(text, GOLD.answer), sari(CASE.narrative, text, GOLD.answer) / 100)
    assert feedback.answer_score(text, CASE) == pytest.approx(sum(parts) / 3)
    assert (
        feedback.answer_score("", CASE) < feedback.answer_score(text, CASE) < feedback.answer_score(GOLD.answer, CASE)
    )


def test_a_case_without_reference_is_refused_by_name():
    with pytest.raises(DataError, match="case 9"):
        feedback.answer_score("x", Case("9", narrative="n"))


def test_acceptance_needs_a_positive_threshold():
    assert feedback.accept(0.5, 0.5) and not feedback.accept(0.49, 0.5)
    with pytest.raises(DataError):
        feedback.accept(1.0, 0.0)
