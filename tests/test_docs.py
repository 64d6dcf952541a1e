"""The walks of docs/ as their readers would do them: in an empty folder that holds a metrics.py of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """Where nothing of ours is, and a module of the user's has a name of ours."""
    for name in ("metrics", "data", "program", "optimize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the user’s own module was imported')\n")
    return tmp_path


def ran(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("ARCHEHR", "PYTHONPATH"))}
    return subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True)


def test_the_shared_task_walk(own_folder: Path) -> None:
    lines = [line for block in blocks("shared-task.md", "console") for line in block.splitlines()]
    assert len(lines) >= 10 and all(line.startswith("$ archehr ") for line in lines)
    for line in lines:
        done = ran(own_folder, sys.executable, "-m", "archehr", *shlex.split(line)[2:])
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    # What the page says of them: three cases were not asked again, a new cut cost no call, and files were written.
    assert (own_folder / "c" / "comparison.html").exists() and (own_folder / "public.json").exists()
    again = ran(own_folder, sys.executable, "-m", "archehr", *shlex.split(lines[5])[2:])
    assert "all 6 cases were already done" in again.stdout
    cut = ran(own_folder, sys.executable, "-m", "archehr", *shlex.split(lines[7])[2:], "--fresh")
    assert re.search(r"LM use +0 calls", cut.stdout)


def test_the_views_walk(own_folder: Path) -> None:
    lines = [line for block in blocks("views.md", "console") for line in block.splitlines()]
    said = {}
    for line in lines:
        done = ran(own_folder, sys.executable, "-m", "archehr", *shlex.split(line)[2:])
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        said[line] = done.stdout + done.stderr
    auto, few = (text for line, text in said.items() if line.startswith("$ archehr optimize"))
    assert "calls a case" in auto and "calls a case" in few and "--max-calls 150: the views tried are" in auto
    assert len(json.loads((own_folder / "q.json").read_text())["stages"]["score_few"]["demos"]) == 2
    assert "supported</span>" in (own_folder / "checked" / "report.html").read_text()
    done = ran(own_folder, sys.executable, "-c", "\n".join(blocks("views.md", "python")))
    assert done.returncode == 0, done.stderr


def test_the_dspy_walk(own_folder: Path) -> None:
    code = "\n".join(blocks("dspy.md", "python"))
    done = ran(own_folder, sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^knn [1-9]\d* \{", done.stdout, re.MULTILINE)  # its calls were counted, and scored
    assert (own_folder / "dspy.json").exists() and (own_folder / "ours.json").exists()
