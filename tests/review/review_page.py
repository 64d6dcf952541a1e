"""The review page for tests and benchmarks: the command in a process of its own, and Chromium on its page."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1280,900"
).split()


@dataclass
class Served:
    """A running `archehr review`; `wait` ends it by Ctrl-C and gives what it said on stderr."""

    process: subprocess.Popen[str]
    address: str

    def stop(self) -> str:
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=20)[1]


@contextmanager
def review_server(*arguments: object, cwd: Path | None = None) -> Iterator[Served]:
    """`archehr review ARGUMENTS` until the block ends, however it ends."""
    call = [sys.executable, "-m", "archehr", "review", *map(str, arguments), "--no-browser"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=environment
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.communicate(timeout=20)[1]
        yield Served(process, address)
    finally:
        process.kill()
        process.communicate(timeout=20)


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A headless Chromium with its console kept."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()
