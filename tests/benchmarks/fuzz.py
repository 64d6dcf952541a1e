"""10,000 broken replies and refusals through the whole program: `python -m tests.benchmarks.fuzz` prints what broke."""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator

import dspy
from dspy import lm15

from archehr.data.case import Case
from archehr.data.dataset import read_cases
from archehr.data.submission import validate_submission
from archehr.program.pipeline import GroundedQA
from archehr.program.run.records import CaseRecord, submissions
from archehr.program.settings import PRESETS
from tests.broken_replies import broken_reply, noise
from tests.fake_lm import asked, fake_lm


def fuzz(replies: int, seed: int) -> Counter[str]:
    """Run sample cases on broken replies until `replies` were given; count crashes, invalid submissions, silent
    repairs (a stage whose every reply was no JSON object, without a notice), leaks (notices that quote the note) and
    notices by kind."""
    draw, found = random.Random(seed), Counter[str]()
    cases = read_cases("sample/test")
    programs = [GroundedQA(PRESETS[name]) for name in PRESETS]
    while found["replies"] < replies:
        case, program = draw.choice(cases), draw.choice(programs)
        given: list[str] = []
        lm = fake_lm(lambda request, case=case, given=given: _next(draw, case, given, asked(request)))
        try:
            with dspy.context(lm=lm, disable_history=True, max_trace_size=0):
                prediction = program(case=case)
        except Exception as error:
            found[f"CRASH {type(error).__name__}"] += 1
            continue
        finally:
            found["replies"] += max(1, len(given))
        record = CaseRecord.of(case, prediction, {}, 0)
        CaseRecord.model_validate_json(record.model_dump_json())
        found["INVALID"] += sum(1 for _ in _faults(case, record))
        found["SILENT"] += all(not _is_object(r) for r in given) and not prediction.notices
        found["LEAK"] += sum(_quotes(n.detail, case) for n in prediction.notices)
        found.update(f"notice {n.kind}" for n in prediction.notices)
    return found


def _quotes(detail: str, case: Case) -> bool:
    words, note = detail.split(), " ".join([case.narrative, *(s.text for s in case.sentences)])
    return any(" ".join(words[i : i + 4]) in note for i in range(len(words) - 3))


def _refusal(draw: random.Random, sent: str) -> Exception:
    """An error as servers send it; the words may quote what they were sent."""
    quoted = draw.choice(sent.splitlines())
    words = draw.choice(
        [
            "JSON schema conversion failed",
            f"failed to parse grammar at: {quoted}",
            "'temperature' does not support 0.0 with this model",
            f"invalid input: '{quoted}'",
            "the model is overloaded",
        ]
    )
    kind = draw.choice([lm15.InvalidRequestError, lm15.ServerError, lm15.TransportError, lm15.TimeoutError])
    return kind(words)


def _next(draw: random.Random, case: Case, given: list[str], sent: str) -> str | Exception:
    if draw.random() < 0.1:
        return _refusal(draw, sent)
    given.append(noise(draw) if draw.random() < 0.002 else broken_reply(draw, [s.id for s in case.sentences]))
    return given[-1]


def _faults(case: Case, record: CaseRecord) -> Iterator[str]:
    made = submissions([record])
    if set(made) != {1, 2, 3, 4}:
        yield "a subtask is missing"
    for subtask, predictions in made.items():
        entry = {"case_id": case.id, "prediction": predictions[case.id]}
        if subtask == 4:
            entry["prediction"] = [{"answer_id": a, "evidence_id": ids} for a, ids in predictions[case.id]]
        report = validate_submission([json.loads(json.dumps(entry))], [case], subtask)
        yield from report.faults + report.warnings


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


if __name__ == "__main__":
    began = time.perf_counter()
    for what, count in sorted(fuzz(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, seed=0).items()):
        print(f"{what:24s} {count}")
    print(f"{time.perf_counter() - began:.0f} s")
