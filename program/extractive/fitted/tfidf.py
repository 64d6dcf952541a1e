"""TF-IDF as scikit-learn defines it (sublinear counts, smoothed idf, unit length), without importing it; and BM25."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from math import log, sqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

Terms = Sequence[str]


def idf(documents: Sequence[Terms]) -> dict[str, float]:
    """Term -> 1 + log((1 + documents) / (1 + those that have it))."""
    spread = Counter(chain.from_iterable(map(set, documents)))
    by_count = {count: log((1 + len(documents)) / (1 + count)) + 1 for count in set(spread.values())}
    return {term: by_count[count] for term, count in spread.items()}


def vector(terms: Terms, weights: dict[str, float]) -> dict[str, float]:
    """Term -> weight of one document, of length 1 (or without terms empty)."""
    found = _weighted(terms, weights)
    length = _length(found)
    return {t: w / length for t, w in found.items()}


def _weighted(terms: Terms, weights: dict[str, float]) -> dict[str, float]:
    return {t: weights[t] if n == 1 else (1 + log(n)) * weights[t] for t, n in Counter(terms).items()}


def _length(weighted: dict[str, float]) -> float:
    return sqrt(sum([w * w for w in weighted.values()]))


def cosines(rows: Sequence[Terms], columns: Sequence[Terms], weights: dict[str, float]) -> Matrix:
    """(rows, columns) cosines. Time grows with the terms that both sides have."""
    import numpy as np

    having: dict[str, list[tuple[int, float]]] = {}
    for i, row in enumerate(rows):
        for term, weight in vector(row, weights).items():
            having.setdefault(term, []).append((i, weight))
    found = []
    for column in columns:
        own = _weighted(column, weights)
        length = _length(own)
        cosine = [0.0] * len(rows)
        for term in filter(having.__contains__, own):
            weight = own[term] / length
            for i, other in having[term]:
                cosine[i] += weight * other
        found.append(cosine)
    return np.array(found).T.reshape(len(rows), len(columns))


def bm25(documents: Sequence[Terms], query: Terms, k1: float = 1.2, b: float = 0.75) -> list[float]:
    """Okapi BM25 of each document for the query, with the idf that is never negative."""
    lengths = [len(d) for d in documents]
    usual = max(sum(lengths) / len(lengths), 1.0)
    counts = [Counter(d) for d in documents]
    scores = [0.0] * len(documents)
    for term in dict.fromkeys(query):
        having = [i for i, count in enumerate(counts) if term in count]
        weight = log(1 + (len(documents) - len(having) + 0.5) / (len(having) + 0.5))
        for i in having:
            often = counts[i][term]
            scores[i] += weight * often * (k1 + 1) / (often + k1 * (1 - b + b * lengths[i] / usual))
    return scores


def pieces(text: str) -> list[str]:
    """The runs of 3 to 5 characters inside each word, its edges being spaces."""
    return list(chain.from_iterable(_pieces_of(f" {word} ") for word in text.lower().split()))


@lru_cache(maxsize=20_000)
def _pieces_of(word: str) -> tuple[str, ...]:
    sizes = range(3, min(len(word), 5) + 1)
    return tuple(word[start : start + size] for size in sizes for start in range(len(word) - size + 1))
