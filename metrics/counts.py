"""Precision, recall and F1 from counts: the one formula under subtasks 2 and 4, for one case or many resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# What `count_rows` stores of a case, in this order.
ROW = ("tp", "n_pred", "n_gold", "precision", "recall", "f1")


@dataclass(frozen=True, slots=True)
class Counts:
    """True positives, predictions and gold items of one case (sets: repeats count once)."""

    tp: int
    n_pred: int
    n_gold: int


def precision_recall_f1(tp: Any, n_pred: Any, n_gold: Any, *, both_empty: float) -> tuple[Array, Array, Array]:
    """Precision, recall and F1 (0-1) of counts of any one shape.

    A ratio over nothing is 0, except that all three are `both_empty` where nothing was predicted and nothing is gold:
    1 in the official subtask-2 scorer, 0 in the one of subtask 4.
    """
    tp, n_pred, n_gold = (np.asarray(x, dtype=np.float64) for x in (tp, n_pred, n_gold))
    precision = _ratio(tp, n_pred)
    recall = _ratio(tp, n_gold)
    f1 = _ratio(2 * precision * recall, precision + recall)
    empty = (n_pred == 0) & (n_gold == 0)
    precision, recall, f1 = (np.where(empty, both_empty, x) for x in (precision, recall, f1))
    return precision, recall, f1


def count_rows(counts: Sequence[Counts], *, both_empty: float) -> Array:
    """Shape (cases, 6): the columns of ROW."""
    raw = np.array([(c.tp, c.n_pred, c.n_gold) for c in counts], dtype=np.float64).reshape(len(counts), 3)
    return np.column_stack([raw, *precision_recall_f1(*raw.T, both_empty=both_empty)])


def micro_macro(totals: Array, n: int, *, both_empty: float, no_cases: float) -> dict[str, Array]:
    """Scores (0-100) from the sums of ROW over `n` cases; `totals` has shape (..., 6).

    Micro scores pool the counts, macro scores average the cases (macro F1 is the mean of F1s). `no_cases` is the
    macro score of an empty set.
    """
    micro = precision_recall_f1(totals[..., 0], totals[..., 1], totals[..., 2], both_empty=both_empty)
    names = ROW[3:]
    scores = {f"micro_{name}": 100 * score for name, score in zip(names, micro, strict=True)}
    for column, name in enumerate(names, 3):
        total = totals[..., column]
        scores[f"macro_{name}"] = 100 * (total / n if n else np.full_like(total, no_cases))
    return scores


def _ratio(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.zeros(np.broadcast(above, below).shape), where=below > 0)
