"""A note of 5,000 sentences beside one of 1,250: time and memory must grow with the note, not with its square.
`python -m tests.benchmarks.long_note` prints ratios, without an LM and with one that answers at once."""

from __future__ import annotations

import resource
import time
from dataclasses import replace

import dspy

from archehr.data.case import Case, Sentence
from archehr.data.dataset import read_cases
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program
from tests.fake_lm import asked, fake_lm
from tests.stub_server import answer_stage


def note_of(size: int) -> Case:
    """A case whose note repeats the sample's sentences, numbered so that no two are alike."""
    cases = read_cases("sample/test")
    pool = [s.text for c in cases for s in c.sentences]
    sentences = tuple(Sentence(str(i), f"{pool[i % len(pool)]} ({i})") for i in range(1, size + 1))
    return replace(cases[0], sentences=sentences, answer_sentences=())


def seconds(program: GroundedQA, size: int) -> float:
    case = note_of(size)
    began = time.perf_counter()
    prediction = program(case=case)
    assert [s.id for s in prediction.scores] == [s.id for s in case.sentences]
    return time.perf_counter() - began


if __name__ == "__main__":
    lm = fake_lm(lambda request: answer_stage(asked(request)))
    for name in ("extractive", "zero_shot"):
        program = load_program(name)
        with dspy.context(lm=lm, disable_history=True, max_trace_size=0):
            seconds(program, 40)  # fits the extractive stages
            small, large = seconds(program, 1250), seconds(program, 5000)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name}: 1,250 sentences {small:.2f} s, 5,000 {large:.2f} s, ratio {large / small:.1f} (4 is linear); "
              f"peak memory {peak:.0f} MiB")  # fmt: skip
