"""run_cases: answer cases with a program, keep every finished one on disk, and write what the organisers take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from archehr.data.case import Case
from archehr.data.case_file import filter_cases, ids_of
from archehr.data.dataset import Dataset, data_sha256, read_cases
from archehr.data.files import shipped_sample, write_private
from archehr.data.json_stream import json_pieces
from archehr.data.submission import SUBTASKS, read_submission, submission_entries, submission_file
from archehr.data.writers import check_exports
from archehr.metrics.score import score_run
from archehr.program.lm import is_hosted
from archehr.program.lm.cache import cache_folder, configure_cache
from archehr.program.lm.ledger import booked_apart
from archehr.program.lm.wire.errors import LMGone, watching_outages
from archehr.program.pipeline import GroundedQA, QuestionSource
from archehr.program.prompts.fitted_cut import cut_of_another
from archehr.program.prompts.program_file import save_program_file, stored_form
from archehr.program.run.engines.engine import RunEngine
from archehr.program.run.engines.registry import answers, engine_of
from archehr.program.run.export import write_predictions
from archehr.program.run.folder import RunFolder
from archehr.program.run.job import Job, RunStopped
from archehr.program.run.journal import Journal
from archehr.program.run.manifest import Identity, Manifest, Session
from archehr.program.run.records import CaseRecord, Tally, submissions, submitted
from archehr.program.run.report import write_report
from archehr.program.stage_lms import LMs, with_lms
from archehr.program.stages.ask import UNUSABLE
from archehr.program.stages.registry import STAGES
from archehr.program.types import StageName

PROGRAM = "program.json"
MANIFEST_EVERY = 1.0  # seconds, so that a killed run's spending is known to a second

CREDENTIALED = (
    "note text will leave this machine for a hosted LM: check that your data use agreement allows it "
    "(PhysioNet's credentialed data needs a provider that neither keeps nor reviews prompts)"
)


@dataclass(slots=True)
class RunResult:
    """What `run_cases` did. `records` are those of `cases`, the ones asked for, in their order; `files` maps a subtask
    to its submission, which, like `scores` and `exports`, is of all finished cases of the folder. `scores` is what
    scores.json holds, filled without a folder too where cases have gold. Of more than a thousand cases, `records`,
    `cases` and the scores of single cases are no lists and dicts in memory, but read from disk as they are wanted."""

    records: Sequence[CaseRecord]
    manifest: Manifest
    folder: Path | None = None
    files: dict[int, Path] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    resumed: int = 0
    cases: Sequence[Case] = ()
    exports: list[Path] = field(default_factory=list)

    def why_lm_never_answered(self) -> str | None:
        """The commonest failure where the run made LM calls and none gave a usable reply, else None."""
        used = self.manifest.usage
        if not used or not used.calls or used.calls > used.failed or used.cache_hits:
            return None
        failures = Counter(n["detail"] for r in self.records for n in r.notices if n["kind"] == "lm_failed")
        return failures.most_common(1)[0][0] if failures else None


def run_cases(
    data: Dataset | Iterable[Case],
    program: GroundedQA,
    lm: LMs = None,
    *,
    out: str | Path | None = None,
    question: QuestionSource = "own",
    stages: Collection[StageName] | None = None,
    workers: int = 8,
    engine: str | RunEngine = "auto",
    fresh: bool = False,
    export: Collection[str] = (),
    keep_fallbacks: bool = False,
    on_case: Callable[[CaseRecord], None] = lambda _: None,
    on_resume: Callable[[int], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> RunResult:
    """Answer the cases of `data`; with `out`, keep a run folder that the same call resumes.

    `lm` is one LM, or several by stage: {"": lm, "score": cheaper}. The hash of the data that the cases were chosen
    from decides whether a folder may be resumed; a case that a fallback answered because the LM was not reached is
    answered again, unless `keep_fallbacks`. `engine` says how cases are answered (archehr.program.run.engines), which
    changes no answer: on `workers` threads or, for many cases without an LM, on processes. `export` names further
    forms of the answers for the folder (archehr.data.writers.EXPORTS). `on_case` gets each record as it is finished,
    `on_resume` how many of the cases were finished before, `tell` a line for what the user should know.

    Raises DataError before the first call for what cannot work; RunStopped where the LM will not answer (LMGone and
    the errors in UNUSABLE where there is no folder); BudgetExceeded and Interrupted. Every finished case is on disk.

    Example:
        >>> import archehr
        >>> result = archehr.run_cases(archehr.read_cases("sample/test")[:2], archehr.load_program("extractive"))
        >>> [record.case_id for record in result.records]
        ['101', '102']
    """
    data = Dataset.of(data)
    check_exports(export)
    program, other_lm = with_lms(program, lm)
    job = Job(program, other_lm, question, tuple(STAGES) if stages is None else tuple(stages))
    job.check(data.cases)
    for line in (*getattr(program, "notes", ()), *job.skipped(data.cases)):
        tell(line)
    if (line := cut_of_another(program, other_lm)) is not None:
        tell(line)
    with booked_apart(tell) as ledger, watching_outages() as outages:
        counted = any(hasattr(getattr(its, "engine", None), "ledger") for its in job.lms)
        job = replace(job, ledger=ledger if counted else None, outages=outages)
        chosen_engine = engine_of(engine, job, len(data.cases))
        if out is None:
            return _in_memory(job, data, workers, chosen_engine, on_case)
        call = _Call(Path(out), workers, chosen_engine, fresh, keep_fallbacks, export, on_case, on_resume, tell)
        return _in_folder(job, data, call)


def _in_memory(
    job: Job, data: Dataset, workers: int, engine: RunEngine, on_case: Callable[[CaseRecord], None]
) -> RunResult:
    identity, started = _identity(job, data), datetime.now(UTC)
    done: dict[str, CaseRecord] = {}
    for record in answers(engine, job, data.cases, workers):
        done[record.case_id] = record
        on_case(record)
    manifest = Manifest.after(identity, Tally(done.values()), [Session.of(started, job.ledger)])
    records = [done[i] for i in ids_of(data.cases)]
    scores = {}
    if any(c.gold for c in data.cases):
        made = {n: submission_entries(n, predictions) for n, predictions in submissions(records).items()}
        scores = score_run(made, data.cases)
    return RunResult(records, manifest, scores=scores, cases=data.cases)


@dataclass(frozen=True)
class _Call:
    """What a call of run_cases with a folder asks for beside the job, as its docstring says."""

    out: Path
    workers: int
    engine: RunEngine
    fresh: bool
    keep_fallbacks: bool
    export: Collection[str]
    on_case: Callable[[CaseRecord], None]
    on_resume: Callable[[int], None]
    tell: Callable[[str], None]


def _in_folder(job: Job, data: Dataset, call: _Call) -> RunResult:
    identity, started = _identity(job, data), datetime.now(UTC)
    with RunFolder(call.out, identity, fresh=call.fresh) as folder:
        _prepare(job, identity, folder, call.tell)
        earlier = folder.manifest.sessions if folder.manifest else []
        is_finished = folder.records.__contains__ if call.keep_fallbacks else folder.records.is_done
        left = filter_cases(data.cases, lambda case_id: not is_finished(case_id))
        call.on_resume(len(data.cases) - len(left))

        def keep_manifest() -> None:
            session = Session.of(started, job.ledger)
            folder.write_manifest(Manifest.after(identity, folder.records.tally, [*earlier, session]))

        keep_manifest()
        try:
            _answer_and_keep(job, left, folder, call, keep_manifest)
        except (LMGone, *UNUSABLE) as error:
            kept = sum(map(folder.records.is_done, ids_of(data.cases)))
            raise RunStopped(error, kept, len(data.cases), job.was_answered()) from error
        finally:
            keep_manifest()
        hits = job.ledger.totals()["cache_hits"] if call.fresh and job.ledger is not None else 0
        if hits:
            call.tell(f"{hits} replies are from the cache, of the same prompts; archehr cache --clear empties it")
        return _finished(data, folder, len(data.cases) - len(left), call)


def _answer_and_keep(
    job: Job, cases: Sequence[Case], folder: RunFolder, call: _Call, keep_manifest: Callable[[], None]
) -> None:
    """Each case on disk before it is told of, and run.json about once in MANIFEST_EVERY seconds."""
    kept_at = time.monotonic()
    for record in answers(call.engine, job, cases, call.workers, call.out, call.tell):
        folder.append(record)
        call.on_case(record)
        if time.monotonic() > kept_at + MANIFEST_EVERY:
            keep_manifest()
            kept_at = time.monotonic()


def _finished(data: Dataset, folder: RunFolder, resumed: int, call: _Call) -> RunResult:
    """The result of this call's cases, and the files of all that is finished in the folder."""
    assert folder.manifest is not None
    records = folder.records.of(ids_of(data.cases))
    result = RunResult(records, folder.manifest, call.out, resumed=resumed, cases=data.cases)
    finished = filter_cases(data.chosen_from or data.cases, folder.records.__contains__)
    if more := len(finished) - len(data.cases):
        call.tell(f"the submissions and the report hold {more} more cases that were finished in {call.out} before")
    _write_results(result, finished, folder.records, call.export)
    for subtask, cases in folder.records.tally.unanswered.items():
        call.tell(
            f"no submission of subtask {subtask}, which must hold every case: {cases} of {len(finished)} cases have no "
            "answer to it"
        )
    return result


def _prepare(job: Job, identity: Identity, folder: RunFolder, tell: Callable[[str], None]) -> None:
    """What stands in a folder before its first case, and what the user is told of it."""
    if job.lms:
        configure_cache(cache_folder())
    if (file := stored_form(job.program)) is not None:  # stays with its answers: files change and names repeat
        save_program_file(file, folder.path / PROGRAM)
    for line in folder.notices:
        tell(line)
    first = folder.manifest is None
    if first and any(is_hosted(lm) for lm in job.lms) and not _is_sample(identity.data_sha256):
        tell(CREDENTIALED)


def _write_results(result: RunResult, cases: Sequence[Case], journal: Journal, export: Collection[str]) -> None:
    """The submissions, predictions and report of all finished cases, and scores.json where they have gold."""
    assert result.folder is not None
    records = journal.of(ids_of(cases))
    files = {n: result.folder / f"submission_subtask_{n}.json" for n in SUBTASKS}
    result.files = {n: path for n, path in files.items() if n in journal.tally.subtasks}
    _write_submissions(result.files, records)
    for old in files.keys() - result.files.keys():  # of an earlier call, which had fewer cases
        files[old].unlink(missing_ok=True)
    result.exports = write_predictions(result.folder, cases, records, result.manifest, export)
    if any(c.gold for c in cases):
        result.scores = score_run({n: read_submission(path) for n, path in result.files.items()}, cases)
        write_private(result.folder / "scores.json", chain(json_pieces(result.scores), "\n"))
    write_report(result.manifest, result.scores, cases, records, result.folder / "report.html")


def _write_submissions(files: Mapping[int, Path], records: Iterable[CaseRecord]) -> None:
    with ExitStack() as stack:
        add = {n: stack.enter_context(submission_file(path, n)) for n, path in files.items()}
        for record in records:
            for subtask, add_to in add.items():
                add_to(record.case_id, submitted(record, subtask))


def _identity(job: Job, data: Dataset) -> Identity:
    return Identity.of(job.program, job.lm, data, job.question, job.stages)


def _is_sample(sha256: str) -> bool:
    return sha256 in {data_sha256(read_cases(shipped_sample(name))) for name in ("dev", "test")}
