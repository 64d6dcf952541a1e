"""Why the evidence model scored a sentence as it did: the features that weighed most for it, in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from archehr.program.extractive.asked.match import Asked
from archehr.program.extractive.fitted.at_work import models_at_work
from archehr.program.extractive.fitted.features import NAMES, sentence_features

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
    "block_asked": ("its section speaks of what is asked", "its section speaks of other things"),
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
    "match": ("it speaks of what is asked", "it speaks of other things"),
}


def what_weighed(
    question: str, narrative: str, texts: Sequence[str], wanted: Collection[int], most: int = 3
) -> dict[int, list[str]]:
    """Index into `texts` -> at most `most` reasons for its score by the models at work, the heaviest first, for the
    `wanted` indices: its terms of the model's log-odds."""
    import numpy as np

    if not wanted:
        return {}
    order, model = sorted(wanted), models_at_work().evidence.logistic
    columns = [NAMES.index(name) for name in model.names]
    rows = sentence_features(question, narrative, texts)[order][:, columns]
    standard = (rows - np.array(model.mean)) / np.array(model.scale)
    asked = Asked.of(question, narrative, texts)
    names = (*model.names, "match")
    weights = np.column_stack([standard * np.array(model.weights), asked.log_odds[order]])
    high = np.column_stack([standard, asked.match[order]]) > 0
    return {i: _in_words(names, w, above, most) for i, w, above in zip(order, weights, high, strict=True)}


def _in_words(names: Sequence[str], weights: Matrix, above: Matrix, most: int) -> list[str]:
    sums: dict[str, float] = {}
    for name, weight, high in zip(names, weights.tolist(), above.tolist(), strict=True):
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
