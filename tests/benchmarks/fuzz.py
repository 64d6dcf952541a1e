"""10,000 hostile replies, refusals and bodies of a server through the whole program: `python -m tests.benchmarks.fuzz`
prints what broke."""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator

import dspy

from archehr.data.case import Case
from archehr.data.dataset import read_cases
from archehr.data.submission import validate_submission
from archehr.program.lm import make_lm
from archehr.program.pipeline import GroundedQA
from archehr.program.run.records import CaseRecord, submissions
from archehr.program.settings import PRESETS
from archehr.program.stages.ask import UNUSABLE
from tests.broken_replies import broken_reply, hostile_body, noise, refusal
from tests.stub_server import Received, Reply, StubServer


def fuzz(replies: int, seed: int) -> Counter[str]:
    """Run sample cases on broken replies until `replies` were given; count crashes, invalid submissions, silent
    repairs (a stage whose every reply was no JSON object, without a notice), leaks (notices, errors and lines told
    that quote the note), runs that stopped as they should, and notices by kind."""
    draw, found = random.Random(seed), Counter[str]()
    cases = read_cases("sample/test")
    programs = [GroundedQA(PRESETS[name]) for name in PRESETS]
    with StubServer() as server:
        while found["replies"] < replies:
            case, program = draw.choice(cases), draw.choice(programs)
            given: list[Reply] = []
            server.reply = lambda received, case=case, given=given: _next(draw, case, given, received)
            # Under another name each time: what one is found to refuse is not known of the next.
            name = f"openai/fuzz-{found['cases']}"
            lm = make_lm(name, api_base=server.openai, num_retries=0, cache=False)
            try:
                _one(case, program, lm, given, found)
            except Exception as error:
                kind = "stopped" if isinstance(error, UNUSABLE) else "CRASH"
                found[f"{kind} {type(error).__name__}"] += 1
                found["LEAK"] += _quotes(str(error), case)
            found["cases"] += 1
            found["replies"] += max(1, len(given))
            found["LEAK"] += sum(_quotes(line, case) for line in lm.ledger.notes())
    return found


def _one(case: Case, program: GroundedQA, lm: dspy.LM, given: list[Reply], found: Counter[str]) -> None:
    """One case answered, and what is wrong with its record."""
    with dspy.context(lm=lm, disable_history=True, max_trace_size=0):
        prediction = program(case=case)
    record = CaseRecord.of(case, prediction, {}, 0)
    CaseRecord.model_validate_json(record.model_dump_json())
    found["INVALID"] += sum(1 for _ in _faults(case, record))
    found["SILENT"] += all(r.status != 200 or not _is_object(r.text) for r in given) and not prediction.notices
    found["LEAK"] += sum(_quotes(n.detail, case) for n in prediction.notices)
    found.update(f"notice {n.kind}" for n in prediction.notices)


def _quotes(detail: str, case: Case) -> bool:
    words, note = detail.split(), " ".join([case.narrative, *(s.text for s in case.sentences)])
    return any(" ".join(words[i : i + 4]) in note for i in range(len(words) - 3))


def _next(draw: random.Random, case: Case, given: list[Reply], received: Received) -> Reply:
    given.append(_drawn(draw, case, received))
    return given[-1]


def _drawn(draw: random.Random, case: Case, received: Received) -> Reply:
    chance, ids = draw.random(), [s.id for s in case.sentences]
    if chance < 0.1:
        return refusal(draw, received.ask)
    text = noise(draw) if chance < 0.102 else broken_reply(draw, ids)
    return hostile_body(draw, text) if chance < 0.3 else Reply(text)


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
    counted = Counter(dict.fromkeys(("CRASH", "INVALID", "SILENT", "LEAK"), 0))
    counted.update(fuzz(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, seed=0))
    for what, count in sorted(counted.items()):
        print(f"{what:32s} {count}")
    print(f"{time.perf_counter() - began:.0f} s")
