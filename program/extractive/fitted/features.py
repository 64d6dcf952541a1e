"""What the evidence model sees of each note sentence: a matrix of interpretable numbers, one row a sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from archehr.program.extractive.cues import CUES, cue_row, what_is_asked
from archehr.program.extractive.fitted.tfidf import bm25, idf, vector
from archehr.program.extractive.question.focus import asks
from archehr.program.extractive.sections import KINDS, Place, joined, places
from archehr.program.extractive.text import content_terms, terms

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

STRUCTURE = (
    "length", "short", "length_to_mean", "length_rank", "numbers", "has_date", "is_header",
    "position", "place_in_block", "block_length", "block_to_longest", "block_words_to_longest",
    *(f"section_{kind}" for kind in (*KINDS, "other")),
)  # fmt: skip
NAMES = (*STRUCTURE, "block_asked", *CUES)

_NOT_WORDS = re.compile(r"\[\*\*.*?\*\*\]|_{2,}")


def sentence_features(question: str, narrative: str, texts: Sequence[str]) -> Matrix:
    """(len(texts), len(NAMES)); the first len(STRUCTURE) columns do not look at the question. Any text, from one
    sentence up; linear in the length of the note. Sentences that the splitter tore at "Dr." share one row."""
    import numpy as np

    parts, wholes = joined(texts)
    where = places(wholes)
    ranked = asks(narrative)
    asked = what_is_asked(" ".join([question, *(a.text for a in ranked[:3])]))
    columns = [
        _structure(wholes, where),
        _block_asked(wholes, where, [question, *[a.text for a in ranked if a.marked][:4]]),
        np.array([cue_row(text, asked) for text in wholes], dtype=float),
    ]
    rows: Matrix = np.hstack(columns)[parts]
    return rows


def _structure(texts: Sequence[str], where: Sequence[Place]) -> Matrix:
    import numpy as np

    lengths = np.array([len(_NOT_WORDS.sub("", t).split()) for t in texts], dtype=float)
    blocks = np.array([p.block for p in where])
    sizes = np.bincount(blocks)
    words = np.bincount(blocks, lengths)
    starts = np.cumsum(sizes) - sizes
    columns = [
        np.log1p(lengths),
        lengths < 7,
        lengths / max(lengths.mean(), 1.0),
        rank(lengths),
        np.log1p([len(re.findall(r"\d+", t)) for t in texts]),
        ["[**" in t for t in texts],
        [p.is_header for p in where],
        np.arange(len(texts)) / max(len(texts) - 1, 1),
        (np.arange(len(texts)) - starts[blocks]) / sizes[blocks],
        np.log1p(sizes[blocks]),
        sizes[blocks] / sizes.max(),
        words[blocks] / max(words.max(), 1.0),
        *([p.kind == kind for p in where] for kind in (*KINDS, "other")),
    ]
    return np.column_stack([np.asarray(c, dtype=float) for c in columns])


def _block_asked(texts: Sequence[str], where: Sequence[Place], questions: Sequence[str]) -> Matrix:
    """How much the block of each sentence speaks of that question which it speaks of most, relative to the best block
    of the note: a message asks of several problems, and each has a block of its own."""
    import numpy as np

    blocks = [p.block for p in where]
    spoken: list[list[str]] = [[] for _ in range(max(blocks) + 1)]
    for block, text in zip(blocks, texts, strict=True):
        spoken[block] += content_terms(text)
    scores: Matrix = np.array([bm25(spoken, content_terms(question)) for question in questions])
    best = (scores / np.maximum(scores.max(axis=1, keepdims=True), 1e-9)).max(axis=0)
    column: Matrix = best[blocks][:, None]
    return column


def concept_vectors(texts: Sequence[str]) -> list[dict[str, float]]:
    """What `shared_concepts` compares: the TF-IDF of the concepts of each sentence, of length 1, or empty."""
    found = [concepts_in(t) for t in texts]
    weights = idf(found)
    return [vector(names, weights) for names in found]


def shared_concepts(vectors: Sequence[dict[str, float]], chances: Matrix) -> Matrix:
    """How much each sentence shares concepts with the sentences likely to be evidence: the mean cosine to all others,
    weighted by their `chances`. It finds the facts that a conclusion elsewhere in the note rests on."""
    import numpy as np

    around: Counter[str] = Counter()
    for own, chance in zip(vectors, chances, strict=True):
        for name, weight in own.items():
            around[name] += chance * weight
    others = [
        sum(weight * (around[name] - chance * weight) for name, weight in own.items())
        for own, chance in zip(vectors, chances, strict=True)
    ]
    return np.array(others) / max(chances.sum(), 1e-9)


def rank(values: Matrix) -> Matrix:
    """0 for the highest ... 1 for the lowest."""
    import numpy as np

    order = np.argsort(np.argsort(-values, kind="stable"), kind="stable")
    ranked: Matrix = order / max(len(values) - 1, 1)
    return ranked


@lru_cache(maxsize=20_000)
def concepts_in(text: str) -> tuple[str, ...]:
    """Only the concepts that `text` names."""
    return tuple(t for t in terms(text) if t.startswith("="))
