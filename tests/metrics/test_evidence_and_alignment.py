import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from archehr.data.case import AnswerSentence, Gold, Relevance
from archehr.metrics.alignment import alignment_f1, alignment_table, count_links
from archehr.metrics.evidence import case_counts, evidence_table, strict_f1

GOLD = Gold(
    relevance={
        "1": Relevance.ESSENTIAL,
        "2": Relevance.ESSENTIAL,
        "3": Relevance.SUPPLEMENTARY,
        "4": Relevance.NOT_RELEVANT,
    },
    answer_sentences=(AnswerSentence("1", "", ("1", "2")), AnswerSentence("2", "", ())),
)
NO_EVIDENCE = Gold(relevance={"1": Relevance.NOT_RELEVANT}, answer_sentences=(AnswerSentence("1", "", ()),))


def test_one_case_by_hand():
    # Picked 1, 3, 4 of essential {1, 2}: one hit of three picks and of two gold: P 1/3, R 1/2, F1 2/5.
    counts = case_counts(["1", "3", "4", "4"], GOLD)
    assert (counts.tp, counts.n_pred, counts.n_gold) == (1, 3, 2)
    assert strict_f1(["1", "3", "4"], GOLD) == pytest.approx(0.4)
    # Lenient scoring does not see the supplementary 3: P 1/2.
    board = evidence_table(["a"], [counts]).leaderboard()
    assert board["lenient_micro_precision"] == pytest.approx(50)
    assert board["lenient_micro_recall"] == board["strict_micro_recall"] == pytest.approx(50)


def test_nothing_to_find_and_nothing_found_differs_between_the_subtasks():
    assert strict_f1([], NO_EVIDENCE) == 1
    assert alignment_f1([], NO_EVIDENCE) == 0
    assert strict_f1(["1"], NO_EVIDENCE) == strict_f1([], GOLD) == 0


def test_links_count_as_pairs():
    assert alignment_f1([("1", "1"), ("1", "1")], GOLD) == pytest.approx(2 / 3)
    assert alignment_f1([("2", "1")], GOLD) == 0, "the right note sentence under the wrong answer sentence"


@settings(deadline=None)
@given(st.lists(st.tuples(st.frozensets(st.integers(0, 9)), st.frozensets(st.integers(0, 9))), min_size=1, max_size=8))
def test_scikit_learn_agrees(cases):
    """A second opinion, on cases where something is gold or predicted (scikit-learn knows no official 0/0)."""
    cases = [(gold, picked) for gold, picked in cases if gold or picked]
    if not cases:
        return
    golds = [[i in gold for i in range(10)] for gold, _ in cases]
    picks = [[i in picked for i in range(10)] for _, picked in cases]
    counts = [case_counts(map(str, picked), as_gold(gold)) for gold, picked in cases]
    board = evidence_table([str(i) for i in range(len(cases))], counts).leaderboard()
    links = alignment_table(
        [str(i) for i in range(len(cases))],
        [count_links([("1", p) for p in picked], frozenset(("1", g) for g in gold)) for gold, picked in cases],
    ).leaderboard()
    for average, name in (("micro", "micro"), ("samples", "macro")):
        expected = precision_recall_fscore_support(golds, picks, average=average, zero_division=0)[:3]
        ours = [board[f"strict_{name}_{score}"] for score in ("precision", "recall", "f1")]
        assert np.allclose(ours, 100 * np.array(expected), atol=1e-9)
        assert np.allclose([links[f"{name}_{score}"] for score in ("precision", "recall", "f1")], ours, atol=1e-9)


@settings(deadline=None)
@given(st.frozensets(st.integers(0, 9)), st.frozensets(st.integers(0, 9)), st.frozensets(st.integers(0, 9)))
def test_lenient_never_scores_below_strict(picked, essential, supplementary):
    labels = {str(i): Relevance.SUPPLEMENTARY for i in supplementary} | {str(i): Relevance.ESSENTIAL for i in essential}
    board = evidence_table(["1"], [case_counts(map(str, picked), Gold(relevance=labels))]).leaderboard()
    for score in ("precision", "recall", "f1"):
        assert board[f"lenient_macro_{score}"] >= board[f"strict_macro_{score}"]


def as_gold(essential):
    return Gold(
        relevance={str(i): Relevance.ESSENTIAL if i in essential else Relevance.NOT_RELEVANT for i in range(10)}
    )
