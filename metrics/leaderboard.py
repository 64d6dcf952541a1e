"""The per-case table every score is computed from, and the leaderboards over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from archehr.metrics.components import MEAN, OVERALL, Component, components, mean_of
from archehr.metrics.counts import Array


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

    def case_boards(self, names: Sequence[str]) -> CaseBoards:
        """The `names` of the board of each case alone."""
        board = self.board(self.values, 1)
        return CaseBoards(self.case_ids, {name: board[name] for name in names})

    def per_case(self) -> list[dict[str, float | str]]:
        """One record per case: its id and its columns (counts, and fractions as the official code averages them)."""
        return [
            {"case_id": case_id, **dict(zip(self.columns, map(float, row), strict=True))}
            for case_id, row in zip(self.case_ids, self.values, strict=True)
        ]


class CaseBoards(Mapping[str, dict[str, float]]):
    """Case id -> score name -> score (0-100), kept as a number a score and case until it is asked for."""

    def __init__(self, case_ids: Sequence[str], scores: Mapping[str, Array]) -> None:
        self._rows = _rows(tuple(case_ids))
        self._scores = scores

    def __getitem__(self, case_id: str) -> dict[str, float]:
        row = self._rows[case_id]
        return {name: float(scores[row]) for name, scores in self._scores.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


@lru_cache(maxsize=1)
def _rows(case_ids: tuple[str, ...]) -> Mapping[str, int]:
    """Case id -> row. The tables of one run are of the same cases, so that they share it."""
    return {case_id: row for row, case_id in enumerate(case_ids)}


def text_table(case_ids: Sequence[str], scores: Mapping[str, Sequence[float]], subtask: int) -> CaseTable:
    """The official table of subtask 1 or 3 from per-case component scores (0-1; SARI 0-100) in the order of
    `case_ids`."""
    return with_components(bare_table(case_ids), scores, subtask, components(subtask, official_only=True))


def bare_table(case_ids: Sequence[str]) -> CaseTable:
    """A table without a column yet, whose board is empty."""
    return CaseTable(tuple(case_ids), (), np.empty((len(case_ids), 0)), lambda totals, n: {})


def with_components(
    table: CaseTable, scores: Mapping[str, Sequence[float]], subtask: int, known: Sequence[Component]
) -> CaseTable:
    """`table` with a column more for each of the `known` components that `scores` holds, a number per case.

    Its board has their means over cases on the 0-100 scale and, where components are in the overall score, their
    plain mean: `overall_score` when all of them are there, else `mean`.
    """
    shown = [component for component in known if component.name in scores]
    if not shown:
        return table
    width = len(table.columns)
    averaged = mean_of(scores, subtask)
    overall = OVERALL if averaged == mean_of([c.name for c in known], subtask) else MEAN

    def board(totals: Array, n: int) -> dict[str, Array]:
        leaderboard = table.board(totals[..., :width], n)
        for column, component in enumerate(shown, width):
            total = totals[..., column]
            leaderboard[component.name] = component.scale * (total / n if n else np.full_like(total, np.nan))
        return leaderboard | ({overall: np.mean([leaderboard[name] for name in averaged], axis=0)} if averaged else {})

    columns = [np.asarray(scores[component.name], dtype=np.float64) for component in shown]
    # Texts column by column, as the official np.mean gets them: numpy's last digit depends on the layout.
    values = np.column_stack([table.values, *columns]) if width else np.array(columns).T
    return CaseTable(table.case_ids, (*table.columns, *(c.name for c in shown)), values, board)
