"""Builds prompts/handwritten.json: the signatures' own instructions and, as in the seed, three fixed demos for
Reformulate. Run `python -m archehr.program.prompts.handwritten` after editing a signature.

Each entry is (case of sample/dev, clinician's question); the message is filled in from the sample set.
"""

from __future__ import annotations

import dspy

from archehr.data.dataset import read_cases
from archehr.data.files import shipped_sample
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import PROMPTS, ProgramFile, save_program_file, to_file
from archehr.program.prompts.provenance import Provenance

REFORMULATE_DEMO_CASES = ("2", "5", "15")


def handwritten() -> ProgramFile:
    """The hand-written program as a program file."""
    cases = {c.id: c for c in read_cases(shipped_sample("dev"))}
    program = GroundedQA()
    program.reformulate.predict.demos = [
        dspy.Example(narrative=cases[i].narrative, question=cases[i].clinician_question).with_inputs("narrative")
        for i in REFORMULATE_DEMO_CASES
    ]
    provenance = Provenance(
        made_by="python -m archehr.program.prompts.handwritten",
        demo_case_ids={"reformulate": [f"sample/dev {i}" for i in REFORMULATE_DEMO_CASES]},
        scores="not scored: written by hand, not fitted",
    )
    return to_file(program, provenance)


if __name__ == "__main__":
    save_program_file(handwritten(), PROMPTS / "handwritten.json")
