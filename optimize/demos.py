"""Demos: what a stage may be shown, made from gold or from a teacher's answers, and which of them fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from archehr.data.case import Case, DataError
from archehr.data.dataset import case_sha256
from archehr.program.stages.limits import estimate_tokens
from archehr.program.stages.registry import PROMPTED
from archehr.program.types import StageName

Kind = Literal["labelled", "bootstrapped"]


@dataclass(frozen=True, eq=False)
class Demo:
    """One demo: the case it shows, whether a person or an LM answered it, the signature's fields, and the
    case's own hash, since ids repeat across data sets."""

    case_id: str
    kind: Kind
    fields: Mapping[str, Any]
    case_sha256: str

    def shown(self) -> dict[str, Any]:
        """The demo as a program holds it."""
        return {**self.fields, "case_sha256": self.case_sha256}

    @property
    def tokens(self) -> int:
        """Its size in estimated tokens."""
        return estimate_tokens(json.dumps(self.fields, ensure_ascii=False))


def labelled_demos(stage: StageName, cases: Sequence[Case]) -> dict[str, Demo]:
    """case id -> gold demo, for the cases that have the stage's gold."""
    labels = PROMPTED[stage].taught()
    return {c.id: make_demo(stage, c, "labelled", labels.demo(c)) for c in cases if labels.present(c)}


def make_demo(stage: StageName, case: Case, kind: Kind, values: Mapping[str, Any]) -> Demo:
    """A demo that will be shown whole. Raises DataError where a field is missing: DSPy would drop such a demo, or
    show it with "not supplied", without a word."""
    wanted = list(PROMPTED[stage].signature.fields)
    if missing := [name for name in wanted if values.get(name) is None]:
        raise DataError(f"case {case.id}: its {stage} demo lacks {', '.join(missing)}; leave the case out")
    return Demo(case.id, kind, {name: _plain(values[name]) for name in wanted}, case_sha256([case])[0])


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value.model_dump() if hasattr(value, "model_dump") else value


def shuffled(ids: Sequence[str], seed: int, candidate: int) -> list[str]:
    """An order of case ids drawn by seed, in which taking a case out moves no other: the candidates of two folds
    differ only in demos that one of them may not use, and share all other replies in the cache."""
    return sorted(ids, key=lambda i: hashlib.sha256(f"{seed}/{candidate}/{i}".encode()).digest())


def fitting(order: Sequence[Demo], most: int, token_budget: int) -> list[Demo]:
    """The first demos of `order` that fit: at most `most`, together at most `token_budget` estimated tokens."""
    chosen: list[Demo] = []
    used = 0
    for demo in order:
        if len(chosen) < most and used + demo.tokens <= token_budget:
            chosen.append(demo)
            used += demo.tokens
    return chosen


def covering(stage: StageName, demos: Mapping[str, Demo], most: int, token_budget: int, seed: int) -> list[Demo]:
    """Gold demos chosen for what they show, as the stage arranges them, without any LM call."""
    order = [demos[i] for i in shuffled(list(demos), seed, 0)]
    known = {id(d.fields): d for d in order}
    arranged = PROMPTED[stage].taught().arrange([d.fields for d in order], most)
    return fitting([known[id(fields)] for fields in arranged], most, token_budget)
