"""What can hold note text is ignored by git wherever it lies; what ships is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")


def ignored(path: str) -> bool:
    return subprocess.run(["git", "check-ignore", "-q", "--no-index", path], cwd=ROOT).returncode == 0


@pytest.mark.parametrize(
    "path",
    [
        "mine/archehr-qa.xml", "mine/archehr-qa_key.json", "r/predictions.jsonl", "anything/run.json", "x/report.html",
        "x/scores.json", "x/program.json", "p.json", "deep/er/p.json", "p.json.work/00/cache.db", "x/comparison.csv",
        "x/comparison.html", "x/comparison.md", "calls.jsonl", "r/cache/003/cache.db",
        "runs/sample-test-extractive/lock", "r/submission_subtask_2.json",
    ],
)  # fmt: skip
def test_data_and_what_is_made_of_it_is_ignored(path: str) -> None:
    assert ignored(path)


def test_what_ships_is_not() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert [path for path in listed if ignored(path)] == []
    assert "data/sample/test/archehr-qa.xml" in listed and "program/prompts/handwritten.json" in listed
