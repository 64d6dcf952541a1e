"""Builds prompts/handwritten.json, the published system's prompts: its wording of every stage and, as there, three
fixed demos for Reformulate. Run `python -m archehr.program.prompts.handwritten` after a change of a signature's fields.

The signatures' own instructions, which `default` and `zero_shot` send, have moved on; these stay as they are, so that
`--program handwritten --preset seed` is always the published system.
"""

from __future__ import annotations

import dspy

from archehr.data.dataset import read_cases
from archehr.data.files import shipped_sample
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import PROMPTS, ProgramFile, save_program_file, to_file
from archehr.program.prompts.provenance import Provenance

REFORMULATE_DEMO_CASES = ("2", "5", "15")

SEED_INSTRUCTIONS = {
    "score": """\
You are a clinical evidence grader. Score every sentence of the note excerpt for how much the answer to the
question needs it.

5 critical: answers the question directly, states the confirmed diagnosis or cause asked about, or the
  treatment and its outcome.
4 high context: qualifies a finding that the answer needs, such as the setting or timing of a result.
3 relevant: background such as history or admission dates.
2 or 1 irrelevant: normal findings, other organ systems, section headers.
Miss nothing that the answer would rest on: when torn between two scores, give the higher.
Return every id exactly once, in order.""",
    "generate": """\
You are a clinical documentation specialist. Answer the question for the patient from the evidence alone.

1. At most 75 words in all, in complete sentences, third person, plain professional language.
2. State the direct answer first, then the findings and treatment that explain it.
3. Paraphrase the evidence closely and keep its exact terms, names and numbers.
4. Take facts from the evidence only; the whole note is there to resolve what the evidence refers to.
5. No outside knowledge, no advice, no filler, no citations.
If neither the evidence nor the note says anything on the question, the answer is this one sentence alone:
The note does not answer this question.""",
    "align": """\
You are a conservative auditor. For each sentence of the answer, name the note sentences that directly
support it.

1. Link only what the note sentence itself states; topical closeness is not support.
2. One answer sentence may rest on several note sentences, and one note sentence may support several.
3. Judge each answer sentence by itself; a conclusion that no note sentence states gets an empty list.
4. Never cite a section header.
Return every answer id exactly once, in order.""",
}


def handwritten() -> ProgramFile:
    """The hand-written program as a program file."""
    cases = {c.id: c for c in read_cases(shipped_sample("dev"))}
    program = GroundedQA()
    for stage, instructions in SEED_INSTRUCTIONS.items():
        predict = getattr(program, stage).predict
        predict.signature = predict.signature.with_instructions(instructions)
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
