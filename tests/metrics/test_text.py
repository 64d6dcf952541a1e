import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.metrics.scorers.text import Unscorable, bleu, over_cases, rouge, sari

VECTORS = Path(__file__).parents[1] / "vectors"


def pairs(name):
    loaded = json.loads((VECTORS / name).read_text(encoding="utf-8"))
    return loaded["pairs"] if isinstance(loaded, dict) else loaded


@pytest.mark.parametrize("name", ["text_subtask1.json", "text_subtask3.json"])
def test_official_values(name):
    for pair in pairs(name):
        prediction, reference = pair["prediction"], pair["reference"]
        got = rouge(prediction, reference)
        got |= {"bleu": bleu(prediction, reference), "sari": sari(pair["source"], prediction, reference)}
        assert got == pytest.approx({score: pair["expected"][score] for score in got}, abs=1e-12, rel=0), pair["name"]


def test_official_values_at_the_edges():
    for pair in pairs("text_edge_errors.json"):
        prediction, reference, expected = pair["prediction"], pair["reference"], pair["expected"]
        assert rouge(prediction, reference) == expected["rouge"]
        assert sari(pair["source"], prediction, reference) == pytest.approx(expected["sari"], abs=1e-12)
        if isinstance(expected["bleu"], dict):
            with pytest.raises(Unscorable):
                bleu(prediction, reference)
        else:
            assert bleu(prediction, reference) == expected["bleu"]


def test_bleu_by_hand():
    # 5 tokens against 6, shared n-grams 5/5, 4/4, 3/3, 2/2, so only brevity counts: exp(1 - 6/5).
    assert bleu("the stent was placed in", "the stent was placed in time") == pytest.approx(0.8187307530779818)


def test_bleu_of_a_short_right_answer_is_0_as_on_the_leaderboard():
    assert bleu("Acute pneumonia", "Acute pneumonia") == 0


def test_rouge_l_sum_splits_on_line_breaks_only():
    one, other = "a b c. d e f", "d e f. a b c"
    assert rouge(one, other)["rougeLsum"] == pytest.approx(0.5)
    assert rouge("a b c\nd e f", "d e f\na b c")["rougeLsum"] == pytest.approx(1.0)


def test_an_unscorable_case_is_named_and_counts_0():
    scores, unscorable = over_cases(bleu, ["<skipped>", "a b c d"], ["a b c d", "a b c d"])
    assert scores == [0.0, 1.0]
    assert list(unscorable) == [0] and "prediction has no tokens" in unscorable[0]


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_text_has_scores_in_range(source, prediction, reference):
    assert all(0 <= score <= 1 for score in rouge(prediction, reference).values())
    assert 0 <= sari(source, prediction, reference) <= 100 + 1e-9
    with contextlib.suppress(Unscorable):
        assert 0 <= bleu(prediction, reference) <= 1 + 1e-9


@settings(deadline=None)
@given(st.text(alphabet="abc .", min_size=1, max_size=40))
def test_a_copy_of_the_reference_is_perfect_in_sari(text):
    assert sari("x y z", text, text) == pytest.approx(100)


@settings(deadline=None)
@given(st.text(alphabet="abcd .,-é", max_size=40), st.text(alphabet="abcd .,-é", max_size=40))
def test_the_short_cut_for_single_lines_changes_nothing(prediction, reference):
    from rouge_score.rouge_scorer import RougeScorer

    plain = RougeScorer(["rougeLsum"]).score(reference, prediction)["rougeLsum"].fmeasure
    assert rouge(prediction, reference)["rougeLsum"] == plain
