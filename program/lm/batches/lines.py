"""The lines of a file of replies."""

from __future__ import annotations

import json
from typing import Any

from dspy import lm15


def json_lines(text: str) -> list[dict[str, Any]]:
    """The object on each line. Raises lm15.ServerError, with which it is fetched again, for a line that is none."""
    # Not splitlines: a reply may have line separators of other kinds, and JSON lets them stand.
    try:
        return [dict(json.loads(line)) for line in text.split("\n") if line.strip()]
    except (ValueError, TypeError):
        raise lm15.ServerError("a file of replies has a line that is no JSON object") from None
