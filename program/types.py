"""The small records that flow between stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

StageName = str  # a key of program.stages.registry.STAGES

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
]


class SentenceScore(BaseModel):
    """How much one note sentence matters for the question: 5 critical ... 1 irrelevant."""

    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True)

    id: str
    score: int = Field(ge=1, le=5)


class Link(BaseModel):
    """One answer sentence and the ids of the note sentences that directly support it."""

    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True)

    answer_id: str
    evidence_ids: list[str]


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
