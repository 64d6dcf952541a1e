"""run_cases: answer cases with a program, keep every finished one on disk, and write what the organisers take."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dspy

from archehr.data.case import Case, DataError
from archehr.data.dataset import Dataset, data_sha256, read_cases
from archehr.data.files import shipped_sample, write_private
from archehr.data.submission import read_submission, write_submission
from archehr.metrics.score import score_run
from archehr.program.lm import is_hosted
from archehr.program.lm.cache import configure_cache
from archehr.program.lm.ledger import Ledger, booked_apart, sum_of
from archehr.program.pipeline import GroundedQA, QuestionSource
from archehr.program.prompts.program_file import program_hash, save_program_file, to_file
from archehr.program.run.batch import in_threads
from archehr.program.run.folder import RunFolder
from archehr.program.run.records import CaseRecord, answer_linked, fitted_cases, submissions
from archehr.program.run.report import write_report
from archehr.program.stages.registry import STAGES, possible_stages
from archehr.program.types import StageName

PROGRAM = "program.json"


CREDENTIALED = (
    "note text will leave this machine for a hosted LM: check that your data use agreement allows it "
    "(PhysioNet's credentialed data needs a provider that neither keeps nor reviews prompts)"
)


@dataclass(slots=True)
class RunResult:
    """What `run_cases` did. `records` are in case order; `files` maps a subtask to its submission."""

    records: list[CaseRecord]
    manifest: dict[str, Any]
    folder: Path | None = None
    files: dict[int, Path] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    resumed: int = 0

    def why_lm_never_answered(self) -> str | None:
        """The commonest failure where the run made LM calls and none gave a usable reply, else None."""
        used = self.manifest.get("usage")
        if not used or not used["calls"] or used["calls"] > used["failed"] or used["cache_hits"]:
            return None
        failures = Counter(n["detail"] for r in self.records for n in r.notices if n["kind"] == "lm_failed")
        return failures.most_common(1)[0][0] if failures else None


def run_cases(
    data: Dataset | Sequence[Case],
    program: GroundedQA,
    lm: dspy.BaseLM | None = None,
    *,
    out: str | Path | None = None,
    question: QuestionSource = "own",
    stages: Collection[StageName] | None = None,
    workers: int = 8,
    fresh: bool = False,
    on_case: Callable[[CaseRecord], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> RunResult:
    """Answer the cases of `data`; with `out`, keep a run folder that the same call resumes.

    The hash of the data that the cases were chosen from decides whether a folder may be resumed. `on_case` gets each
    record as it is finished, `tell` a line for what the user should know. Raises DataError before the first call for
    what cannot work, and lets BudgetExceeded, Interrupted and unusable-LM errors through with every finished case on
    disk.
    """
    data = Dataset.of(data)
    cases = data.cases
    _check_input(cases, program, lm, question)
    stages = tuple(STAGES) if stages is None else tuple(stages)
    out = Path(out) if out is not None else None
    counted = hasattr(lm, "ledger")
    identity = _identity(program, lm, data, question, stages)
    started, clock = datetime.now(UTC), time.monotonic()

    def answer(case: Case) -> CaseRecord:
        begun = time.monotonic()
        with dspy.context(lm=lm, disable_history=True, max_trace_size=0):
            prediction = program(case=case, question=question, stages=stages)
        usage = ledger.of_case(case.id) if counted else {}
        return CaseRecord.of(case, prediction, usage, time.monotonic() - begun)

    for line in _skipped(cases, stages):
        tell(line)
    if out is None:
        done: dict[str, CaseRecord] = {}
        with booked_apart() as ledger, _interruptible() as interrupt:
            for record in in_threads(cases, answer, workers, interrupt):
                done[record.case_id] = record
                on_case(record)
        spent = _spent(list(done.values()), ledger if counted else None, started, clock, [])
        return RunResult([done[c.id] for c in cases], {**identity, **spent})

    with booked_apart() as ledger, RunFolder(out, identity, fresh=fresh) as folder:
        if lm is not None:
            configure_cache(_cache_folder(out))
        if program.asks_lm:  # what was run stays with its answers: files change and names repeat
            save_program_file(to_file(program, getattr(program, "provenance", None)), out / PROGRAM)
        for line in folder.notices:
            tell(line)
        if not folder.manifest and lm is not None and is_hosted(lm) and not _is_sample(identity["data_sha256"]):
            tell(CREDENTIALED)
        earlier = folder.manifest.get("sessions", [])
        left = [c for c in cases if c.id not in folder.records]
        result = RunResult([], {}, out, resumed=len(cases) - len(left))

        def keep_manifest() -> None:
            spent = _spent(list(folder.records.values()), ledger if counted else None, started, clock, earlier)
            folder.write_manifest(spent)

        keep_manifest()
        kept_at = time.monotonic()
        try:
            with _interruptible() as interrupt:
                for record in in_threads(left, answer, workers, interrupt):
                    folder.append(record)
                    on_case(record)
                    if time.monotonic() > kept_at + 1:  # so that a killed run's spending is known to a second
                        keep_manifest()
                        kept_at = time.monotonic()
        finally:
            keep_manifest()
        result.records = [folder.records[c.id] for c in cases]
        result.manifest = folder.manifest
        if more := len(folder.records) - len(cases):
            tell(
                f"the submissions hold the {len(cases)} cases asked for, without {more} more that are finished in {out}"
            )
        _write_results(result, out, cases)
        return result


def _write_results(result: RunResult, out: Path, cases: Sequence[Case]) -> None:
    """The submissions, and scores.json where the cases have gold."""
    for subtask, predictions in submissions(result.records).items():
        result.files[subtask] = out / f"submission_subtask_{subtask}.json"
        write_submission(result.files[subtask], subtask, predictions)
    if any(c.gold for c in cases):
        made = {n: read_submission(path) for n, path in result.files.items()}
        result.scores = score_run(made, cases)
        write_private(out / "scores.json", json.dumps(result.scores, indent=1) + "\n")
    write_report(result, cases, out / "report.html")


def _check_input(cases: Sequence[Case], program: GroundedQA, lm: dspy.BaseLM | None, question: QuestionSource) -> None:
    if not cases:
        raise DataError("no case to answer; the data is empty")
    if program.asks_lm and lm is None:
        raise DataError("this program asks an LM; name one with --lm, or run --program extractive")
    if question == "given" and (lacking := [c.id for c in cases if c.sentences and not c.clinician_question]):
        raise DataError(f"case {lacking[0]} has no clinician_question; run with --question own")


def _identity(
    program: GroundedQA,
    lm: dspy.BaseLM | None,
    data: Dataset,
    question: QuestionSource,
    stages: Collection[StageName],
) -> dict[str, Any]:
    """What a run is: two runs with the same identity give the same answers."""
    return {
        "data": data.name,
        "data_sha256": data.sha256,
        "program": getattr(program, "name", "GroundedQA"),
        "program_hash": program_hash(program),
        "in_sample": bool(fitted_cases(getattr(program, "provenance", {}), data.chosen_from or data.cases)),
        "lm": lm_identity(lm),
        "question": question,
        "stages": [s for s in STAGES if s in stages],
        "settings": program.settings.model_dump(mode="json"),
        "versions": {
            "python": platform.python_version(),
            **{p: importlib.metadata.version(p) for p in ("archehr-dspy", "dspy", "google-genai", "scikit-learn")},
        },
    }


def lm_identity(lm: dspy.BaseLM | None) -> dict[str, Any] | None:
    """The LM as far as it shapes answers: name, endpoint and sampling settings; never a key."""
    if lm is None:
        return None
    settings = {k: v for k, v in lm.kwargs.items() if k not in ("api_key", "metadata")}
    return {"model": lm.model, **settings, **(lm.kwargs.get("metadata") or {})}


def _spent(
    records: Sequence[CaseRecord],
    ledger: Ledger | None,
    started: datetime,
    clock: float,
    earlier: list[dict[str, Any]],
) -> dict[str, Any]:
    session = {"started": started.isoformat(timespec="seconds"), "seconds": round(time.monotonic() - clock, 1)}
    if ledger is not None:
        totals = ledger.totals()
        by_stage = {stage or "other": used for stage, used in ledger.by_stage().items()}
        session |= {"usage": totals, "by_stage": by_stage, "models": ledger.models()}
    sessions = [*earlier, session]
    used = [s["usage"] for s in sessions if "usage" in s]
    notices = Counter(n["kind"] for r in records for n in r.notices)
    return {
        "cases_done": len(records),
        "subtask_4_links": answer_linked(records),
        "notices": dict(sorted(notices.items())),
        **({"usage": sum_of(used)} if used else {}),
        "sessions": sessions,
    }


def _skipped(cases: Sequence[Case], stages: Collection[StageName]) -> list[str]:
    without = [c for c in cases if not set(stages) <= possible_stages(c)]
    if not without:
        return []
    which = "no case has" if len(without) == len(cases) else f"{len(without)} of {len(cases)} cases do not have"
    return [f"stages 2-4 (score, generate, align) did not run: {which} note sentences in the data"]


def _is_sample(sha256: str) -> bool:
    return sha256 in {data_sha256(read_cases(shipped_sample(name))) for name in ("dev", "test")}


def _cache_folder(out: Path) -> Path:
    return Path(os.environ["ARCHEHR_CACHE"]) if os.environ.get("ARCHEHR_CACHE") else out / "cache"


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM set the event; a second one kills as usual. In other threads than the main one, no-op."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}

    def note(number: int, _frame: object) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)] or signal.SIG_DFL)

    for s in before:
        signal.signal(s, note)
    try:
        yield asked
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
