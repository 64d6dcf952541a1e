"""The lines of a file of replies."""

from __future__ import annotations

import json
from typing import Any

from dspy import lm15


def json_lines(text: str) -> list[dict[str, Any]]:
    """The object on each line. Raises as `json_line` does."""
    # Not splitlines: a reply may have line separators of other kinds, and JSON lets them stand.
    return [json_line(line) for line in text.split("\n") if line.strip()]


def json_line(line: str | bytes) -> dict[str, Any]:
    """The object that a line is. Raises lm15.ServerError, with which its file is fetched again, for another one."""
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError):
        raise lm15.ServerError("a file of replies has a line that is no JSON object") from None
