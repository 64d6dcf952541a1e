"""One reviewer at work: answers the page from the journal's state, and puts every action into the journal first."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from archehr.data.dataset import case_sha256
from archehr.data.submission import WORD_LIMITS
from archehr.review.actions import Refused
from archehr.review.history import CaseReview, Open, Pause, Step
from archehr.review.journal import Entry, Journal
from archehr.review.labels import Labels, doubts, faults
from archehr.review.order import doubt
from archehr.review.subject import Subject

IN_TRANSIT = 1.0  # seconds that actions may overtake those they were made after
LONGEST_STAY = 3600.0  # seconds that one action may book: a page left open over night is not work


class Stale(Exception):
    """An action made on an older version of the case: another window was faster."""


class Done(NamedTuple):
    """The state after the actions that were taken, and why the next one was not."""

    state: dict[str, Any]
    refused: str | None


@dataclass
class Session:
    """The cases of `order` under review by one person. Safe to use from several threads.

    `readings` holds, where this adjudicates, what each reviewer said of a case, and `agreed` what they start from.
    """

    subject: Subject
    journal: Journal
    reviewer: str
    order: Sequence[str]
    blind: Collection[str] = ()
    readings: Mapping[str, Mapping[str, Labels]] = field(default_factory=dict)
    agreed: Mapping[str, Labels] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def overview(self) -> dict[str, Any]:
        """The list of cases, and what the page needs to know once."""
        return {
            "reviewer": self.reviewer,
            "subject": self.subject.name,
            "journal": str(self.journal.path),
            "adjudicate": bool(self.readings),
            "limits": {"question": WORD_LIMITS[1], "answer": WORD_LIMITS[3]},
            "cases": [{"id": i, "status": self._status(i)} for i in self.order],
        }

    def view(self, case_id: str) -> dict[str, Any]:
        """Everything the page shows of one case. Raises KeyError for a case that is not under review."""
        if case_id not in self.order:
            raise KeyError(case_id)
        case, review = self.subject.cases[case_id], self._review(case_id)
        return {
            "id": case.id,
            "specialty": case.specialty,
            "narrative": case.narrative,
            "data_question": case.clinician_question,
            "sentences": [{"id": s.id, "text": s.text, "paragraph": s.paragraph_id} for s in case.sentences],
            "blind": review.opened.blind,
            "program": None if review.hidden else self._program(case_id, review.opened.said),
            "readings": {name: its.model_dump(mode="json") for name, its in self.readings.get(case_id, {}).items()},
            "state": self._state(case_id, review),
        }

    def act(self, case_id: str, version: int, steps: Sequence[Step], seconds: float) -> Done:
        """Put actions made on `version` into the journal, up to the first that does not fit.

        Raises Stale where another window was faster, DataError where the disk does not take them, KeyError.
        """
        if case_id not in self.order:
            raise KeyError(case_id)
        with self._changed:
            # A page that is closed sends its last actions without waiting for those under way.
            self._changed.wait_for(lambda: self._review(case_id).version >= version, timeout=IN_TRANSIT)
            review, why = self._review(case_id), None
            if version != review.version and any(not isinstance(step, Pause) for step in steps):
                raise Stale
            entries = [] if case_id in self.journal.reviews else [self._entry(case_id, review.opened)]
            new = review
            for step in steps:
                try:
                    new = new.after(step)
                except Refused as refused:
                    why = str(refused)
                    break
                entries.append(self._entry(case_id, step, min(seconds, LONGEST_STAY)))
                seconds = 0.0
            if new is not review:
                self.journal.append(entries)
                new.seconds = review.seconds + sum(e.seconds for e in entries)
                self.journal.reviews[case_id] = new
                self._changed.notify_all()
            return Done(self._state(case_id, new), why)

    def _entry(self, case_id: str, step: Step, seconds: float = 0.0) -> Entry:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return Entry(at=now, case=case_id, seconds=round(seconds, 1), step=step)

    def _review(self, case_id: str) -> CaseReview:
        """The review in the journal, or a new one that is in it with its first action."""
        if (review := self.journal.reviews.get(case_id)) is not None:
            return review
        blind = case_id in self.blind
        start = self.agreed[case_id] if self.readings else self.subject.start(case_id, blind=blind)
        text = case_sha256([self.subject.cases[case_id]])[0]
        return CaseReview(Open(text=text, start=start, said=self.subject.program_labels(case_id), blind=blind))

    def _program(self, case_id: str, labels: Labels | None) -> dict[str, Any] | None:
        record = self.subject.records.get(case_id)
        if record is None or labels is None:
            return None
        return {
            "question": record.question,
            "said": labels.model_dump(mode="json"),
            "scores": {s.id: s.score for s in record.scores or ()},
            "notices": record.notices,
            "reasons": doubt(record, self.subject.cut).reasons,
        }

    def _state(self, case_id: str, review: CaseReview) -> dict[str, Any]:
        labels = review.labels
        return {
            **labels.model_dump(mode="json"),
            "version": review.version,
            "hidden": review.hidden,
            "can_undo": review.can_undo,
            "can_redo": review.can_redo,
            "seconds": round(review.seconds, 1),
            "faults": faults(labels),
            "doubts": doubts(labels),
            "status": self._status(case_id, review),
        }

    def _status(self, case_id: str, review: CaseReview | None = None) -> str:
        review = review or self.journal.reviews.get(case_id)
        if review is None or review.version == 0:  # looked at, perhaps, but not changed
            return "new"
        return "finished" if review.labels.finished else "begun"
