"""Memory of a run that is as long as one likes: peak RSS, time to resume, and what is beside the answering.

`python -m tests.benchmarks.stream [N]` runs 1,000 and N (100,000) cases, each in a process of its own that reads,
answers, journals, scores and reports them, then runs the same again, when all is done. The program is a stub that takes
no time, on notes of three sentences, so that N is feasible in minutes; add `extractive` for the program without an LM
on whole notes, on all cores as `archehr run` has it (25 ms a case and core; 100,000 cases are half an hour on two).
Cases are the samples' with new ids, and every sentence is made unlike those of the other cases.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import dspy

from archehr.data.case import Case
from archehr.data.dataset import read_cases, read_dataset
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program
from archehr.program.run.run import run_cases
from archehr.program.stages.registry import STAGES
from archehr.program.types import Link, SentenceScore


class Stub(GroundedQA):
    """Answers with the first two sentences of the note."""

    def forward(self, case: Case, question: str = "own", stages: Any = None) -> dspy.Prediction:
        cited = case.sentences[:2]
        return dspy.Prediction(
            question=" ".join(case.narrative.split()[:15]),
            scores=[SentenceScore(id=s.id, score=5 if s in cited else 1) for s in case.sentences],
            evidence=[s.id for s in cited],
            answer_sentences=[s.text for s in cited],
            answer=" ".join(s.text for s in cited),
            declined=False,
            links=[Link(answer_id=str(n), evidence_ids=[s.id]) for n, s in enumerate(cited, 1)],
            added={},
            notices=[],
        )


def write_table(path: Path, cases: int, sentences: int) -> None:
    """A table of `cases` rows with gold, as JSON lines, the notes cut after so many sentences."""
    samples = [*read_cases("sample/dev"), *read_cases("sample/test")]
    with path.open("w", encoding="utf-8") as out:
        for number in range(cases):
            case = samples[number % len(samples)]
            note = "\n".join(re.sub(r"\W*$", f" on visit {number}.", s.text) for s in case.sentences[:sentences])
            row = {"id": f"case-{number}", "message": f"{case.narrative} ({number})", "note": note, "evidence": "1,3"}
            out.write(json.dumps({**row, "question": case.clinician_question, "answer": case.sentences[2].text}) + "\n")


def run(path: Path, out: Path, program: str) -> None:
    """One run, whose figures are printed as JSON."""
    began = time.perf_counter()
    data = read_dataset(path)
    read, finished = time.perf_counter(), list[float]()
    made = Stub(**dict.fromkeys(STAGES)) if program == "stub" else load_program(program)
    result = run_cases(
        data,
        made,
        out=out,
        engine="threads" if program == "stub" else "auto",
        on_resume=lambda _: finished.append(time.perf_counter()),
        on_case=lambda _: finished.__setitem__(slice(1, None), [time.perf_counter()]),
    )
    ended = time.perf_counter()
    figures = {
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "worker": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
        "read": read - began,
        "start": finished[0] - read,
        "answer": finished[-1] - finished[0],
        "write": ended - finished[-1],
    }
    assert len(result.records) == len(data.cases)
    print(json.dumps(figures))


def measured(path: Path, out: Path, program: str) -> dict[str, float]:
    call = [sys.executable, "-m", "tests.benchmarks.stream", "run", str(path), str(out), program]
    ran = subprocess.run(call, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return figures


def main(most: int, program: str) -> None:
    print(f"program {program}; seconds to read the data, to start, to answer and journal, to write and score")
    print(
        f"{'cases':>8}  {'':6}  {'peak MB':>7}  {'worker':>6}  {'read':>6}  {'start':>6}  {'answer':>6}  {'write':>6}"
    )
    peaks = []
    for cases in (1_000, most):
        with tempfile.TemporaryDirectory() as folder:
            path, out = Path(folder) / "table.jsonl", Path(folder) / "run"
            write_table(path, cases, 3 if program == "stub" else 999)
            for what in ("first", "again"):
                figures = measured(path, out, program)
                seconds = "  ".join(f"{figures[name]:>6.1f}" for name in ("read", "start", "answer", "write"))
                memory = f"{figures['MB']:>7.0f}  {figures['worker']:>6.0f}"
                print(f"{cases:>8,}  {what:6}  {memory}  {seconds}", flush=True)
                peaks.append(figures)
    first, again, workers = peaks[2]["MB"] / peaks[0]["MB"], peaks[3]["MB"] / peaks[1]["MB"], peaks[0]["worker"]
    print(f"peak at {most:,} against 1,000: {first:.2f} first, {again:.2f} again")
    if workers:
        print(f"of the largest worker: {peaks[2]['worker'] / workers:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
    else:
        given = sys.argv[1:]
        main(next((int(a) for a in given if a.isdecimal()), 100_000), "extractive" if "extractive" in given else "stub")
