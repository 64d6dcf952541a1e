"""What is installed: archehr and nothing else, beside whatever a user keeps under the rooms' names."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = {"src/archehr": "archehr", **{room: f"archehr.{room}" for room in ("data", "metrics", "program", "optimize")}}

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="not a checkout")


def packages_on_disk() -> set[str]:
    found = set()
    for folder, name in ROOMS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            below = init.parent.relative_to(ROOT / folder).parts
            found.add(".".join([name, *below]))
    return found


def setuptools_table() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def test_every_package_on_disk_is_installed() -> None:
    assert set(setuptools_table()["packages"]) == packages_on_disk()


def test_no_folder_holds_more_than_twelve_modules() -> None:
    crowded = {}
    for folder in ROOMS:
        for init in (ROOT / folder).rglob("__init__.py"):
            modules = [p for p in init.parent.iterdir() if p.is_file() and p.name != "__init__.py"]
            crowded |= {init.parent: len(modules)} if len(modules) > 12 else {}
    assert not crowded


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from an sdist's worth of files: what git has, and nothing that lies about."""
    pytest.importorskip("setuptools", minversion="77")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.split():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    build = "from setuptools import build_meta; import sys; build_meta.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(out)], cwd=source, check=True, capture_output=True)
    (made,) = out.glob("*.whl")
    return made


def test_the_wheel_holds_archehr_and_all_that_it_reads(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"archehr"}
    for folder, package in ROOMS.items():
        for path in subprocess.run(
            ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split():
            if (ROOT / path).is_file():
                inside = Path(path).relative_to(folder).as_posix()
                assert f"{package.replace('.', '/')}/{inside}" in names, path


def test_a_users_own_files_of_the_rooms_names_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "metrics.py").write_text("MINE = True\n")
    (tmp_path / "program.py").write_text("MINE = True\n")
    (tmp_path / "optimize.py").write_text("MINE = True\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "files.py").write_text("MINE = True\n")
    (tmp_path / "script.py").write_text(
        "import archehr, metrics, program, optimize, data.files\n"
        "assert metrics.MINE and program.MINE and optimize.MINE and data.files.MINE\n"
        "cases = archehr.read_cases('sample/test')[:1]\n"
        "result = archehr.run_cases(cases, archehr.load_program('extractive'))\n"
        "print(result.records[0].case_id)\n"
    )
    ran = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout == "101\n", ran.stderr


def test_the_version_is_told_once() -> None:
    import archehr

    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == archehr.__version__
