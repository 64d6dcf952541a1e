"""The folder a command finds again, and tables whose cells can be copied."""

from __future__ import annotations

import pytest

from archehr.terminal.display import _print_columns, default_folder


@pytest.mark.parametrize(
    ("title", "program", "lm", "folder"),
    [
        ("sample-test", "extractive", None, "runs/sample-test-extractive"),
        ("x", "zero_shot", "gemini/gemini-3.8-flash", "runs/x-zero_shot-gemini-gemini-3.8-flash"),
        ("x y", "/tmp/p.json", "knn", "runs/x-y-p-knn"),
        ("v1.5", "extractive", None, "runs/v1.5-extractive"),
    ],
)
def test_the_run_folder_of_a_command(title: str, program: str, lm: str | None, folder: str) -> None:
    assert str(default_folder(title, program, lm)) == folder


def test_no_cell_is_wrapped_or_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/a/very/long/path/" + "x" * 300
    _print_columns([("name", path), ("a longer name", "[neural]")])
    assert capsys.readouterr().out == f"name           {path}\na longer name  [neural]\n"
