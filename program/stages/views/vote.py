"""Agreement: the replies of several views become one confidence per note sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import dspy

from archehr.program.settings import PipelineSettings, ViewUse
from archehr.program.stages.views.consensus import left_to_others
from archehr.program.types import AgreedScore, Notice, SentenceScore

Votes = Mapping[str, Sequence[int]]  # view -> the scores (1..5) of one note sentence that its samples gave


@dataclass(frozen=True)
class Ballot:
    """What one reply of a view said: `scores` of every note sentence, of which `silent` are no vote."""

    view: str
    scores: Sequence[SentenceScore]
    silent: Sequence[str] = ()


def count_votes(
    names: Sequence[str], replies: Sequence[dspy.Prediction], views: Sequence[ViewUse]
) -> tuple[list[SentenceScore], list[Notice]]:
    """The scores of a note by the replies of the views `names`, a single one's as they are, and what is to be told:
    what some failed on, the others decide."""
    ballots = [Ballot(name, r.scores, r.get("silent") or ()) for name, r in zip(names, replies, strict=True)]
    fewest = min(len(ballot.silent) for ballot in ballots)
    notices: list[Notice] = []
    for ballot, reply in zip(ballots, replies, strict=True):
        told = reply.get("notices") or []
        how = "" if len(ballot.silent) == len(ballot.scores) else "on a part: "
        notices += left_to_others(told, "view_failed", how) if len(ballot.silent) > fewest else told
    return list(ballots[0].scores) if len(ballots) == 1 else agree(ballots, views), notices


def agree(ballots: Sequence[Ballot], views: Sequence[ViewUse]) -> list[SentenceScore]:
    """Every note sentence with the agreement on it, in note order; where nobody voted on any, the first ballot's
    scores as they are, which are its fallback's."""
    if all(len(b.silent) == len(b.scores) for b in ballots):
        return list(ballots[0].scores)
    silent = [set(ballot.silent) for ballot in ballots]
    agreed: list[SentenceScore] = []
    for of_sentence in zip(*(ballot.scores for ballot in ballots), strict=True):
        heard = [(b.view, s.score) for b, s, no in zip(ballots, of_sentence, silent, strict=True) if s.id not in no]
        agreed.append(_agreed(of_sentence, heard, views))
    return agreed


def _agreed(said: Sequence[SentenceScore], heard: Sequence[tuple[str, int]], views: Sequence[ViewUse]) -> AgreedScore:
    """One sentence: `said` are all scores of it, `heard` those that are votes, by view."""
    votes: dict[str, list[int]] = {}
    for view, score in heard:
        votes.setdefault(view, []).append(score)
    fallback = max(s.score for s in said)
    # A part of the note that every view failed on: the fallback's score is all there is.
    confidence = confidence_of(votes, views) if votes else float(fallback >= views[0].cut)
    given = [score for _, score in heard] or [fallback]
    return AgreedScore(id=said[0].id, score=round(sum(given) / len(given)), confidence=confidence, votes=votes)


def confidence_of(votes: Votes, views: Sequence[ViewUse]) -> float:
    """The weighted share (0-1) of `views` that vote for a sentence; a view of several samples votes by their share.
    Of more samples than a view is to have, the first count; a view that said nothing on it is left out."""
    total = reached = 0.0
    for view in views:
        if scores := list(votes.get(view.name, ()))[: view.samples]:
            total += view.weight
            reached += view.weight * sum(score >= view.cut for score in scores) / len(scores)
    return round(reached / total, 6) if total else 0.0


def views_in_words(settings: PipelineSettings) -> str:
    """ "score (cut 5), answer_first x 2 (weight 0.5); agreement 0.5" """
    parts = []
    for view in settings.views:
        cut = settings.cut if settings.votes == 1 else view.cut
        weight = f", weight {view.weight:g}" if len({v.weight for v in settings.views}) > 1 else ""
        parts.append(f"{view.name}{f' x {view.samples}' if view.samples > 1 else ''} (cut {cut}{weight})")
    return ", ".join(parts) + (f"; agreement {settings.agreement:g}" if settings.votes > 1 else "")
