"""Consensus: of several replies to one prompt the one that is most like the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean

import dspy

from archehr.metrics.scorers.text import rouge
from archehr.program.types import Notice, NoticeKind


def medoid(texts: Sequence[str]) -> int:
    """The position of the text with the highest mean ROUGE-L F1 with all; of equals, so of any two, the first."""
    means = [round(fmean(rouge(text, other)["rougeL"] for other in texts), 9) for text in texts]
    return means.index(max(means))


def most_like_the_others(replies: Sequence[dspy.Prediction], text: Callable[[dspy.Prediction], str]) -> dspy.Prediction:
    """The medoid of the replies that came, which are not `silent`, with a notice for each that failed; where all did,
    the first as it is, which is its fallback's."""
    heard = [reply for reply in replies if not reply.silent]
    if not heard:
        return replies[0]
    kept = heard[medoid([text(reply) for reply in heard])]
    failed = (n for reply in replies if reply.silent for n in left_to_others(reply.notices, "sample_failed"))
    kept.notices = [*failed, *kept.notices]
    return kept


def left_to_others(notices: Iterable[Notice], kind: NoticeKind, how: str = "") -> list[Notice]:
    """The notices of a reply that failed where others decided: no fallback answered, so that a failure of the LM is
    of this `kind`, and `how` it failed."""
    return [replace(n, kind=kind, detail=f"{how}{n.detail}") if n.kind == "lm_failed" else n for n in notices]
