"""The five examples of CONTRIBUTING.md, installed as a package outside the repository and used from the shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MODULES = dict(re.findall(r"```python (\w+)\n(.*?)```", TEXT, re.DOTALL))
NOTE = "Brief Hospital Course:\nShe was given furosemide for fluid in the lungs.\nShe went home on day 3."


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The examples as pip lays a package out, and a folder to work in."""
    site, info = tmp_path / "site", tmp_path / "site" / "ours-1.0.dist-info"
    info.mkdir(parents=True)
    for name, source in MODULES.items():
        (site / f"{name}.py").write_text(source)
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    groups = tomllib.loads(block)["project"]["entry-points"]
    points = "".join(
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in named.items()) for group, named in groups.items()
    )
    (info / "entry_points.txt").write_text(points)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
    (tmp_path / "work").mkdir()
    return tmp_path


def archehr(package: Path, *args: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(package / "site"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "archehr", *args]
    return subprocess.run(
        command, cwd=package / "work", env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )


def test_each_example_is_at_most_twenty_lines() -> None:
    assert len(MODULES) == 5
    assert {name: n for name, source in MODULES.items() if (n := len(source.strip().splitlines())) > 20} == {}


def test_a_reader_and_a_metric_of_another_package(package: Path) -> None:
    (package / "work" / "one.letter").write_text(f"Why was she given furosemide?\n---\n{NOTE}")
    ran = archehr(package, "run", "one.letter", "--out", "r")
    assert ran.returncode == 0, ran.stderr
    assert json.loads((package / "work" / "r" / "predictions.jsonl").read_text())["case_id"] == "one"
    assert "a .letter file" in archehr(package, "run", "nothing.xyz").stderr
    ran = archehr(package, "run", "sample/test", "--cases", "101,102", "--out", "t")
    assert ran.returncode == 0, ran.stderr
    scores = json.loads((package / "work" / "t" / "scores.json").read_text())
    assert "numbers_kept" in scores["subtask_3"]["leaderboard"]


def test_a_stage_an_lm_and_an_optimiser_of_another_package(package: Path) -> None:
    ran = archehr(package, "run", "sample/test", "--cases", "101", "--lm", "echo", "--out", "r")
    record = json.loads((package / "work" / "r" / "predictions.jsonl").read_text())
    assert record["added"] == {"title": {"title": None}}, ran.stderr  # it echoes no JSON, and that is told
    assert {"stage": "title", "kind": "lm_failed"}.items() <= record["notices"][-1].items()
    call = ("optimize", "sample/dev", "--cases", "1-4", "--lm", "knn", "--folds", "2", "--stage", "align")
    ran = archehr(package, *call, "--optimizer", "first", "--demos", "1", "--out", "p.json")
    assert ran.returncode == 0, ran.stderr
    made = json.loads((package / "work" / "p.json").read_text())
    assert made["provenance"]["optimizer"] == "first"
    assert "first" in archehr(package, *call, "--optimizer", "third", "--out", "q.json").stderr
