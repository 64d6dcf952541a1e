"""The walks of a shared-task researcher and of a DSPy practitioner, with a scripted server in the model's place."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stub_server import StubServer
from tests.walks import SERVER, blocks, exported, give_modules_of_our_names, ran


@pytest.fixture
def server() -> Iterator[StubServer]:
    with StubServer() as running:
        yield running


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    give_modules_of_our_names(tmp_path)
    return tmp_path


def test_the_shared_task_walk(own_folder: Path, server: StubServer) -> None:
    lines = [line for block in blocks("shared-task.md", "console") for line in block.splitlines()]
    assert len(lines) >= 12 and all(line.startswith("$ archehr ") for line in lines)
    exports, asked, said = exported("shared-task.md", server), {}, {}

    def walked(line: str, *more: str) -> str:
        before = len(server.received)
        done = ran(own_folder, "-m", "archehr", *shlex.split(line)[2:], *more, **exports)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        asked[line] = len(server.received) - before
        return done.stdout

    for line in lines:
        said[line] = walked(line)

    def those(has: Callable[[str], bool]) -> list[str]:
        found = [line for line in lines if has(line)]
        assert found
        return found

    (dry,) = those(lambda line: "--dry-run" in line)
    first, rest = those(lambda line: line.endswith("--out r"))
    new_cut = those(lambda line: "--cut" in line)
    assert asked[dry] == 0 and "Nothing was sent. 6 cases to answer" in said[dry]
    assert asked[dry.removesuffix(" --dry-run")] > 20, "the model was asked"
    assert "6 answered, 3 of them before" in said[rest] and asked[first] == asked[rest] == 0, (
        "one cache for all folders"
    )
    assert all(asked[line] == 0 and re.search(r"LM use +0 calls", said[line]) for line in new_cut)
    assert all(asked[line] == 0 for line in those(lambda line: " extractive --cases" in line))
    assert asked[those(lambda line: "optimize" in line)[0]] > 0 and (own_folder / "public.json").exists()
    assert (own_folder / "c" / "comparison.html").exists()
    assert "all 6 cases were already done" in walked(rest)


def test_the_views_walk(own_folder: Path) -> None:
    lines = [line for block in blocks("views.md", "console") for line in block.splitlines()]
    said = {}
    for line in lines:
        done = ran(own_folder, "-m", "archehr", *shlex.split(line)[2:])
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        said[line] = done.stdout + done.stderr
    auto, few = (text for line, text in said.items() if line.startswith("$ archehr optimize"))
    assert "calls a case" in auto and "calls a case" in few and "--max-calls 150: the views tried are" in auto
    assert len(json.loads((own_folder / "q.json").read_text())["stages"]["score_few"]["demos"]) == 2
    assert "supported</span>" in (own_folder / "checked" / "report.html").read_text()
    done = ran(own_folder, "-c", "\n".join(blocks("views.md", "python")))
    assert done.returncode == 0, done.stderr


def test_the_dspy_walk(own_folder: Path, server: StubServer) -> None:
    code = "\n".join(blocks("dspy.md", "python"))
    assert SERVER in code
    done = ran(own_folder, "-c", code.replace(SERVER, server.openai))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^openai/my-model [1-9]\d* \{", done.stdout, re.MULTILINE)  # its calls were counted, and scored
    assert (own_folder / "dspy.json").exists() and (own_folder / "ours.json").exists()
    assert {received.body["model"] for received in server.received} == {"my-model"}
