"""What needs a look in a finished run: the marks of a case, each a filter of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from archehr.metrics.components import MEAN, headline
from archehr.program.run.records import CaseRecord

SURE = 2 / 3  # a case whose confidence is below this is uncertain
LOWEST = 0.1  # share of the scored cases that are the lowest


@dataclass(frozen=True, slots=True)
class Look:
    """A reason to look at a case: its sign, its name, why, and the colour class of its tag."""

    sign: str
    name: str
    why: str
    tone: str


# The gravest first: a case's header shows the first that it has.
LOOKS = {
    "failed": Look("✕", "Failed", "an LM failed or was not reached, and a fallback answered", "bad"),
    "declined": Look("–", "Declined", "the program says that the note does not answer the question", "part"),
    "unsupported": Look("!", "Unsupported", "a sentence of the answer has no direct support in the note", "bad"),
    "uncertain": Look("?", "Uncertain", "the evidence was chosen with little confidence", "part"),
    "lowest": Look("↓", "Lowest scoring", "among the tenth of the cases that score lowest", "part"),
}
CLEAR = Look("✓", "Nothing to look at", "none of the above", "good")

# What a notice says. A kind that is not here shows as it is.
NOTICES = {
    "lm_failed": "the LM gave no usable reply, and a fallback answered",
    "retried": "the LM was asked again",
    "missing_ids": "the LM left out ids",
    "unknown_ids": "the LM named ids that do not exist; they were dropped",
    "relaxed_cut": "no sentence reached the cut, and the relaxed cut was taken",
    "cut_words": "the text was too long and was cut",
    "empty": "nothing was found",
    "repaired": "the reply was repaired",
    "not_answered": "the note does not answer the question",
    "language": "the note does not look English, which is all that the stages without an LM read",
    "view_failed": "one way of asking for evidence failed; the others decided",
    "sample_failed": "one of several replies failed; the others decided",
    "unsupported": "a sentence of the answer was found without support",
    "revised": "the answer was revised",
    "dropped": "a sentence of the answer was dropped for want of support",
}


def looks_of(record: CaseRecord, lowest: bool) -> list[str]:
    """The keys of LOOKS that this case has, the gravest first; `lowest` is whether it scored so."""
    kinds = {n["kind"] for n in record.notices}
    unsure = "relaxed_cut" in kinds or any(n["kind"] == "empty" and n["stage"] == "score" for n in record.notices)
    confidence = confidence_of(record)
    declined = declines(record)
    found = {
        "failed": bool(unreached(record)) or "lm_failed" in kinds,
        "declined": declined,
        "unsupported": not declined and ("unsupported" in kinds or bool(unsupported(record))),
        "uncertain": not declined and (unsure or (confidence is not None and confidence < SURE)),
        "lowest": lowest,
    }
    return [name for name in LOOKS if found[name]]


def unreached(record: CaseRecord) -> list[str]:
    """The stages that a fallback answered because no LM was reached."""
    return list(record.unreached)


def declines(record: CaseRecord) -> bool:
    """Whether the program says that the note does not answer."""
    return bool(record.declined) or any(n["kind"] == "not_answered" for n in record.notices)


def unsupported(record: CaseRecord) -> list[str]:
    """The ids of the program's own answer sentences that cite nothing."""
    return [link.answer_id for link in record.links or () if not link.evidence_ids]


def confidence_of(record: CaseRecord) -> float | None:
    """0..1: the lowest confidence of the sentences taken as evidence where views voted, else their mean score on the
    same scale; 0 where there is no evidence, None where none was asked for or the program declined."""
    if record.scores is None or record.evidence is None or declines(record):
        return None
    chosen = [s for s in record.scores if s.id in set(record.evidence)]
    if not chosen:
        return 0.0
    voted = [float(c) for s in chosen if (c := getattr(s, "confidence", None)) is not None]
    return min(voted) if voted else fmean((s.score - 1) / 4 for s in chosen)


class CaseScores:
    """What each case alone would score (0-100), from scores.json: by subtask, their mean, and who is lowest."""

    def __init__(self, scores: Mapping[str, Any]) -> None:
        self._boards: dict[str, tuple[str, Mapping[str, Mapping[str, float]]]] = {}
        for name, found in scores.items():
            if name.startswith("subtask_") and found.get("case_scores"):
                number = name.removeprefix("subtask_")
                values = {**found["leaderboard"]} | ({MEAN: found[MEAN]} if MEAN in found else {})
                self._boards[number] = (headline(int(number), values), found["case_scores"])
        ids = {i for _, cases in self._boards.values() for i in cases}
        means = sorted(m for i in ids if (m := self.mean(i)) is not None)
        below = max(1, int(len(means) * LOWEST))
        self._lowest = means[below - 1] if len(means) > 1 and means[0] < means[-1] else -1.0

    def of(self, case_id: str) -> dict[str, float]:
        """Subtask -> the case's headline score."""
        return {n: cases[case_id][main] for n, (main, cases) in self._boards.items() if main in cases.get(case_id, {})}

    def mean(self, case_id: str) -> float | None:
        """The mean over the subtasks that were scored, None where none was."""
        found = self.of(case_id)
        return fmean(found.values()) if found else None

    def is_lowest(self, case_id: str) -> bool:
        """Is the case among the lowest scoring?"""
        mean = self.mean(case_id)
        return mean is not None and mean <= self._lowest
