"""The finished cases of every journal of a subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from archehr.data.case import Case, DataError
from archehr.data.dataset import case_sha256
from archehr.review.history import CaseReview
from archehr.review.journal import ADJUDICATED, FOLDER, journal_path, read_journal, reviewers
from archehr.review.subject import Subject

Tell = Callable[[str], None]


def read_finished(subject: Subject, *, tell: Tell) -> dict[str, dict[str, CaseReview]]:
    """reviewer -> case id -> finished review, for the cases of the subject, in their order. Raises DataError."""
    return {name: _finished(subject, journal_path(subject.folder, name), tell) for name in reviewers(subject.folder)}


def read_adjudicated(subject: Subject, *, tell: Tell) -> dict[str, CaseReview]:
    """case id -> what was decided where reviewers differ. Raises DataError."""
    path = subject.folder / FOLDER / f"{ADJUDICATED}.jsonl"
    return _finished(subject, path, tell) if path.exists() else {}


def check_same_text(reviews: Mapping[str, CaseReview], cases: Mapping[str, Case], journal: Path) -> None:
    """Raises DataError where a case was reviewed on another text than it has now."""
    for case_id, review in reviews.items():
        if case_id in cases and review.opened.text != case_sha256([cases[case_id]])[0]:
            raise DataError(
                f"{journal}: case {case_id} was reviewed with another text than it has now; "
                "take the data it was reviewed on, or move the journal away"
            )


def _finished(subject: Subject, path: Path, tell: Tell) -> dict[str, CaseReview]:
    notices: list[str] = []
    reviews = read_journal(path, notices)
    for line in notices:
        tell(line)
    check_same_text(reviews, subject.cases, path)
    return {i: reviews[i] for i in subject.cases if i in reviews and reviews[i].labels.finished}
