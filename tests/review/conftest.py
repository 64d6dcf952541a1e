"""A small run to review: four cases of the sample, answered once and copied for every test."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from archehr.data.dataset import read_cases, read_dataset
from archehr.program.extractive_program import extractive_program
from archehr.program.run.run import run_cases
from archehr.program.settings import PRESETS
from archehr.review.export.official import official_xml

CASES = [replace(case, gold=None) for case in read_cases("sample/test")[:4]]

NEVER_DECLINES = PRESETS["default"].model_copy(update={"abstain": False})


@pytest.fixture(scope="session")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data`, four cases without a key, and `run`, what the extractive program said of them."""
    folder = tmp_path_factory.mktemp("answered")
    (folder / "data").mkdir()
    (folder / "data/archehr-qa.xml").write_text(official_xml(CASES), encoding="utf-8")
    run_cases(read_dataset(folder / "data"), extractive_program(NEVER_DECLINES), out=folder / "run")
    return folder


@pytest.fixture
def run(answered: Path, tmp_path: Path) -> Path:
    """The run folder, to do with as a test likes."""
    return Path(shutil.copytree(answered / "run", tmp_path / "run"))
