"""An LM that takes 200 ms, 40 cases, 1, 8 and 32 workers: wall time against the ideal schedule, and the framework's
own time per call beside a bare dspy.Predict. `python -m tests.benchmarks.throughput` prints ratios."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import dspy

from archehr.data.case import Case
from archehr.data.dataset import read_cases
from archehr.program.prompts.program_file import load_program
from archehr.program.run.run import run_cases
from archehr.program.settings import PRESETS
from archehr.program.stages.ask import Checked, ask
from tests.fake_lm import asked, fake_lm
from tests.stub_server import answer_stage

DELAY = 0.2


def forty_cases() -> list[Case]:
    """Both sample sets. All ask five calls: four stages, and Align once more for the given answer."""
    return [*read_cases("sample/dev"), *(replace(c, id=f"t{c.id}") for c in read_cases("sample/test"))]


def slow(request: object) -> str:
    time.sleep(DELAY)
    reply = answer_stage(asked(request))
    # Every sentence scored 5 leaves no case without evidence, so that no stage falls back to the extractive twin.
    return reply.replace('"score": 2', '"score": 5')


def wall(workers: int) -> tuple[float, int]:
    """Seconds until the last case is on disk, and calls made."""
    lm, finished = fake_lm(slow), [0.0]
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        out, program = Path(scratch) / "r", load_program("zero_shot")
        run_cases(
            forty_cases(), program, lm, out=out, workers=workers, on_case=lambda _: finished.append(time.perf_counter())
        )
        return finished[-1] - began, len(lm.requests)


def overhead(calls: int = 300) -> tuple[float, float]:
    """Milliseconds per call of a stage's `ask` and of a bare dspy.Predict, with an LM that answers at once."""
    lm = fake_lm(lambda _: '{"question": "Why?"}')
    predict = load_program("zero_shot").reformulate.predict
    with dspy.context(lm=lm, disable_history=True, adapter=dspy.JSONAdapter()):
        began = time.perf_counter()
        for i in range(calls):
            predict(narrative=f"Why {i}?")
        bare = time.perf_counter() - began
        began = time.perf_counter()
        for i in range(calls):
            ask(predict, lambda p: Checked(p.question), "reformulate", PRESETS["default"], narrative=f"Why {i}?")
        ours = time.perf_counter() - began
    return 1000 * ours / calls, 1000 * bare / calls


if __name__ == "__main__":
    for workers in (32, 8, 1):
        took, calls = wall(workers)
        # Every case is a chain of its calls, and workers take whole cases.
        ideal = -(-len(forty_cases()) // workers) * (calls / len(forty_cases())) * DELAY
        print(
            f"{workers:2d} workers: {took:6.2f} s, {calls} calls, ideal {ideal:6.2f} s, ideal/taken {ideal / took:.2f}"
        )
    ours, bare = overhead()
    print(f"per call: {ours:.2f} ms in a stage, {bare:.2f} ms in a bare dspy.Predict, ratio {ours / bare:.2f}")
