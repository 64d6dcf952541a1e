"""Which engine a name gets, and that a package outside the repository adds one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from archehr.program.lm import LMConfigError, make_lm
from archehr.program.lm.registry import BUILT_IN, find_backend
from archehr.program.lm.settings import LMSettings

ROOT = Path(__file__).parents[3]


def install(site: Path, name: str = "echo", value: str = "echo_lm:backend", package: str = "echo-lm") -> None:
    """What pip leaves behind of a package whose pyproject.toml has [project.entry-points."archehr.lms"]."""
    shutil.copy(Path(__file__).with_name("echo_lm.py"), site)
    info = site / f"{package.replace('-', '_')}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[archehr.lms]\n{name} = {value}\n")


def archehr(site: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "archehr", *args],
        capture_output=True,
        text=True,
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site)},
    )


@pytest.mark.parametrize("name", ["echo", "echo:loud", "echo/loud"])
def test_a_package_adds_an_lm_by_name(name: str, tmp_path: Path) -> None:
    install(tmp_path)
    (tmp_path / "note.txt").write_text("He was given furosemide for oedema.")
    ran = archehr(tmp_path, "ask", "note.txt", "Why furosemide?", "--lm", name, "--local-only", "--json")
    assert ran.returncode == 0, ran.stderr
    record = json.loads(ran.stdout)
    assert record["question"].startswith("[[ ## narrative ## ]] Why furosemide?")
    assert record["usage"]["calls"] >= 4 and record["usage"]["cost"] == 0


def test_a_package_that_cannot_be_imported_is_one_line(tmp_path: Path) -> None:
    install(tmp_path, value="echo_lm:forgotten")
    (tmp_path / "note.txt").write_text("He was given furosemide.")
    ran = archehr(tmp_path, "ask", "note.txt", "Why?", "--lm", "echo")
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert ran.stderr.splitlines() == [
        "archehr: echo: echo-lm offers it as echo_lm:forgotten, which cannot be imported (AttributeError); "
        "mend or remove that package"
    ]


def test_no_package_takes_a_built_in_name_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, name="knn")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert type(find_backend(LMSettings(name="knn")).engine).__name__ == "KnnEngine"


def test_local_only_holds_for_the_engines_of_other_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, name="far", value="far_lm:backend")
    (tmp_path / "far_lm.py").write_text(
        "from archehr.program.lm import Backend\nbackend = lambda asked: Backend(None, endpoint='https://example.org')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(LMConfigError, match=r"--local-only: far is reached at the endpoint https://example\.org"):
        make_lm("far", local_only=True)


@pytest.mark.parametrize("engine", sorted({*BUILT_IN.values(), "native"}))
def test_every_entry_has_its_file(engine: str) -> None:
    assert (ROOT / "program" / "lm" / "engines" / f"{engine}.py").exists()


def test_settings_are_checked_at_once_and_show_no_key() -> None:
    with pytest.raises(LMConfigError, match=r"openai/m: tempo: .*; the settings are api_base, api_key") as caught:
        make_lm("openai/m", tempo=1, api_key="sk-secret-1")
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)
    with pytest.raises(LMConfigError, match="openai/m: api_key: Input should be a valid string") as caught:
        make_lm("openai/m", api_key=["sk-secret-1"])
    assert "secret" not in str(caught.value)
    with pytest.raises(LMConfigError, match="openai/m: seed: Input should be a valid integer"):
        make_lm("openai/m", api_base="http://127.0.0.1:9/v1", seed=1.5)
    assert "secret" not in repr(LMSettings.of("openai/m", api_key="sk-secret-1"))


def test_private_names_of_dspy_stand_in_one_file() -> None:
    private = re.compile(r"^\s*(?:from|import) dspy\.(?!lm15|teleprompt)|^\s*from dspy\S* import .*\b_", re.MULTILINE)
    rooms = [path for room in ("program", "optimize", "src") for path in (ROOT / room).rglob("*.py")]
    assert [p.name for p in rooms if private.search(p.read_text(encoding="utf-8"))] == ["_dspy.py"]
