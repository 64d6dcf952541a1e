"""The small records that flow between stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

StageName = str  # a key of program.stages.registry.PROMPTED

NoticeKind = Literal[
    "lm_failed",
    "retried",
    "missing_ids",
    "unknown_ids",
    "relaxed_cut",
    "cut_words",
    "empty",
    "repaired",
    "not_answered",
    "language",
    "view_failed",
    "sample_failed",
    "unsupported",
    "revised",
    "dropped",
]


class SentenceScore(BaseModel):
    """How much one note sentence matters for the question: 5 critical ... 1 irrelevant."""

    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True)

    id: str
    score: int = Field(ge=1, le=5)


class AgreedScore(SentenceScore):
    """A score that several votes stand behind; never asked of an LM.

    `votes` holds the scores that each view gave, a sample each; `confidence` is the weighted share of votes for the
    sentence, from 0 to 1.
    """

    confidence: float = Field(ge=0, le=1)
    votes: dict[str, list[int]] = Field(default_factory=dict)


class Link(BaseModel):
    """One answer sentence and the ids of the note sentences that directly support it."""

    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True)

    answer_id: str
    evidence_ids: list[str]


class Verdict(BaseModel):
    """Whether one answer sentence is supported by the note sentences it cites, and why."""

    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True)

    answer_id: str
    verdict: Literal["supported", "partly", "not supported"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """How the program tells the truth about a repair or a fallback. `detail` never holds note text."""

    stage: str
    kind: NoticeKind
    detail: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


def shorten(ids: Sequence[str], most: int = 8) -> str:
    """Ids for a message: the first `most`, and how many more."""
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")
