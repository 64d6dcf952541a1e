"""Files that we can read and the organisers' loader cannot: a fault to validate, an error to --as-official."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archehr.data.dataset import read_cases
from archehr.data.files import KEY_NAME, shipped_sample

SUBMISSION = json.dumps([{"case_id": c.id, "prediction": [c.sentences[0].id]} for c in read_cases("sample/test")])
REFUSED = [("utf-8-sig", "byte order mark"), ("utf-16", "another encoding"), ("utf-16-le", "not plain UTF-8 text")]
REFUSED += [("utf-32", "another encoding"), ("utf-32-be", "not plain UTF-8 text")]


@pytest.mark.parametrize(("encoding", "why"), REFUSED)
def test_a_submission_that_the_official_loader_refuses(
    command: Callable[..., Any], tmp_path: Path, encoding: str, why: str
) -> None:
    path = tmp_path / "submission_subtask_2.json"
    path.write_bytes(SUBMISSION.encode(encoding))
    with pytest.raises(ValueError), path.open(encoding="utf-8") as stream:
        json.load(stream)  # as theirs does
    ran = command("validate", path, "--data", "sample/test")
    assert ran.code == 1 and ": fault: " in ran.out and why in ran.out and "not acceptable" in ran.out
    official = command("score", path, "--subtask", 2, "--data", "sample/test", "--as-official")
    assert official.code == 2 and why in official.err and len(official.err.splitlines()) == 1
    ours = command("score", path, "--subtask", 2, "--data", "sample/test")
    assert ours.code == 0 and why in ours.err


def test_a_key_that_the_official_loader_refuses(command: Callable[..., Any], tmp_path: Path) -> None:
    path, key = tmp_path / "submission_subtask_2.json", tmp_path / "key.json"
    path.write_text(SUBMISSION, encoding="utf-8")
    key.write_bytes((shipped_sample("test") / KEY_NAME).read_text(encoding="utf-8").encode("utf-8-sig"))
    assert command("score", path, "--subtask", 2, "--key", key).code == 0
    ran = command("score", path, "--subtask", 2, "--key", key, "--as-official")
    assert ran.code == 2 and "key.json: begins with a byte order mark" in ran.err


def test_plain_utf_8_is_accepted(command: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "submission_subtask_2.json"
    path.write_text(SUBMISSION, encoding="utf-8")
    assert command("validate", path, "--data", "sample/test").code == 0
    assert command("score", path, "--subtask", 2, "--data", "sample/test", "--as-official").code == 0
