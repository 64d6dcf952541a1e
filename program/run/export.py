"""A run's answers for the writers of archehr.data: predictions.csv, and the forms that --export names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from archehr.data.case import Case
from archehr.data.writers import EXPORTS
from archehr.data.writers.answers import Answered, AnswerPart, Made
from archehr.data.writers.table import to_frame as frame_of
from archehr.data.writers.table import write_csv
from archehr.program.pipeline import own_answer_sentences
from archehr.program.run.manifest import Manifest
from archehr.program.run.records import CaseRecord


class Finished(Protocol):
    """What `run_cases` gives."""

    @property
    def cases(self) -> Sequence[Case]: ...
    @property
    def records(self) -> Sequence[CaseRecord]: ...


def to_frame(result: Finished) -> Any:
    """The answers of a run as a pandas frame, a row for every answer sentence (archehr.data.writers.table.rows).

    Example:
        >>> import archehr
        >>> result = archehr.run_cases(archehr.read_cases("sample/test")[:1], archehr.load_program("extractive"))
        >>> list(archehr.to_frame(result).columns)
        ['case_id', 'sentence', 'text', 'cited', 'notes', 'places', 'confidence']
    """
    return frame_of(answered(result.cases, result.records))


def write_predictions(
    folder: Path, cases: Sequence[Case], records: Sequence[CaseRecord], manifest: Manifest, exports: Collection[str]
) -> list[Path]:
    """Write predictions.csv and the exports, each in one pass; their paths. Raises DataError."""
    made = Made(
        manifest.data_sha256,
        manifest.program,
        manifest.program_hash,
        str(manifest.lm["model"]) if manifest.lm else None,
        manifest.versions["archehr-dspy"],
        datetime.fromisoformat(manifest.sessions[-1].started),
    )
    written = [write_csv(folder, answered(cases, records))]
    return written + [EXPORTS[name](folder, answered(cases, records), made) for name in exports]


def answered(cases: Iterable[Case], records: Iterable[CaseRecord]) -> Iterator[Answered]:
    """The program's own answers, each sentence with the note sentences it cites. Both are in the same order."""
    return (_answered(case, record) for case, record in zip(cases, records, strict=True))


def _answered(case: Case, record: CaseRecord) -> Answered:
    by_id = {s.id: s for s in case.sentences}
    scores = {s.id: s.score for s in record.scores or ()}
    links = {link.answer_id: link.evidence_ids for link in record.links or ()}
    parts = []
    for sentence in own_answer_sentences(record.answer_sentences or []):
        cited = [by_id[i] for i in links.get(sentence.id, ()) if i in by_id]
        known = [scores[s.id] for s in cited if s.id in scores]
        confidence = round(sum(known) / len(known) / 5, 3) if known else None
        parts.append(AnswerPart(sentence.text, tuple(cited), confidence))
    return Answered(case, tuple(parts))
