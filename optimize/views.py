"""Which views vote, how many replies of each, what a vote weighs and where to cut: chosen together, on votes of cases
that were no demo."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from archehr.data.case import Case
from archehr.program.run.records import CaseRecord
from archehr.program.settings import PipelineSettings, ViewUse
from archehr.program.stages.score_sentences import select_evidence
from archehr.program.stages.views.vote import Votes, confidence_of
from archehr.program.types import AgreedScore, SentenceScore

CUTS = (5, 4, 3)
# A mixture must be better than a cheaper one by more than rounding, in points of F1.
MARGIN = 1e-9


@dataclass(frozen=True)
class Labelled:
    """One case: what each view said of its sentences, and which of them are essential."""

    votes: Sequence[Votes]
    essential: Sequence[bool]


@dataclass(frozen=True)
class Mixture:
    """Views with weights and cuts, the agreement from which a sentence is evidence, and the strict micro F1 (0-100)
    on the cases it was chosen on."""

    views: tuple[ViewUse, ...]
    agreement: float
    f1: float

    @property
    def calls(self) -> int:
        return sum(view.samples for view in self.views)

    def settings(self, base: PipelineSettings) -> PipelineSettings:
        """`base` with this mixture. One vote is cut by its score, as ever."""
        found: dict[str, Any] = {"views": self.views, "agreement": self.agreement}
        if self.calls == 1:
            cut = self.views[0].cut
            found |= {"views": (ViewUse(name=self.views[0].name),), "cut": cut, "relaxed_cut": max(1, cut - 1)}
        return base.model_copy(update=found)


def best_mixtures(pairs: Sequence[tuple[CaseRecord, Case]], asked: Sequence[ViewUse]) -> dict[int, Mixture]:
    """Number of replies -> the best mixture of so many, of the views `asked`; of equals the strictest. Views weigh the
    same unless weights fitted to the best of them are better."""
    cases = [_labelled(record, case) for record, case in pairs]
    found: dict[int, Mixture] = {}
    for views in _subsets(asked):
        mixture = _shares(views, cases)
        if mixture.calls not in found or mixture.f1 > found[mixture.calls].f1 + MARGIN:
            found[mixture.calls] = mixture
    return {calls: _weighed(found[calls], cases) or found[calls] for calls in sorted(found)}


def best_of(mixtures: dict[int, Mixture]) -> Mixture:
    """The best mixture; of equals the one of the fewest replies."""
    return max(mixtures.values(), key=lambda m: (round(m.f1, 6), -m.calls))


def voted_by(record: CaseRecord, settings: PipelineSettings) -> CaseRecord:
    """The record as a program with these settings, which uses some of its votes, would have made it: no call."""
    scores: list[AgreedScore | SentenceScore] = []
    for s in record.scores or ():
        if not isinstance(s, AgreedScore):  # every view failed: the fallback's scores
            scores.append(s)
        elif settings.votes == 1:
            heard = s.votes.get(settings.views[0].name) or [1]
            scores.append(SentenceScore(id=s.id, score=heard[0]))
        else:
            scores.append(s.model_copy(update={"confidence": confidence_of(s.votes, settings.views)}))
    evidence = select_evidence(scores, settings)[0]
    return record.model_copy(update={"scores": scores, "evidence": evidence or [s.id for s in scores[:3]]})


def _labelled(record: CaseRecord, case: Case) -> Labelled:
    assert case.gold is not None
    votes = [s.votes if isinstance(s, AgreedScore) else {} for s in record.scores or ()]
    return Labelled(votes, [s.id in case.gold.essential for s in record.scores or ()])


def _subsets(asked: Sequence[ViewUse]) -> Iterator[tuple[ViewUse, ...]]:
    """Every choice of views, of samples and of the cut of each."""
    none: list[ViewUse | None] = [None]
    choices = [
        none + [ViewUse(name=v.name, samples=n, cut=c) for n in range(1, v.samples + 1) for c in CUTS] for v in asked
    ]
    for chosen in itertools.product(*choices):
        if views := tuple(v for v in chosen if v is not None):
            yield views


def _shares(views: tuple[ViewUse, ...], cases: Sequence[Labelled]) -> Mixture:
    """Every view weighs the same; the cut is the best of the shares there are."""
    shares = [[confidence_of(v, views) for v in case.votes] for case in cases]
    return max(
        (Mixture(views, cut, _f1(shares, cases, cut)) for cut in _cuts(shares)), key=lambda m: (m.f1, m.agreement)
    )


def _weighed(equal: Mixture, cases: Sequence[Labelled]) -> Mixture | None:
    """Weights of a logistic regression, if they are better than `equal` ones on cases it was not fitted on."""
    views = equal.views
    if len(views) < 2 or equal.calls < 3 or len(cases) < 4:  # weights of two votes say no more than the agreement
        return None
    parts = [list(range(len(cases)))[k::4] for k in range(4)]
    unseen: list[list[float]] = [[] for _ in cases]
    for part in parts:
        weighed = _logistic(views, [c for i, c in enumerate(cases) if i not in part])
        if weighed is None:
            return None
        for i in part:
            unseen[i] = [confidence_of(v, weighed) for v in cases[i].votes]
    honest = max(_f1(unseen, cases, cut) for cut in _cuts(unseen))
    weighed = _logistic(views, cases)
    if weighed is None or honest <= equal.f1 + MARGIN:
        return None
    made = _shares(weighed, cases)
    return Mixture(made.views, made.agreement, min(made.f1, honest))


def _logistic(views: tuple[ViewUse, ...], cases: Sequence[Labelled]) -> tuple[ViewUse, ...] | None:
    """The views with the positive coefficients of a regression of "essential" on their votes; None where one is
    not."""
    from sklearn.linear_model import LogisticRegression

    rows = [[confidence_of(votes, (view,)) for view in views] for case in cases for votes in case.votes]
    labels = [e for case in cases for e in case.essential]
    if len(set(labels)) < 2:
        return None
    weights = LogisticRegression(C=1.0).fit(rows, labels).coef_[0]
    if min(weights) <= 0:
        return None
    return tuple(v.model_copy(update={"weight": round(float(w), 2)}) for v, w in zip(views, weights, strict=True))


def _cuts(shares: Sequence[Sequence[float]]) -> list[float]:
    return sorted({s for row in shares for s in row if s > 0}) or [1.0]


def _f1(shares: Sequence[Sequence[float]], cases: Sequence[Labelled], cut: float) -> float:
    """Strict micro F1 (0-100) by the rule of select_evidence: where nothing reaches the cut, the most agreed on."""
    hits = picked = wanted = 0
    for row, case in zip(shares, cases, strict=True):
        most = max(row, default=0.0)
        lowest = cut if most >= cut else most
        chosen = [share >= lowest > 0 for share in row]
        hits += sum(c and e for c, e in zip(chosen, case.essential, strict=True))
        picked += sum(chosen)
        wanted += sum(case.essential)
    return 200 * hits / (picked + wanted) if picked + wanted else 0.0
