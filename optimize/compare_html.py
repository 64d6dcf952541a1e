"""The comparison as one HTML page."""

from pathlib import Path

from optimize.compare import Comparison


def write_page(comparison: Comparison, path: Path) -> None:
    pass
