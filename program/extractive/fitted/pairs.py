"""What the alignment model sees of each pair of answer and note sentence: a matrix, one row a pair."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from archehr.program.extractive.abbreviations import expand
from archehr.program.extractive.fitted.features import NAMES, concepts_in, rank, sentence_features
from archehr.program.extractive.fitted.tfidf import Terms, cosines, idf, pieces
from archehr.program.extractive.text import content_terms, terms

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_MONTHS = ("january", "february", "march", "april", "", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
# "may" is more often the verb.
_SPELLED = {word: str(i) for words in (_COUNTS, _MONTHS) for i, word in enumerate(words, 1)}


_OF_THE_PAIR = (
    "terms_alike", "concepts_alike", "words_alike", "spelling_alike", "share_of_answer", "shared_weight",
    "shared_numbers", "rank", "log_rank", "log_rank_of_answer", "to_best_note", "to_best_answer",
    "alike_before", "alike_after", "alike_to_answer", "share_of_alike", "like_best_note", "from_best_note",
    "from_same_place", "answer_length",
)  # fmt: skip
PAIR_NAMES = (*_OF_THE_PAIR, *(f"note_{name}" for name in NAMES))


def pair_features(answers: Sequence[str], notes: Sequence[str], question: str) -> Matrix:
    """(len(answers) * len(notes), len(PAIR_NAMES)), answers outermost: how alike the two are in words, concepts,
    spelling and numbers; how that compares with the rivals on both sides; what the note sentence is by itself."""
    import numpy as np

    said = _readings(answers), _readings(notes)
    weights = [idf([*one, *other]) for one, other in zip(*said, strict=True)]
    by_terms, by_concepts, by_words, by_spelling = map(cosines, *said, weights)
    alike = by_terms + by_concepts / 2 + by_spelling
    to_answer = np.broadcast_to(alike.sum(axis=0), alike.shape)
    around = np.pad(alike, ((0, 0), (1, 1)))
    best = alike.argmax(axis=1)
    places = np.arange(len(notes)) / max(len(notes) - 1, 1)
    order = np.arange(len(answers)) / max(len(answers) - 1, 1)
    ranks = np.array([rank(row) for row in alike])
    rivals = np.array([rank(column) for column in alike.T]).T
    columns = [
        by_terms, by_concepts, by_words, by_spelling,
        *_shared_weight(said[0][0], said[1][0], weights[0]),
        _shared_numbers(answers, notes),
        ranks, np.log1p(ranks * (len(notes) - 1)), np.log1p(rivals * (len(answers) - 1)),
        alike / _at_least(alike.max(axis=1, keepdims=True)), alike / _at_least(alike.max(axis=0, keepdims=True)),
        around[:, :-2], around[:, 2:], to_answer, alike / _at_least(to_answer),
        _to_best(said[1][0], best), np.abs(places - places[best][:, None]),
        np.abs(places - order[:, None]),
        np.broadcast_to(np.log1p([[len(a.split())] for a in answers]), alike.shape),
    ]  # fmt: skip
    pairs = np.stack(columns, axis=-1).reshape(len(answers) * len(notes), -1)
    rows: Matrix = np.hstack([pairs, np.tile(sentence_features(question, "", notes), (len(answers), 1))])
    return rows


def _readings(texts: Sequence[str]) -> list[list[Terms]]:
    """The texts as words and concepts, concepts, words, and pieces of words."""
    return [[terms(t) for t in texts], [concepts_in(t) for t in texts], [_plain_words(t) for t in texts],
            [pieces(expand(t)) for t in texts]]  # fmt: skip


def _plain_words(text: str) -> list[str]:
    return [t for t in content_terms(text) if not t.startswith("=")]


def _to_best(notes: Sequence[Terms], best: Sequence[int]) -> Matrix:
    """Cosine of each note sentence with the one most like the answer sentence."""
    alike = [notes[i] for i in best]
    return cosines(alike, notes, idf([*notes, *alike]))


def _shared_weight(answers: Sequence[Terms], notes: Sequence[Terms], idfs: dict[str, float]) -> tuple[Matrix, Matrix]:
    """Idf of the terms that both have: as a share of the answer sentence's, and as it is."""
    import numpy as np

    asked, found = [set(a) for a in answers], [set(n) for n in notes]
    shared = np.array([[sum(idfs[t] for t in sorted(a & n)) for n in found] for a in asked])
    whole = np.array([[sum(idfs[t] for t in sorted(a))] for a in asked])
    return shared / _at_least(whole), shared


def _shared_numbers(answers: Sequence[str], notes: Sequence[str]) -> Matrix:
    """How many numbers both have; a single digit says less than half as much."""
    import numpy as np

    asked, found = [_numbers(a) for a in answers], [_numbers(n) for n in notes]
    return np.array([[sum(1.0 if len(x) > 1 else 0.4 for x in a & n) for n in found] for a in asked])


def _numbers(text: str) -> set[str]:
    words = {_SPELLED[w] for w in re.findall(r"[a-z]+", text.lower()) if w in _SPELLED}
    return words | set(re.findall(r"\d+(?:\.\d+)?", text))


def _at_least(values: Matrix) -> Matrix:
    import numpy as np

    positive: Matrix = np.maximum(values, 1e-9)
    return positive
