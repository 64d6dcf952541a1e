"""95 % bootstrap intervals over cases, for one run and for the difference of two runs on the same cases."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np

from archehr.data.case import DataError
from archehr.metrics.counts import Array
from archehr.metrics.leaderboard import CaseTable

RESAMPLES = 10_000
SEED = 2026
BLOCK = 2_000_000  # draws in memory at once, 16 MB


@dataclass(frozen=True, slots=True)
class Interval:
    """A score (0-100) and its 95 % percentile interval."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Difference(Interval):
    """Score of A minus score of B (points), its interval, and the share of resamples in which A is not ahead."""

    share_at_or_below_0: float


def bootstrap(table: CaseTable, *, resamples: int = RESAMPLES, seed: int = SEED) -> dict[str, Interval]:
    """The interval of every score of `table`: cases are drawn with replacement, micro scores pool the drawn counts.

    Percentile bootstrap (Efron and Tibshirani 1993). Raises DataError for a table without cases.
    """
    values = table.leaderboard()
    drawn = _resampled(table, resamples, seed)
    return {name: Interval(values[name], *_bounds(scores)) for name, scores in drawn.items()}


def paired_difference(
    a: CaseTable, b: CaseTable, *, resamples: int = RESAMPLES, seed: int = SEED
) -> dict[str, Difference]:
    """A minus B for every score both have; each resample draws the same cases for both.

    Raises DataError when the two tables do not hold the same cases.
    """
    b = _reordered(b, a.case_ids)
    ours, theirs = a.leaderboard(), b.leaderboard()
    drawn_a, drawn_b = _resampled(a, resamples, seed), _resampled(b, resamples, seed)
    differences = {}
    for name in [n for n in drawn_a if n in drawn_b]:
        drawn = drawn_a[name] - drawn_b[name]
        # Resamples are sums of floats: what is 0 but for rounding is 0.
        share = float(np.mean(drawn <= 1e-9))
        differences[name] = Difference(ours[name] - theirs[name], *_bounds(drawn), share)
    return differences


def _resampled(table: CaseTable, resamples: int, seed: int) -> dict[str, Array]:
    n = len(table.case_ids)
    if n == 0:
        raise DataError("no cases to score, so there is nothing to resample; check --cases and the files")
    return table.board(_totals(table.values, resamples, seed), n)


def _bounds(scores: Array) -> tuple[float, float]:
    low, high = np.percentile(scores, (2.5, 97.5))
    return float(low), float(high)


def _totals(values: Array, resamples: int, seed: int) -> Array:
    """Shape (resamples, columns): the sums over the cases that each resample drew."""
    n = len(values)
    if resamples * n <= BLOCK:
        return _weights(n, resamples, seed) @ values
    generator, at_once = np.random.default_rng(seed), max(1, BLOCK // n)
    sizes = (min(at_once, resamples - done) for done in range(0, resamples, at_once))
    return np.concatenate([_drawn(generator, n, size) @ values for size in sizes])


@lru_cache(maxsize=4)
def _weights(n: int, resamples: int, seed: int) -> Array:
    """How often each resample drew each case. The same draws serve every score and both of a pair."""
    weights = _drawn(np.random.default_rng(seed), n, resamples)
    weights.setflags(write=False)
    return weights


def _drawn(generator: np.random.Generator, n: int, resamples: int) -> Array:
    """Shape (resamples, n): how often each case was drawn."""
    drawn = generator.integers(0, n, size=(resamples, n))
    drawn += np.arange(resamples)[:, None] * n
    return np.bincount(drawn.ravel(), minlength=resamples * n).reshape(resamples, n).astype(np.float64)


def _reordered(table: CaseTable, case_ids: tuple[str, ...]) -> CaseTable:
    if table.case_ids == case_ids:
        return table
    row = {case_id: i for i, case_id in enumerate(table.case_ids)}
    if set(row) != set(case_ids) or len(table.case_ids) != len(case_ids):
        odd = ", ".join(sorted(map(str, set(row) ^ set(case_ids)))[:8])
        raise DataError(
            f"the two runs did not answer the same cases (differing: {odd}); score both on --cases they share"
        )
    return CaseTable(case_ids, table.columns, table.values[[row[i] for i in case_ids]], table.board)
