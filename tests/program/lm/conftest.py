"""Every LM test runs without keys, gateways or proxies of the machine, and with a cache of its own in memory."""

from __future__ import annotations

import os
from types import SimpleNamespace

import dspy
import pytest


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_BASE_URL", "_API_BASE", "_PROXY")) or name.startswith("GOOGLE_"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("ARCHEHR_LOCAL_ONLY", raising=False)


@pytest.fixture(autouse=True)
def _own_cache() -> None:
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that DSPy's retry loop would have slept; it does not sleep."""
    slept: list[float] = []
    monkeypatch.setattr("dspy.clients.execution.time", SimpleNamespace(sleep=slept.append))
    return slept


@pytest.fixture
def ask():
    """ask(lm, question) -> answer, through dspy.Predict and JSONAdapter as the pipeline does."""
    predict = dspy.Predict("question -> answer")

    def ask_lm(lm: dspy.LM, question: str = "Why?", **config: object) -> str:
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter(), disable_history=True):
            return predict(question=question, config=config).answer

    return ask_lm
