import numpy as np
import pytest

from archehr.data.case import DataError
from archehr.metrics import intervals
from archehr.metrics.evidence import EvidenceCounts, evidence_table
from archehr.metrics.intervals import bootstrap, paired_difference
from archehr.metrics.leaderboard import text_table


def table(counts, ids=None):
    rows = [EvidenceCounts(tp, n_pred, n_gold, n_pred) for tp, n_pred, n_gold in counts]
    return evidence_table(ids or [str(i) for i in range(len(rows))], rows)


def test_micro_f1_is_resampled_from_counts():
    """Against a plain loop over the same statistic; a mean of case F1s would land elsewhere."""
    counts = [(9, 10, 12), (0, 1, 1), (1, 1, 5), (2, 8, 2), (0, 3, 9)]
    interval = bootstrap(table(counts))["strict_micro_f1"]
    rng, rows, loop = np.random.default_rng(7), np.array(counts), []
    for _ in range(4000):
        tp, n_pred, n_gold = rows[rng.integers(0, 5, 5)].sum(axis=0)
        loop.append(200 * tp / (n_pred + n_gold))
    assert interval.value == pytest.approx(100 * 2 * 12 / (23 + 29))
    assert (interval.low, interval.high) == pytest.approx(np.percentile(loop, (2.5, 97.5)), abs=1.5)


def test_the_interval_of_equal_cases_is_a_point_and_repeats():
    equal = bootstrap(table([(1, 2, 2)] * 6))["strict_micro_f1"]
    assert equal.low == equal.high == equal.value == pytest.approx(50)
    unequal = table([(n % 4, 3 + n % 5, 3 + n % 3) for n in range(17)])
    assert bootstrap(unequal) == bootstrap(unequal)
    assert bootstrap(unequal, seed=1) != bootstrap(unequal, seed=2)


def test_coverage_of_a_mean():
    """95 % intervals of 60 samples of 40 cases hold the true mean most of the time, not always."""
    rng, held = np.random.default_rng(3), 0
    for _ in range(60):
        scores = text_table([str(i) for i in range(40)], {"bleu": rng.random(40)}, 3)
        interval = bootstrap(scores, resamples=1000)["bleu"]
        held += interval.low <= 50 <= interval.high
    assert 50 <= held <= 60


def test_pairing_sees_what_separate_intervals_do_not():
    """B is A less one hit in every case: cases vary widely, the difference does not."""
    a = table([(n, n + 1, n + 2) for n in range(1, 21)])
    b = table([(n - 1, n + 1, n + 2) for n in range(1, 21)])
    alone_a, alone_b = bootstrap(a)["strict_micro_f1"], bootstrap(b)["strict_micro_f1"]
    paired = paired_difference(a, b)["strict_micro_f1"]
    assert paired.value == pytest.approx(alone_a.value - alone_b.value)
    assert paired.high - paired.low < (alone_a.high - alone_a.low)
    assert paired.low > 0 and paired.share_at_or_below_0 == 0
    back = paired_difference(b, a)["strict_micro_f1"]
    assert back.value == pytest.approx(-paired.value) and back.share_at_or_below_0 == 1


def test_a_run_against_itself_is_never_ahead():
    same = table([(1, 2, 3), (0, 2, 1), (4, 4, 4)])
    difference = paired_difference(same, same)["strict_macro_f1"]
    assert difference.value == difference.low == difference.high == 0 and difference.share_at_or_below_0 == 1


def test_pairs_go_by_case_id_and_need_the_same_cases():
    a = table([(1, 1, 1), (0, 1, 1)], ["x", "y"])
    swapped = table([(0, 1, 1), (1, 1, 1)], ["y", "x"])
    assert paired_difference(a, swapped)["overall_score"].high == 0
    with pytest.raises(DataError, match="same cases"):
        paired_difference(a, table([(1, 1, 1)], ["x"]))


def test_no_case_no_interval():
    with pytest.raises(DataError, match="no cases"):
        bootstrap(table([]))


def test_many_cases_are_drawn_a_block_at_a_time_and_as_if_at_once(monkeypatch):
    rng = np.random.default_rng(5)
    counted = table([(n, n + a, n + b) for n, a, b in rng.integers(0, 9, size=(70, 3))])
    texts = text_table([str(i) for i in range(70)], {"bleu": rng.random(70)}, 3)
    at_once = bootstrap(counted), bootstrap(texts)
    for block in (1, 100, 4321):
        monkeypatch.setattr(intervals, "BLOCK", block)
        assert bootstrap(counted)["strict_micro_f1"] == at_once[0]["strict_micro_f1"]
        for name, interval in bootstrap(texts).items():
            assert (interval.low, interval.high) == pytest.approx((at_once[1][name].low, at_once[1][name].high))
