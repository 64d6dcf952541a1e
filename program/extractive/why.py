"""Why the evidence model scored a sentence as it did: the features that weighed most for it, in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from archehr.program.extractive import score_sentences
from archehr.program.extractive.features import NAMES, sentence_features
from archehr.program.extractive.odds import log_odds

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

_LENGTH = ("it is long", "it is short")
_SECTIONS = {
    "course": "the hospital course",
    "followup": "the follow-up",
    "instructions": "the instructions",
    "meds": "the medications",
    "history": "the past history",
    "hpi": "the history of the present illness",
    "findings": "the findings",
    "admin": "the particulars of the stay",
    "other": "a section of no usual kind",
}
_SECTION = ("it stands in one of the note's long sections", "it stands in a short section")
# Feature -> what it says of a sentence where its number is above the mean, and below. Features with the same words
# are one reason. A feature without words, such as one that is added later, is given by its name.
_WORDS = {
    "length": _LENGTH,
    "length_to_mean": _LENGTH,
    "length_rank": _LENGTH[::-1],  # 0 is the longest
    "short": _LENGTH[::-1],
    "numbers": ("it holds figures", "it holds few figures"),
    "has_date": ("it holds a date", "it holds no date"),
    "is_header": ("it is a heading", "it is no heading"),
    "position": ("it stands late in the note", "it stands early in the note"),
    "place_in_block": ("it stands late in its section", "it stands early in its section"),
    "block_length": _SECTION,
    "block_to_longest": _SECTION,
    "block_words_to_longest": _SECTION,
    "asked_terms": ("it speaks of what is asked", "it uses other words than the message"),
    "block_asked_terms": ("its section speaks of what is asked", "its section speaks of other things"),
    "reason": ("it gives a reason", "it gives no reason"),
    "decision": ("it tells of a decision", "it tells of no decision"),
    "outlook": ("it says what to expect", "it does not say what to expect"),
    "plan": ("it tells a plan", "it tells no plan"),
    "opinion": ("it gives somebody's opinion", "it gives nobody's opinion"),
    "trend": ("it tells a course", "it tells no course"),
    "evidence": ("it reports a test", "it reports no test"),
    "change": ("it tells of a treatment changed", "it tells of no treatment changed"),
    "given": ("it records a treatment given", "it does more than record a treatment"),
    "arrival": ("it tells how the patient arrived", "it is not about the arrival"),
    "standing": ("it is about standing care", "it is not about standing care"),
    "reason_asked": ("it gives a reason, which is asked for", "it gives no reason"),
    "decision_asked": ("it tells of a decision, which is asked for", "it tells of no decision"),
    "outlook_asked": ("it says what to expect, which is asked for", "it does not say what to expect"),
    "plan_asked": ("it tells a plan, which is asked for", "it tells no plan"),
}


def what_weighed(
    question: str, narrative: str, texts: Sequence[str], wanted: Collection[int], most: int = 3
) -> dict[int, list[str]]:
    """Index into `texts` -> at most `most` reasons for its score, the heaviest first, for the `wanted` indices.

    In the log-odds of the model: the regression's terms, and of the trees each split's change of the chance on the
    sentence's way down (A. Saabas, "Interpreting random forests", 2014). Empty where the model is of another kind.
    """
    model = getattr(score_sentences, "_dev_model", lambda: None)()
    if model is None or not wanted or not (hasattr(model, "linear") and hasattr(model, "trees")):
        return {}
    order = sorted(wanted)
    rows = sentence_features(question, narrative, texts)[order]
    scaler, regression = model.linear[0], model.linear[-1]
    standard = scaler.transform(rows)
    weights = (standard * regression.coef_[0] + _of_trees(model.trees, rows)) / 2
    return {i: _in_words(w, above > 0, most) for i, w, above in zip(order, weights, standard, strict=True)}


def _in_words(weights: Matrix, above: Matrix, most: int) -> list[str]:
    sums: dict[str, float] = {}
    for name, weight, high in zip(NAMES, weights.tolist(), above.tolist(), strict=True):
        words = _phrase(name, high)
        sums[words] = sums.get(words, 0.0) + weight
    heaviest = sorted(sums, key=lambda words: -sums[words])
    return [words for words in heaviest[:most] if sums[words] > 0]


def _phrase(name: str, high: bool) -> str:
    if name.startswith("section_"):
        kind = name.removeprefix("section_")
        kind = _SECTIONS.get(kind, kind)
        return f"it stands in {kind}" if high else f"it does not stand in {kind}"
    words = _WORDS.get(name, (f"its {name} is high", f"its {name} is low"))
    return words[0] if high else words[1]


def _of_trees(trees: Any, rows: Matrix) -> Matrix:
    """(rows, features): what each feature adds to the forest's log-odds."""
    import numpy as np

    forest = _forest(trees)
    seen = rows.astype(np.float32)  # as scikit-learn's trees see them
    found = np.zeros(rows.shape)
    row = np.arange(len(rows))[:, None]
    node = np.broadcast_to(forest.roots, (len(rows), len(forest.roots)))
    while (forest.left[node] >= 0).any():
        feature, leaf = forest.feature[node], forest.left[node] < 0
        lower = seen[row, feature] <= forest.threshold[node]
        below = np.where(leaf, node, np.where(lower, forest.left[node], forest.right[node]))
        np.add.at(found, (np.broadcast_to(row, node.shape), feature), forest.chance[below] - forest.chance[node])
        node = below
    found /= len(forest.roots)
    usual, total = float(forest.chance[forest.roots].mean()), found.sum(axis=1)
    change = _odds(usual + total) - _odds(np.full(len(rows), usual))
    scale = np.divide(change, total, out=np.full_like(total, 4.0), where=abs(total) > 1e-9)
    scaled: Matrix = found * scale[:, None]
    return scaled


def _odds(chances: Matrix) -> Matrix:
    import numpy as np

    return log_odds(np.column_stack([1 - chances, chances]))


class _Forest(NamedTuple):
    """The nodes of all trees, one after the other: children (-1 in a leaf), split, and the chance at the node."""

    roots: Any
    left: Any
    right: Any
    feature: Any
    threshold: Any
    chance: Any


@cache
def _forest(trees: Any) -> _Forest:
    import numpy as np

    parts = [e.tree_ for e in trees.estimators_]
    roots = np.cumsum([0, *(t.node_count for t in parts[:-1])])

    def joined(name: str, start: bool = False) -> Any:
        made = [getattr(t, name) for t in parts]
        return np.concatenate([np.where(a >= 0, a + r, -1) if start else a for a, r in zip(made, roots, strict=True)])

    counts = joined("value")[:, 0, :]
    left, right = joined("children_left", True), joined("children_right", True)
    return _Forest(roots, left, right, joined("feature"), joined("threshold"), counts[:, 1] / counts.sum(axis=1))
