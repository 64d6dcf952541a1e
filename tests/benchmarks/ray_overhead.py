"""What Ray costs on one machine, against a plain run with the same workers: 400 cases without an LM on two processes,
and 200 cases of an LM that takes 200 ms, 16 at once. `python -m tests.benchmarks.ray_overhead` prints ratios."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import archehr
from archehr.data.case import Case
from archehr.program.run.engines.ray import RayEngine
from archehr.program.run.records import CaseRecord
from tests.stub_server import Reply, StubServer, answer_stage

DELAY = 0.2


def many(count: int) -> list[Case]:
    """The sample's notes, as often as it takes."""
    cases = archehr.read_cases("sample/test")
    return [replace(cases[n % len(cases)], id=f"{n}", gold=None) for n in range(count)]


def timed(run: Callable[[Callable[[CaseRecord], None]], Any]) -> tuple[float, float]:
    """Seconds to the first record, and from there a case."""
    came: list[float] = []
    began = time.perf_counter()
    run(lambda _: came.append(time.perf_counter()))
    return came[0] - began, (came[-1] - came[0]) / (len(came) - 1)


def compare(what: str, cases: Sequence[Case], plain: str, program: Any, lm: Callable[[], Any], workers: int) -> None:
    """Print one line for a plain engine and one for Ray."""
    took = {}
    for name, engine in (("plain", plain), ("ray", RayEngine())):
        with tempfile.TemporaryDirectory() as scratch:
            out, model = Path(scratch) / "r", lm()
            os.environ["ARCHEHR_CACHE"] = str(Path(scratch) / "replies")
            took[name] = timed(
                lambda heard, out=out, model=model, engine=engine: archehr.run_cases(
                    cases, program, model, out=out, workers=workers, engine=engine, on_case=heard
                )
            )
        first, each = took[name]
        print(f"{what}, {name:5}: first case after {first:5.1f} s, then {1000 * each:6.1f} ms a case")
    ratio = took["ray"][1] / took["plain"][1]
    print(f"{what}: Ray takes {ratio:.2f}x a case, and {took['ray'][0] - took['plain'][0]:.1f} s more to begin")


if __name__ == "__main__":
    compare("no LM, 2 workers", many(400), "processes", archehr.load_program("extractive"), lambda: None, 2)
    with StubServer(lambda received: Reply(answer_stage(received.ask), delay=DELAY)) as server:
        compare(
            "LM of 200 ms, 16 workers",
            many(200),
            "threads",
            archehr.load_program("zero_shot"),
            lambda: archehr.make_lm("openai/stub", api_base=server.openai, cache=False),
            16,
        )
