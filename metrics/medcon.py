"""MEDCON (extra `medcon`): overlap of UMLS concepts, with the user's own QuickUMLS index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from metrics.neural import Missing


def medcon(
    predictions: Sequence[str], references: Sequence[str], umls: Path | None
) -> tuple[list[float], dict[int, str]]:
    raise Missing("pass --umls")
