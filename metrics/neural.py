"""BERTScore and AlignScore (extra `neural`) on models the user names or has on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class Missing(Exception):
    """A component cannot be computed here; the message says what to install or pass."""


def bertscore(
    predictions: Sequence[str], references: Sequence[str], model: str | None
) -> tuple[list[float], dict[int, str]]:
    raise Missing("pass --bertscore")


def alignscore(
    predictions: Sequence[str], references: Sequence[str], checkpoint: Path | None, roberta: str | None
) -> tuple[list[float], dict[int, str]]:
    raise Missing("pass --alignscore")
