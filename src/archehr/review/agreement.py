"""How far reviewers agree: Cohen's kappa and F1 of evidence and links, where they differ, and what seeing the
program's marks does."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from statistics import median

from archehr.data.case import Relevance
from archehr.review.history import CaseReview
from archehr.review.labels import Labels

Reviews = Mapping[str, CaseReview]  # case id -> a finished review

SAME_SENTENCE = 0.5  # two answer sentences at least this alike (difflib's ratio) are held to be the same one


@dataclass(frozen=True)
class Agreement:
    """Two reviewers over the cases both have finished. Kappas are None where they are not defined: both gave one and
    the same label throughout, or there is nothing to compare. F1 is 0-100, and the same whichever comes first."""

    reviewers: tuple[str, str]
    cases: list[str]
    sentences: int
    kappa: float | None
    kappa_essential: float | None
    evidence_f1: float | None
    links_f1: float | None
    differences: dict[str, list[str]]


def agreement(first: str, second: str, reviews: Mapping[str, Reviews]) -> Agreement:
    """How `first` and `second` agree."""
    both = [i for i in reviews[first] if i in reviews[second]]
    pairs = [(reviews[first][i].labels, reviews[second][i].labels) for i in both]
    marks = [(a.marks[s], b.marks[s]) for a, b in pairs for s in a.marks]
    essential = [(a is Relevance.ESSENTIAL, b is Relevance.ESSENTIAL) for a, b in marks]
    differences = {i: differing(a, b) for i, (a, b) in zip(both, pairs, strict=True)}
    return Agreement(
        reviewers=(first, second),
        cases=both,
        sentences=len(marks),
        kappa=_kappa(marks),
        kappa_essential=_kappa(essential),
        evidence_f1=_f1([(set(a.essential), set(b.essential)) for a, b in pairs]),
        links_f1=_f1([_links(a, b) for a, b in pairs]),
        differences={i: where for i, where in differences.items() if where},
    )


def agreements(reviews: Mapping[str, Reviews]) -> list[Agreement]:
    """Every two reviewers who have finished a case in common."""
    pairs = [agreement(a, b, reviews) for a, b in combinations(reviews, 2)]
    return [pair for pair in pairs if pair.cases]


def differing(first: Labels, second: Labels) -> list[str]:
    """Where two readings of a case differ, in words; ids only, no text."""
    differences = []
    for sentence, mark in first.marks.items():
        if (other := second.marks[sentence]) is not mark:
            differences.append(f"sentence {sentence}: {mark or 'no mark'} or {other or 'no mark'}")
    if first.question.strip() != second.question.strip():
        differences.append("the question")
    if first.not_answered != second.not_answered:
        differences.append("whether the note answers")
    elif [a.text.strip() for a in first.lines] != [a.text.strip() for a in second.lines]:
        differences.append("the answer's words")
    mine, theirs = _links(first, second)
    if only := sorted(mine ^ theirs, key=str):
        differences.append("links " + ", ".join(f"{answer} to {note}" for answer, note in only))
    return differences


def disputed(reviews: Mapping[str, Reviews]) -> dict[str, dict[str, Labels]]:
    """case id -> reading of each reviewer, for the cases that two or more have finished and do not agree on."""
    readings: dict[str, dict[str, Labels]] = {}
    for name, finished in reviews.items():
        for case_id, review in finished.items():
            readings.setdefault(case_id, {})[name] = review.labels
    return {i: by_name for i, by_name in readings.items() if not _all_the_same(list(by_name.values()))}


def agreed(readings: Mapping[str, Labels]) -> Labels:
    """Where an adjudication starts: what all say alike; nothing where they differ. Remarks are put together."""
    labels = list(readings.values())
    first = labels[0]

    def common(values: Sequence[object]) -> bool:
        return all(v == values[0] for v in values)

    return Labels(
        question=first.question if common([r.question for r in labels]) else "",
        marks={i: mark if common([r.marks[i] for r in labels]) else None for i, mark in first.marks.items()},
        answer=first.answer if common([r.answer for r in labels]) else (),
        not_answered=first.not_answered and common([r.not_answered for r in labels]),
        harm=first.harm if common([r.harm for r in labels]) else None,
        remark="\n".join(f"{name}: {r.remark.strip()}" for name, r in readings.items() if r.remark.strip()),
    )


def _all_the_same(labels: Sequence[Labels]) -> bool:
    return all(labels[0].same_reading(other) for other in labels[1:])


def _kappa(pairs: Sequence[tuple[object, object]]) -> float | None:
    from sklearn.metrics import cohen_kappa_score

    if not pairs:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kappa of one label is not defined is said by its value
        value = float(cohen_kappa_score(*([str(label) for label in side] for side in zip(*pairs, strict=True))))
    return None if math.isnan(value) else value


def _f1(pairs: Sequence[tuple[set, set]]) -> float | None:
    """2 * common / all, pooled over cases (0-100); None where neither names anything."""
    named = sum(len(a) + len(b) for a, b in pairs)
    return 200 * sum(len(a & b) for a, b in pairs) / named if named else None


def _links(first: Labels, second: Labels) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The (answer id, note id) pairs of both, in ids of the first; a sentence that only the second has keeps its own,
    marked, so that it meets none."""
    names = _same_sentences(first, second)
    mine = {(a.id, i) for a in first.lines for i in a.links}
    theirs = {(names.get(b.id, f"{b.id} (second's)"), i) for b in second.lines for i in b.links}
    return mine, theirs


def _same_sentences(first: Labels, second: Labels) -> dict[str, str]:
    """Answer id of the second -> of the first, the likest together: the reviewers edit one answer each in their way."""
    from scipy.optimize import linear_sum_assignment

    if not first.lines or not second.lines:
        return {}
    alike = [[_likeness(b.text, a.text) for a in first.lines] for b in second.lines]
    rows, columns = linear_sum_assignment(alike, maximize=True)
    return {
        second.lines[r].id: first.lines[c].id
        for r, c in zip(rows, columns, strict=True)
        if alike[r][c] >= SAME_SENTENCE
    }


def _likeness(one: str, other: str) -> float:
    return 1.0 if one == other else SequenceMatcher(None, one.split(), other.split(), autojunk=False).ratio()


# ------------------------------------------------------------------------------------- with and without the program


@dataclass(frozen=True)
class Against:
    """How near the marks of some finished cases are to the program's: `same` is the share (0-1) of sentences marked
    as the program did, `seconds` the median time for a case."""

    seen: bool
    cases: int
    sentences: int
    same: float | None
    kappa: float | None
    seconds: float | None


def against_program(reviews: Mapping[str, Reviews]) -> list[Against]:
    """Marks made with the program's in sight, and those made blind, each against the program's: a reviewer who is
    led by it agrees with it more in the first row than in the second."""
    everything = [r for finished in reviews.values() for r in finished.values() if r.opened.said is not None]
    return [_against([r for r in everything if r.opened.blind is not seen], seen) for seen in (True, False)]


def _against(reviews: Sequence[CaseReview], seen: bool) -> Against:
    pairs = []
    for review in reviews:
        # A blind reading ends where the program's was shown.
        own = review.blind_reading or review.labels
        marks = review.opened.said.marks if review.opened.said else {}
        pairs += [(own.marks[i], mark) for i, mark in marks.items() if mark is not None]
    same = sum(a is b for a, b in pairs) / len(pairs) if pairs else None
    seconds = median(r.seconds for r in reviews) if reviews else None
    return Against(seen, len(reviews), len(pairs), same, _kappa(pairs), seconds)
