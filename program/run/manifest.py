"""run.json: what was run and what it took, as models that read the files of earlier versions too."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Self

import dspy
from pydantic import BaseModel, ConfigDict

from archehr.data.dataset import Dataset
from archehr.program.lm.ledger import Count, Ledger
from archehr.program.pipeline import GroundedQA, QuestionSource
from archehr.program.prompts.program_file import program_hash
from archehr.program.prompts.provenance import provenance_of
from archehr.program.run.records import Tally, fitted_cases
from archehr.program.settings import PipelineSettings
from archehr.program.stage_lms import lms_identity
from archehr.program.stages.registry import STAGES
from archehr.program.types import StageName

PACKAGES = ("archehr-dspy", "dspy", "google-genai", "scikit-learn")
# What decides whether finished cases count on resume; where there is a hash, names and paths do not.
_SAME = {"data_sha256": "data", "program_hash": "program"}
_SAME |= {name: name for name in ("lm", "question", "stages", "settings")}


class Identity(BaseModel):
    """What a run is: two runs with the same identity give the same answers."""

    model_config = ConfigDict(extra="ignore")

    data: str = ""
    data_sha256: str
    program: str
    program_hash: str
    in_sample: bool = False
    lm: dict[str, Any] | None = None
    question: QuestionSource = "own"
    stages: list[StageName]
    settings: PipelineSettings
    versions: dict[str, str] = {}

    @classmethod
    def of(
        cls,
        program: GroundedQA,
        lm: dspy.BaseLM | None,
        data: Dataset,
        question: QuestionSource,
        stages: Collection[StageName],
    ) -> Self:
        """The identity of a run that is about to be."""
        return cls(
            data=data.name,
            data_sha256=data.sha256,
            program=getattr(program, "name", "GroundedQA"),
            program_hash=program_hash(program),
            in_sample=bool(fitted_cases(provenance_of(program), data.chosen_from or data.cases)),
            lm=lms_identity(program, lm),
            question=question,
            stages=[s for s in STAGES if s in stages],
            settings=program.settings,
            versions={"python": platform.python_version(), **{p: importlib.metadata.version(p) for p in PACKAGES}},
        )

    def differs_from(self, other: Identity) -> list[str]:
        """What is not the same, in words: "data", "lm (seed, endpoint)", "settings (cut)"."""
        found = []
        for name, said in _SAME.items():
            ours, theirs = _plain(getattr(self, name)), _plain(getattr(other, name))
            if ours != theirs:
                found.append(said + _which(ours, theirs))
        return found


class Session(BaseModel):
    """One call of `archehr run`: when, how long in seconds and, with an LM, what it took and what was told of it.
    `by_lm` is filled where there is more than one."""

    started: str
    seconds: float
    usage: Count | None = None
    by_stage: dict[str, Count] = {}
    by_lm: dict[str, Count] = {}
    models: dict[str, int] = {}
    told: list[str] = []

    @classmethod
    def of(cls, started: datetime, ledger: Ledger | None) -> Self:
        """The session so far."""
        seconds = round((datetime.now(UTC) - started).total_seconds(), 1)
        took: dict[str, Any] = {"started": started.isoformat(timespec="seconds"), "seconds": seconds}
        if ledger is not None:
            by_stage = {stage or "other": used for stage, used in ledger.by_stage().items()}
            took |= {"usage": ledger.totals(), "by_stage": by_stage, "models": ledger.models(), "told": ledger.notes()}
            if len(by_lm := ledger.by_lm()) > 1:
                took["by_lm"] = by_lm
        return cls.model_validate(took)


class Manifest(Identity):
    """The identity, the finished cases in sums, and every session. `unreached` are the cases that a fallback answered
    in part or whole because the LM was not reached; a later run answers them again."""

    cases_done: int = 0
    unreached: list[str] = []
    subtask_4_links: str = "none"
    notices: dict[str, int] = {}
    usage: Count | None = None
    sessions: list[Session] = []

    @classmethod
    def after(cls, identity: Identity, done: Tally, sessions: Sequence[Session]) -> Self:
        """The manifest of these finished cases."""
        used = [s.usage for s in sessions if s.usage is not None]
        total = Count()
        for usage in used:
            total.add(usage)
        return cls(
            **dict(identity),
            cases_done=done.cases,
            unreached=list(done.unreached),
            subtask_4_links=done.links,
            notices=done.notices,
            usage=total if used else None,
            sessions=list(sessions),
        )

    def as_json(self) -> dict[str, Any]:
        """What run.json holds."""
        return self.model_dump(mode="json")


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _which(ours: Any, theirs: Any) -> str:
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return ""
    return f" ({', '.join(k for k in {**theirs, **ours} if ours.get(k) != theirs.get(k))})"
