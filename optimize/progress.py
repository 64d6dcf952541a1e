"""Which of how many LM calls an optimisation is at, told every few seconds: a phase may hold hundreds of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from archehr.program.lm.ledger import Ledger

EVERY = 10.0  # seconds between two lines


@contextmanager
def calls_told(ledger: Ledger | None, expected: Callable[[], int], tell: Callable[[str], None]) -> Iterator[None]:
    """While inside, `tell` gets a line every EVERY seconds in which calls are made. `expected` is how many there may
    be in all, 0 while that is unknown; a search may make more."""
    if ledger is None:
        yield
        return
    lock, told_at = threading.Lock(), time.monotonic()

    def heard(stage: str | None) -> None:
        nonlocal told_at
        with lock:
            if time.monotonic() < told_at + EVERY:
                return
            told_at = time.monotonic()
            tell(calls_in_words(ledger, expected(), stage))

    before, ledger.on_entry = ledger.on_entry, heard
    try:
        yield
    finally:
        ledger.on_entry = before


def calls_in_words(ledger: Ledger, expected: int, stage: str | None) -> str:
    """The line: calls made, replies from the cache, the stage asked last, and the cost where it is known."""
    used = ledger.totals()
    calls, cached = int(used["calls"] or 0) - int(used["retries"] or 0), int(used["cache_hits"] or 0)
    parts = [f"call {calls:,}" + (f" of at most {expected:,}" if calls <= expected else "")]
    parts += [f"{cached:,} replies from the cache"] if cached else []
    parts += [f"stage {stage}"] if stage else []
    parts += [f"${used['cost']:.4f} so far"] if used["cost"] else []
    return "  " + ", ".join(parts)
