"""Groups of words that speak of one thing: what patients say, what notes write, brand and generic drug names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

_TABLE = Path(__file__).with_name("concepts.txt")


def read_concepts(stems: Callable[[str], list[str]]) -> dict[tuple[str, ...], frozenset[str]]:
    """Stemmed words of each entry of the table -> the concepts it speaks of ("=kidney")."""
    index: dict[tuple[str, ...], set[str]] = {}
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        members = line.split("|")
        for member in members:
            if key := tuple(stems(member)):
                index.setdefault(key, set()).add("=" + members[0])
    return {key: frozenset(names) for key, names in index.items()}
