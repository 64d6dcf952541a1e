"""A real browser for the pages, Debian's chromium without a window, and what tests ask of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1280,900"
).split()


def start_browser(profile: Path) -> Any:
    """A driver with a profile of its own; skips the test where there is no browser."""
    pytest.importorskip("selenium", reason="needs the extra `test` (selenium)")
    if not (CHROMIUM and DRIVER):
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options=options, service=Service(DRIVER))


def all_of(browser: Any, css: str) -> list[Any]:
    return list(browser.find_elements("css selector", css))


@contextmanager
def shown_as(browser: Any, width: int, scheme: str = "light", media: str = "") -> Iterator[None]:
    """The page in a window of this width, 900 high, in this colour scheme and medium."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def width_and_ground(browser: Any) -> tuple[int, str]:
    script = "return [document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]"
    return tuple(browser.execute_script(script))
