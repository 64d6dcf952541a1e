"""Hashes that tell data and cases again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

from archehr.data.case import Case


class DataHash:
    """sha256 of what the program may see of cases (so not of the gold), taken case by case."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, case: Case) -> None:
        """Take the next case in."""
        self._digest.update(json.dumps(_seen(case), sort_keys=True, ensure_ascii=False).encode())

    def hexdigest(self) -> str:
        """The hash of the cases so far."""
        return self._digest.hexdigest()


def case_hash(case: Case) -> str:
    """12 digits that tell a case again in other data: of its message and note sentences alone, since its id may change
    there, and a reviewer may correct its question and its answer."""
    content = [case.narrative, [[s.id, s.text] for s in case.sentences]]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:12]


def case_sha256(cases: Iterable[Case]) -> list[str]:
    """`case_hash` of each case."""
    return [case_hash(case) for case in cases]


_UNSEEN = ("gold", "documents", "patient")


def _seen(case: Case) -> dict[str, Any]:
    """A case as it is hashed. Where a sentence and a note stand in the source is left out: it changes no prompt."""
    seen = {f.name: getattr(case, f.name) for f in fields(case) if f.name not in _UNSEEN}
    seen["sentences"] = [{"id": s.id, "text": s.text, "paragraph_id": s.paragraph_id} for s in case.sentences]
    seen["answer_sentences"] = [asdict(s) for s in case.answer_sentences]
    return seen
