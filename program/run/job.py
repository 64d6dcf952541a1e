"""Job: one program, LM and way of asking, and how it answers one case; archehr.program.run.engines answers many."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy

from archehr.data.case import Case, DataError
from archehr.program.lm.ledger import Ledger
from archehr.program.lm.wire.errors import Outages
from archehr.program.pipeline import GroundedQA, QuestionSource
from archehr.program.run.records import CaseRecord
from archehr.program.stage_lms import stage_lms, voting_twice
from archehr.program.stages.registry import possible_stages
from archehr.program.types import StageName


class RunStopped(RuntimeError):
    """The LM will not answer, which is the `__cause__`. `done` of `total` cases are on disk, and the same call answers
    the others; `begun` says whether the LM had ever answered in this call."""

    def __init__(self, why: BaseException, done: int, total: int, begun: bool) -> None:
        super().__init__(str(why))
        self.done, self.total, self.begun = done, total, begun


@dataclass(frozen=True)
class Job:
    """What answers a case. `lm` is asked by the stages that have no LM of their own. `ledger` has what each case took;
    None where no LM is counted."""

    program: GroundedQA
    lm: dspy.BaseLM | None
    question: QuestionSource
    stages: tuple[StageName, ...]
    ledger: Ledger | None = None
    outages: Outages = field(default_factory=Outages)

    @property
    def lms(self) -> list[dspy.BaseLM]:
        """The LMs that are asked, each once."""
        asked = stage_lms(self.program, self.lm).values()
        return list({id(lm): lm for lm in asked if lm is not None}.values())

    def check(self, cases: Sequence[Case]) -> None:
        """Raises DataError, before the first call, for what cannot work."""
        if not cases:
            raise DataError("no case to answer; the data is empty")
        without = [stage for stage, lm in stage_lms(self.program, self.lm).items() if lm is None]
        if without and not self.lms:
            raise DataError("this program asks an LM; name one with --lm, or run --program extractive")
        if without:
            raise DataError(f"no LM for {', '.join(without)}; name one for the stages without their own: --lm NAME")
        if (same := voting_twice(self.program, self.lm)) is not None:
            first, second = same
            raise DataError(
                f"views {first} and {second} ask one LM the same: give {second} its own, --lm {second}=NAME, or other "
                f"demos; more replies to one prompt are --views {first}*2"
            )
        if self.question == "given":
            for case in cases:
                if case.sentences and not case.clinician_question:
                    raise DataError(f"case {case.id} has no clinician_question; run with --question own")

    def skipped(self, cases: Sequence[Case]) -> list[str]:
        """A line on the stages that some cases have no input for."""
        without = sum(not set(self.stages) <= possible_stages(case) for case in cases)
        if not without:
            return []
        some = f" for {without} of {len(cases)} cases" if without < len(cases) else ""
        which = "these have no" if some else "no case has"
        return [f"stages 2-4 (score, generate, align) did not run{some}: {which} note sentences in the data"]

    def answer(self, case: Case) -> CaseRecord:
        """The record of one case."""
        begun = time.monotonic()
        with dspy.context(lm=self.lm, disable_history=True, max_trace_size=0):
            prediction = self.program(case=case, question=self.question, stages=self.stages)
        usage: dict[str, Any] = {}
        if self.ledger is not None:
            usage = self.ledger.of_case(case.id)
            self.ledger.forget_case(case.id)
        return CaseRecord.of(case, prediction, usage, time.monotonic() - begun, self.outages.of_case(case.id))

    def was_answered(self) -> bool:
        """Whether any call gave a usable reply."""
        used = self.ledger.totals() if self.ledger is not None else {}
        return bool(used.get("cache_hits") or (used.get("calls") or 0) > (used.get("failed") or 0))
