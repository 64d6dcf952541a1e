"""The walks of docs/ as their readers would do them: in a folder that holds modules of theirs with names of ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.stub_server import StubServer

DOCS = Path(__file__).parents[1] / "docs"
SERVER = "http://127.0.0.1:8000/v1"  # where the pages say that the model is


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page that open with ```LANGUAGE."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def exported(page: str, server: StubServer) -> dict[str, str]:
    """What the page exports, with the scripted server in the model's place."""
    lines = [line for block in blocks(page, "sh") for line in block.splitlines() if line.startswith("export ")]
    pairs = (word.split("=", 1) for line in lines for word in line.partition("#")[0].split()[1:])
    return {name: value.replace(SERVER, server.openai) for name, value in pairs}


def give_modules_of_our_names(folder: Path) -> None:
    """As users have them: a metrics.py of their own beside their data."""
    for name in ("metrics", "data", "program", "optimize"):
        (folder / f"{name}.py").write_text("raise SystemExit('the user’s own module was imported')\n")


def ran(folder: Path, *arguments: str, **exports: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments in the folder, whose modules come first, and a cache beside it."""
    ours = ("ARCHEHR", "PYTHONPATH", "OPENAI")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment: Mapping[str, str] = {**plain, "XDG_CACHE_HOME": str(folder / ".cache"), **exports}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
