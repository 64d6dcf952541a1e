"""A worker process: the order on the first line of its input, then a case a line; a record a line of its output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from archehr.program.run.engines.crossing import crossing
from archehr.program.run.engines.order import Order, case_from_json


def main() -> None:
    """Until the input ends. What libraries print goes to the standard error, where it cannot be taken for a record."""
    lines, replies = sys.stdin, os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        for reply in _replies(lines):
            replies.write(reply + "\n")
            replies.flush()
    except BrokenPipeError:  # who asked is gone, and takes nothing more
        os._exit(0)


def _replies(lines: TextIO) -> Iterator[str]:
    for order in lines:  # one, or none where who asked is gone already
        job = Order.model_validate_json(order).job()
        for line in lines:
            try:
                yield job.answer(case_from_json(line)).model_dump_json()
            except Exception as error:
                yield json.dumps({"error": crossing(error)})


if __name__ == "__main__":
    main()
