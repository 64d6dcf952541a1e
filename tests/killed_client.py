"""The command, killed by itself: `python -m tests.killed_client before|after MODULE:CLASS.METHOD N ARGUMENTS…` runs
archehr until that method is called the Nth time, and then is gone as by kill -9."""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys
from typing import Any


def die_at(when: str, place: str, count: int) -> None:
    """Arrange it."""
    module, _, path = place.partition(":")
    holder_name, _, name = path.rpartition(".")
    holder: Any = getattr(importlib.import_module(module), holder_name)
    real, calls = getattr(holder, name), [0]

    @functools.wraps(real)
    def dying(*given: Any, **named: Any) -> Any:
        calls[0] += 1
        made = real(*given, **named) if calls[0] < count or when == "after" else None
        if calls[0] >= count:
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    setattr(holder, name, dying)


if __name__ == "__main__":
    die_at(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    sys.argv = ["archehr", *sys.argv[4:]]
    from archehr.cli import main

    main()
