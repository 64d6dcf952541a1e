"""The command inside the test's process, and a process state that no test leaves behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from archehr.cli import main
from tests.browser import start_browser

# A busy machine is no fault; --hypothesis-profile takes the place of this one.
settings.register_profile("usual", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("usual")
settings.register_profile("deep", max_examples=3000, deadline=None)  # pytest --hypothesis-profile=deep, for a hunt


class Ran(NamedTuple):
    """What one call of the command gave."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _own_process_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No LM, key or cache of the developer's; the umask, DSPy's cache and what is known of servers as they were."""
    for name in ("ARCHEHR_LM", "ARCHEHR_CACHE", "ARCHEHR_LOCAL_ONLY"):
        monkeypatch.setenv(name, "")  # so that it is put back where a test sets it by a call of the command
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    umask = os.umask(0o022)
    os.umask(umask)
    yield
    os.umask(umask)
    if "dspy" in sys.modules:
        import dspy

        dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    if (memory := sys.modules.get("archehr.program.lm.wire.concessions")) is not None:
        memory.KNOWN.clear()


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """`command("run", "sample/test", …)` in an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["archehr", *map(str, args)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return call


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, for the tests of one module."""
    driver = start_browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def batch_services(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keys, a login and a bucket for the batch services that BatchServer plays, and no waiting between two looks."""
    from archehr.program.run.engines.batch import jobs
    from tests.cloud_batches import signed_in

    monkeypatch.setattr(jobs, "FIRST_WAIT", 0.01)
    monkeypatch.setenv("GEMINI_API_KEY", "stub-key-gemini")
    monkeypatch.setenv("OPENAI_API_KEY", "stub-key-openai")
    signed_in(monkeypatch, tmp_path)
