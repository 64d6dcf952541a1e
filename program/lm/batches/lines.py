"""The rows of a file of replies, one JSON object a line, whatever a provider has put into it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any


def rows_of(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The object on each line. A line that is none is left out: its request has no answer, and is asked again."""
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def text_at(row: Any, *path: str) -> str | None:
    """The text at a place of a row, such as the key of its request; None where there is none."""
    for name in path:
        row = row.get(name) if isinstance(row, dict) else None
    return row if isinstance(row, str) else None
