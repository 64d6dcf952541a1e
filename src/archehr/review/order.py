"""The order of the cases: least confident first, with the reasons in words; and the random ones shown blind."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from archehr.data.case import DataError
from archehr.program.run.records import CaseRecord
from archehr.review.subject import Subject


@dataclass(frozen=True)
class Doubt:
    """Why a case may need a reviewer more than others do."""

    near_cut: int = 0
    unsupported: int = 0
    notices: int = 0
    evidence: int = 1

    @property
    def size(self) -> float:
        """A notice and an unsupported sentence count one each; sentences near the cut count by how many there are
        for one that was chosen, since long notes have more of them."""
        return self.notices + self.unsupported + self.near_cut / max(self.evidence, 1)

    @property
    def reasons(self) -> list[str]:
        counted = [
            (self.notices, "notice", "notices"),
            (self.unsupported, "unsupported answer sentence", "unsupported answer sentences"),
            (self.near_cut, "note sentence near the cut", "note sentences near the cut"),
        ]
        return [f"{n} {one if n == 1 else many}" for n, one, many in counted if n]


def doubt(record: CaseRecord | None, cut: int) -> Doubt:
    """How unsure the program was of a case. Near the cut is the score at it and the one below it: the sentences that
    would change sides first."""
    if record is None:
        return Doubt()
    links = record.links if record.links is not None else record.given_links
    return Doubt(
        near_cut=sum(s.score in (cut, cut - 1) for s in record.scores or ()),
        unsupported=sum(not link.evidence_ids for link in links or ()),
        notices=len(record.notices),
        evidence=len(record.evidence or ()),
    )


def ordered(subject: Subject, order: str) -> list[str]:
    """Case ids, "unsure" first or as "given". Raises DataError for another order."""
    if order not in ("unsure", "given"):
        raise DataError(f"--order {order}: it is unsure or given")
    ids = list(subject.cases)
    if order == "unsure":
        ids.sort(key=lambda i: -doubt(subject.records.get(i), subject.cut).size)
    return ids


def drawn_blind(ids: Sequence[str], share: float, reviewer: str) -> set[str]:
    """A random `share` of the cases: the same for the same reviewer and data, others for another reviewer."""
    return set(random.Random(f"blind {reviewer}").sample(list(ids), round(share * len(ids))))
