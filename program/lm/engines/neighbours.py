"""Sentences and sentence pairs as feature vectors, and nearest neighbours over them, for the `knn` LM."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bag = frozenset[str]

NEIGHBOURS = 25
RIDGE = 20.0
TINY = 1e-9


def words(text: str) -> Bag:
    """Lower-case words of three letters and more, cut to six (a crude stem), and numbers."""
    return frozenset(w[:6] for w in re.findall(r"[a-z]{3,}|\d+(?:\.\d+)?", text.lower()))


def letters(text: str) -> Bag:
    """Runs of four characters: "hypotensive" and "hypotension" share most of theirs."""
    flat = " ".join(re.findall(r"[a-z0-9]+", text.lower()))
    return frozenset(flat[i : i + 4] for i in range(len(flat) - 3))


def is_heading(text: str) -> bool:
    return text.rstrip().endswith(":") or text.lstrip().startswith("#")


class Rarity:
    """How much a word tells: log inverse document frequency over the sentences given; a word not seen tells most."""

    def __init__(self, texts: Iterable[str]) -> None:
        bags = [words(text) for text in texts]
        counts = Counter(word for bag in bags for word in bag)
        self._most = math.log(2 * (len(bags) + 1))
        self._weights = {word: math.log((len(bags) + 1) / (n + 0.5)) for word, n in counts.items()}

    def shared(self, a: Sequence[Bag], b: Sequence[Bag]) -> Array:
        """Weight of the words that each of `a` shares with each of `b`: (len(a), len(b))."""
        index = {word: i for i, word in enumerate(sorted(frozenset().union(*a) & frozenset().union(*b)))}
        weights = np.array([self._weights.get(word, self._most) for word in index])
        return (_incidence(a, index) * weights) @ _incidence(b, index).T

    def total(self, bags: Sequence[Bag]) -> Array:
        """Weight of all words of each bag, never 0."""
        return np.array([sum(self._weights.get(word, self._most) for word in bag) for bag in bags]) + TINY


def _incidence(bags: Sequence[Bag], index: Mapping[str, int]) -> Array:
    matrix = np.zeros((len(bags), len(index)))
    for row, bag in enumerate(bags):
        for word in bag:
            if word in index:
                matrix[row, index[word]] = 1
    return matrix


def line_features(lines: Sequence[str], contexts: Sequence[str], rarity: Rarity) -> Array:
    """(lines, features): what each line and its surroundings share with each context, and what it looks like."""
    bags = [words(line) for line in lines]
    total = rarity.total(bags)
    block = _blocks(lines)
    columns = []
    for context in contexts:
        target = [words(context)]
        near = _scaled(rarity.shared(bags, target)[:, 0] / np.sqrt(total))
        block_bags = [frozenset().union(*(b for b, k in zip(bags, block, strict=True) if k == j)) for j in set(block)]
        by_block = dict(zip(set(block), rarity.shared(block_bags, target)[:, 0], strict=True))
        columns += [near, _scaled(np.array([by_block[j] for j in block])), _beside(near)]
    among = rarity.shared(bags, bags) / np.sqrt(np.outer(total, total))
    np.fill_diagonal(among, 0)
    if columns:
        columns.append(_scaled(among @ columns[0] ** 2))  # like the lines that are like the first context
    columns.append(_scaled(among.mean(axis=1)))
    since_heading = [i - block.index(j) for i, j in enumerate(block)]
    columns += [
        np.linspace(0, 1, len(lines)),
        np.log1p(since_heading),
        np.log([block.count(j) for j in block]),
        np.log1p([len(line) for line in lines]),
        np.log1p([len(re.findall(r"\d", line)) for line in lines]),
        np.array([line.rstrip().endswith(":") for line in lines], float),
        np.array([bool(re.match(r"\s*(#|-|\d+[.)])", line)) for line in lines], float),
        np.array(["?" in line for line in lines], float),
    ]
    return np.stack(columns, axis=1)


def pair_features(left: Sequence[str], right: Sequence[str], contexts: Sequence[str], rarity: Rarity) -> Array:
    """(left, right, features): how alike each pair is, by words and by letters, and against the other pairs."""
    a, b = [words(t) for t in left], [words(t) for t in right]
    shared, weight_a, weight_b = rarity.shared(a, b), rarity.total(a)[:, None], rarity.total(b)[None, :]
    a4, b4 = [letters(t) for t in left], [letters(t) for t in right]
    index = {run: i for i, run in enumerate(sorted(frozenset().union(*a4)))}
    size = np.sqrt(1 + np.outer([len(x) for x in a4], [len(x) for x in b4]))
    by_letters = _incidence(a4, index) @ _incidence(b4, index).T / size
    numbers = [[float(sum(w[0].isdigit() for w in x & y)) for y in b] for x in a]
    planes = [*_standing(shared / np.sqrt(weight_a * weight_b)), *_standing(by_letters)]
    planes += [shared / weight_a, np.array(numbers)]
    for row in (
        *(rarity.shared([words(c)], b)[0] / np.sqrt(weight_b[0]) for c in contexts),
        np.array([is_heading(t) for t in right], float),
        np.log1p([len(t) for t in right]),
    ):
        planes.append(np.broadcast_to(row, shared.shape))
    return np.stack(planes, axis=-1)


def _standing(alike: Array) -> list[Array]:
    """Likeness itself, against the best of its row and of its column, the lead over the runner-up, the neighbours."""
    runner_up = np.sort(alike, axis=1)[:, -2:-1] if alike.shape[1] > 1 else 0 * alike
    of_row = alike / (alike.max(axis=1, keepdims=True) + TINY)
    of_column = alike / (alike.max(axis=0, keepdims=True) + TINY)
    return [alike, of_row, of_column, alike - runner_up, _beside(alike.T).T]


def _blocks(lines: Sequence[str]) -> list[int]:
    """Which part of the note each line is in; a heading opens a part."""
    numbers: list[int] = []
    for line in lines:
        numbers.append((numbers[-1] if numbers else 0) + int(is_heading(line)))
    return numbers


def _beside(values: Array) -> Array:
    """Sum of the value before and the value after, along the first axis."""
    sums = np.zeros_like(values)
    sums[1:] += values[:-1]
    sums[:-1] += values[1:]
    return sums


def _scaled(values: Array) -> Array:
    return values / (values.max(initial=0) + TINY)


@dataclass(frozen=True)
class Neighbours:
    """Labelled points; a new point gets the mean label of the nearest ones, nearer ones counting more.

    `group` says which demo a point is from. A feature counts for distance as much as ridge regression on the labels
    leans on it, so that features that do not tell do not blur the neighbourhood.
    """

    features: Array
    labels: Array
    group: NDArray[np.int64]

    def predict(self, features: Array) -> Array:
        """(n, features) -> (n,) labels."""
        return self._mean_label(self._place(features), None)

    @cached_property
    def held_out(self) -> Array:
        """What each labelled point would get from the other demos (with one demo only: from the other points)."""
        if len(self.labels) == 1:
            return self.labels
        group = self.group if len(set(self.group)) > 1 else np.arange(len(self.labels))
        return self._mean_label(self._points, group)

    def cut(self, least: float) -> float:
        """The predicted value from which on a label of at least `least` is foretold with the best F1 (held out)."""
        positive = self.labels >= least
        values = np.unique(np.quantile(self.held_out, np.linspace(0.3, 1, 120)))
        tries = np.append(values[0], (values[1:] + values[:-1]) / 2)  # midway, not on the edge of a gap
        chosen = self.held_out[None, :] >= tries[:, None]
        f1 = 2 * (chosen & positive).sum(axis=1) / (chosen.sum(axis=1) + positive.sum())
        return float(tries[int(np.argmax(f1))])

    @cached_property
    def _scale(self) -> tuple[Array, Array]:
        centre, spread = self.features.mean(axis=0), self.features.std(axis=0) + 1e-6
        z = (self.features - centre) / spread
        slope = np.linalg.solve(z.T @ z + RIDGE * np.eye(z.shape[1]), z.T @ (self.labels - self.labels.mean()))
        weight = np.abs(slope) + TINY
        return centre, np.sqrt(weight / weight.sum()) / spread

    @cached_property
    def _points(self) -> Array:
        return self._place(self.features)

    def _place(self, features: Array) -> Array:
        centre, scale = self._scale
        return (features - centre) * scale

    def _mean_label(self, places: Array, without: NDArray[np.int64] | None) -> Array:
        """Mean label near each of `places`; with `without`, the group of each place, which is then left out."""
        points = self._points
        distance = (places**2).sum(1)[:, None] + (points**2).sum(1)[None, :] - 2 * places @ points.T
        distance = np.maximum(distance, 0)
        if without is not None:
            distance[without[:, None] == without] = np.inf
        k = max(1, min(NEIGHBOURS, len(points) // 4))
        nearest = np.argpartition(distance, k - 1, axis=1)[:, :k]
        chosen = np.take_along_axis(distance, nearest, axis=1)
        usable = np.isfinite(chosen)
        chosen = np.where(usable, chosen, 0)
        typical = chosen.sum(axis=1, keepdims=True) / np.maximum(usable.sum(axis=1, keepdims=True), 1) + TINY
        weight = usable * np.exp(-chosen / typical)
        return (weight * self.labels[nearest]).sum(axis=1) / weight.sum(axis=1)
