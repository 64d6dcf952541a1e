"""Answers through a provider's batch service: see `loop`."""

from __future__ import annotations

from archehr.program.run.engines.engine import RunEngine


def engine() -> RunEngine:
    """The engine."""
    from archehr.program.run.engines.batch.loop import Batches

    return Batches()
