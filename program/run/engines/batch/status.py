"""The batch jobs of a run folder: how they stand at the provider, and how they are cancelled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dspy import lm15

from archehr.data.case import DataError
from archehr.program.lm.wire.errors import in_a_line, told
from archehr.program.run.engines.batch.loop import names_of, service_of
from archehr.program.run.engines.batch.store import FOLDER, BatchJob, append_event, count_replies, read_jobs
from archehr.program.run.job import Job


@dataclass(frozen=True)
class JobStatus:
    """One job: the provider's name of it, None where it never got there, and how many replies are fetched."""

    job: str | None
    lm: str
    sent: str
    requests: int
    fetched: int
    state: str


def job_status(job: Job, run_folder: Path, *, cancel: bool = False) -> list[JobStatus]:
    """Every job that was sent from a run folder, oldest first; with `cancel`, those that have not ended are cancelled.
    Raises DataError where none was sent, or the provider cannot be asked."""
    folder = run_folder / FOLDER
    jobs = read_jobs(folder)
    if not jobs:
        raise DataError(f"{run_folder}: no batch job was sent from there; --out names another run folder")
    fetched = count_replies(folder)
    return [
        JobStatus(
            batch_job.name,
            batch_job.lm,
            batch_job.at,
            len(batch_job.keys),
            fetched[batch_job.id],
            _state(job, batch_job, folder, cancel),
        )
        for batch_job in jobs.values()
    ]


def _state(job: Job, batch_job: BatchJob, folder: Path, cancel: bool) -> str:
    if batch_job.ended is not None:
        return batch_job.ended
    lm = names_of(job).get(batch_job.lm)
    if lm is None:
        raise DataError(f"{folder}: has a batch job of {batch_job.lm}; name it with --lm")
    service, engine = service_of(lm), lm.engine
    try:
        name = batch_job.name or service.find(batch_job.id)
        if not cancel:
            return service.look(name).state if name is not None else "not created"
        if name is not None:
            service.cancel(name)
        append_event(folder, batch_job.id, "cancelled")
        return "being cancelled" if name is not None else "not created"
    except (lm15.UnsupportedModelError, lm15.UnsupportedFeatureError):
        if cancel:
            append_event(folder, batch_job.id, "ended", state="UNKNOWN")
        return "unknown to the provider" + (", given up" if cancel else "")
    except lm15.LM15Error as error:
        fault = told(error, 0, "", engine._secrets, engine.backend.endpoint)
        raise DataError(f"{batch_job.name or batch_job.id}: the batch service: {in_a_line(fault)}") from None
