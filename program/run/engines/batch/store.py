"""What must not be lost of a run by batches: the jobs that were sent, and every reply that was fetched."""

from __future__ import annotations

import json
import os
import shutil
import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from archehr.data.case import DataError
from archehr.program.lm.batch_service import Raw

FOLDER = "batch"  # in the run folder
JOBS, REPLIES = "jobs.jsonl", "replies.jsonl"


@dataclass
class BatchJob:
    """A job. `id` is ours and on disk before it is created, `name` the provider's, None until it is known to be there;
    `keys` are those of its requests, which the provider knows by their place: "r0", "r1", …; `stages` how many each
    stage has of them."""

    id: str
    lm: str
    keys: list[str]
    stages: dict[str, int]
    at: str
    name: str | None = None
    ended: str | None = None
    cancelled: bool = False
    cleared: bool = False  # nothing of it is at the provider any more

    def places(self) -> dict[str, str]:
        """Provider's id of a request -> its key."""
        return {f"r{n}": key for n, key in enumerate(self.keys)}


@dataclass
class Store:
    """The folder `batch` of a run folder: jobs.jsonl, what became of each job, and replies.jsonl, both appended to and
    on disk before the next step. A request is known by its key, a hash; a key that was asked for more than once (the
    samples of a prompt, an attempt after an error) has as many answers, in order.

    Errors are kept in memory alone, and requests that an ended job never got to are counted there: another call of the
    command asks for them again, as it would without batches. Raises DataError for files that are damaged.
    """

    folder: Path
    jobs: dict[str, BatchJob] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)
    _answers: dict[str, list[tuple[int, int] | Raw]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in (JOBS, REPLIES):
            _cut_torn_line(self.folder / name)
        self.jobs = read_jobs(self.folder)
        path = self.folder / REPLIES
        self._writer = _appending(path)
        self._reader = path.open("rb", buffering=0)
        self._known: set[tuple[str, str]] = set()
        for start, line in _whole_lines(path):
            reply = _parsed(line, path)
            self._answers[reply["key"]].append((start, len(line)))
            self._known.add((reply["job"], reply["request"]))

    def close(self) -> None:
        self._writer.close()
        self._reader.close()

    def open_jobs(self) -> list[BatchJob]:
        """Those that may still have replies for us."""
        return [job for job in self.jobs.values() if job.ended is None]

    def intend(self, lm: str, keys: Sequence[str], stages: Mapping[str, int]) -> BatchJob:
        """Put on disk that a job of these requests is about to be created."""
        job = BatchJob(uuid.uuid4().hex, lm, list(keys), dict(stages), datetime.now(UTC).isoformat(timespec="seconds"))
        self.jobs[job.id] = job
        append_event(self.folder, job.id, "intent", lm=lm, keys=job.keys, stages=job.stages, at=job.at)
        return job

    def created(self, job: BatchJob, name: str) -> None:
        """The provider has it, under this name."""
        job.name = name
        append_event(self.folder, job.id, "created", name=name)

    def end(self, job: BatchJob, state: str) -> None:
        """Nothing more will come of it."""
        job.ended = state
        append_event(self.folder, job.id, "ended", state=state)

    def cleared(self, job: BatchJob) -> None:
        """Nothing of it is at the provider any more."""
        job.cleared = True
        append_event(self.folder, job.id, "cleared")

    def keep(self, job: BatchJob, answers: Mapping[str, Raw]) -> None:
        """Put replies on disk, by the provider's ids of their requests; those that are there already are left so."""
        places = job.places()
        fresh = {place: raw for place, raw in answers.items() if (job.id, place) not in self._known}
        start, lines = os.fstat(self._writer.fileno()).st_size, []
        for place, raw in fresh.items():
            line = _line(job=job.id, request=place, key=places[place], raw=raw)
            lines.append(line)
            self._answers[places[place]].append((start, len(line)))
            start += len(line)
            self._known.add((job.id, place))
        _write_all(self._writer, b"".join(lines), self.folder)

    def keep_error(self, key: str, raw: Raw) -> None:
        """Remember an answer for this call of the command alone."""
        self._answers[key].append(raw)

    def answer(self, key: str, turn: int) -> Raw | None:
        """The answer to the `turn`th asking (from 0), or None where there is none yet."""
        known = self._answers.get(key, ())
        if turn >= len(known):
            return None
        place = known[turn]
        if isinstance(place, dict):
            return place
        start, length = place
        with self._lock:
            self._reader.seek(start)
            line = self._reader.read(length)
        raw: Raw = json.loads(line)["raw"]
        return raw


def append_event(folder: Path, job: str, event: str, **more: Any) -> None:
    """What became of a job, on disk."""
    with _appending(folder / JOBS) as file:
        _write_all(file, _line(job=job, event=event, **more), folder)


def read_jobs(folder: Path) -> dict[str, BatchJob]:
    """Every job of a folder by our id, in the order they were sent; none where no batch was."""
    jobs: dict[str, BatchJob] = {}
    for _, line in _whole_lines(folder / JOBS):
        event = _parsed(line, folder / JOBS)
        try:
            _apply(event, jobs)
        except (KeyError, TypeError):
            raise _damaged(folder / JOBS) from None
    return jobs


def _apply(event: dict[str, Any], jobs: dict[str, BatchJob]) -> None:
    if event["event"] == "intent":
        jobs[event["job"]] = BatchJob(event["job"], event["lm"], event["keys"], event["stages"], event["at"])
    elif event["event"] == "created":
        jobs[event["job"]].name = event["name"]
    elif event["event"] == "cancelled":
        jobs[event["job"]].cancelled = True
    elif event["event"] == "cleared":
        jobs[event["job"]].cleared = True
    else:
        jobs[event["job"]].ended = event["state"]


def count_replies(folder: Path) -> Counter[str]:
    """How many replies of each job are on disk."""
    return Counter(_parsed(line, folder / REPLIES)["job"] for _, line in _whole_lines(folder / REPLIES))


def in_words(running: Sequence[BatchJob]) -> str:
    """ "2 batch jobs (batches/1, batches/2): score 40 requests" """
    names = ", ".join(str(job.name) for job in running[:3]) + (", …" if len(running) > 3 else "")
    stages: Counter[str] = Counter()
    for job in running:
        stages.update(job.stages)
    jobs = "1 batch job" if len(running) == 1 else f"{len(running)} batch jobs"
    return f"{jobs} ({names}) of {', '.join(f'{count} {stage}' for stage, count in stages.items())} requests"


def discard(run_folder: Path) -> None:
    """Start over. Raises DataError while jobs that were not cancelled are at the provider: nobody would fetch what is
    paid for."""
    folder = run_folder / FOLDER
    if running := [job for job in read_jobs(folder).values() if job.ended is None and not job.cancelled]:
        raise DataError(
            f"--fresh: {run_folder} has {len(running)} batch jobs at the provider; fetch them by the same command "
            "without --fresh, or cancel them with --batch-cancel, or use another --out"
        )
    if folder.exists():
        shutil.rmtree(folder)


def _line(**fields: Any) -> bytes:
    return (json.dumps(fields, ensure_ascii=False) + "\n").encode()


def _parsed(line: bytes, path: Path) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict) or "job" not in event:
        raise _damaged(path)
    return event


def _damaged(path: Path) -> DataError:
    return DataError(f"{path}: damaged; use another --out")


def _whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(where it begins, line) of every whole line; a last one without an end is torn, or is being written."""
    if not path.exists():
        return
    start = 0
    with path.open("rb") as stream:
        for line in stream:
            if line.endswith(b"\n"):
                yield start, line
            start += len(line)


def _cut_torn_line(path: Path) -> None:
    """What an interrupted write has left would spoil the next line."""
    if path.exists():
        os.truncate(path, sum(len(line) for _, line in _whole_lines(path)))


def _appending(path: Path) -> FileIO:
    """Unbuffered, so that closing has nothing left to write to a full disk; for its owner alone."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0)


def _write_all(file: FileIO, data: bytes, folder: Path) -> None:
    try:
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror or error}; free space, mend permissions") from None
