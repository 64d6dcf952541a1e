"""The per-case table every score is computed from, and the official leaderboards over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from archehr.metrics.counts import Array

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
# Official order on the leaderboard, and what the official overall score averages.
TEXT_COMPONENTS = {
    1: (*ROUGE, "bertscore", "medcon", "alignscore"),
    3: ("bleu", *ROUGE, "sari", "bertscore", "medcon", "alignscore"),
}
IN_OVERALL = {
    1: ("alignscore", "rougeLsum", "medcon", "bertscore"),
    3: ("bleu", "rougeLsum", "sari", "bertscore", "alignscore", "medcon"),
}
# SARI is 0-100 by nature; all others are fractions, of which MEDCON can exceed 1 and BERTScore fall below 0.
_SCALE = {"sari": 1.0}


@dataclass(frozen=True, slots=True)
class CaseTable:
    """One row per case, and how sums over rows become scores.

    `values` has shape (cases, columns); `board(totals, n)` turns sums over n cases, shape (..., columns), into named
    scores of shape (...) on the 0-100 scale. Point scores and their resamples go through the same function.
    """

    case_ids: tuple[str, ...]
    columns: tuple[str, ...]
    values: Array
    board: Callable[[Array, int], dict[str, Array]]

    def leaderboard(self) -> dict[str, float]:
        """Scores on the official scale (0-100)."""
        scores = self.board(self.values.sum(axis=0), len(self.case_ids))
        return {name: float(score) for name, score in scores.items()}

    def per_case(self) -> list[dict[str, float | str]]:
        """One record per case: its id and its columns (counts, and fractions as the official code averages them)."""
        return [
            {"case_id": case_id, **dict(zip(self.columns, map(float, row), strict=True))}
            for case_id, row in zip(self.case_ids, self.values, strict=True)
        ]


def text_table(case_ids: Sequence[str], components: Mapping[str, Sequence[float]], subtask: int) -> CaseTable:
    """The table of subtask 1 or 3 from per-case component scores (0-1; SARI 0-100) in the order of `case_ids`.

    The board has `overall_score` when every component of the official overall is there, `mean` (of those that are)
    otherwise.
    """
    columns = tuple(name for name in TEXT_COMPONENTS[subtask] if name in components)
    values = np.array([components[name] for name in columns], dtype=np.float64).T.reshape(len(case_ids), len(columns))
    return CaseTable(tuple(case_ids), columns, values, lambda totals, n: text_board(totals, n, columns, subtask))


def text_board(totals: Array, n: int, columns: Sequence[str], subtask: int) -> dict[str, Array]:
    """Mean over cases of each component, times 100, and the official overall: the plain mean of its components."""
    scores = {
        name: _SCALE.get(name, 100.0) * (totals[..., i] / n if n else np.full_like(totals[..., i], np.nan))
        for i, name in enumerate(columns)
    }
    averaged = mean_of(columns, subtask)
    if averaged:
        name = "overall_score" if set(averaged) == set(IN_OVERALL[subtask]) else "mean"
        scores[name] = np.mean([scores[c] for c in averaged], axis=0)
    return scores


def mean_of(columns: Sequence[str], subtask: int) -> list[str]:
    """The components of the official overall score that are among `columns`."""
    return [name for name in IN_OVERALL[subtask] if name in columns]
