"""TF-IDF as scikit-learn defines it (sublinear counts, smoothed idf, unit length), without importing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from math import log, sqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

Terms = Sequence[str]


def idf(documents: Sequence[Terms]) -> dict[str, float]:
    """Term -> 1 + log((1 + documents) / (1 + those that have it))."""
    spread = Counter(chain.from_iterable(set(d) for d in documents))
    return {term: log((1 + len(documents)) / (1 + count)) + 1 for term, count in spread.items()}


def vector(terms: Terms, weights: dict[str, float]) -> dict[str, float]:
    """Term -> weight of one document, of length 1 (or without terms empty)."""
    found = {t: (1 + log(n)) * weights[t] for t, n in Counter(terms).items()}
    length = sqrt(sum(w * w for w in found.values()))
    return {t: w / length for t, w in found.items()}


def cosines(rows: Sequence[Terms], columns: Sequence[Terms], weights: dict[str, float]) -> Matrix:
    """(rows, columns) cosines. Time grows with the terms that both sides have."""
    import numpy as np

    having: dict[str, list[tuple[int, float]]] = {}
    for i, row in enumerate(rows):
        for term, weight in vector(row, weights).items():
            having.setdefault(term, []).append((i, weight))
    found = np.zeros((len(rows), len(columns)))
    for j, column in enumerate(columns):
        for term, weight in vector(column, weights).items():
            for i, other in having.get(term, ()):
                found[i, j] += weight * other
    return found


def pieces(text: str, sizes: tuple[int, int] = (3, 5)) -> list[str]:
    """The runs of 3 to 5 characters inside each word, its edges being spaces."""
    return list(chain.from_iterable(_pieces_of(f" {word} ", *sizes) for word in text.lower().split()))


def _pieces_of(word: str, shortest: int, longest: int) -> Iterator[str]:
    for size in range(shortest, longest + 1):
        yield word[:size]
        for start in range(1, len(word) - size + 1):
            yield word[start : start + size]
        if size >= len(word):  # a short word counts once
            return
