"""Folds, and answering cases with a program that never shows a case its own demo."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy

from archehr.data.case import Case, DataError
from archehr.optimize.demos import Demo
from archehr.optimize.teaching import without_asking_again
from archehr.program.batch import in_threads
from archehr.program.lm.ledger import at
from archehr.program.lm.wire.errors import LMGone
from archehr.program.pipeline import GroundedQA, QuestionSource
from archehr.program.run.records import CaseRecord
from archehr.program.run.run import run_cases
from archehr.program.settings import PipelineSettings
from archehr.program.stage_lms import LMs, each, fitting, lm_for
from archehr.program.stages.demos import made_from
from archehr.program.stages.registry import PROMPTED, held, prompted
from archehr.program.stages.stage import predictor
from archehr.program.types import StageName


@dataclass(frozen=True)
class StagePrompt:
    """What an optimiser found for one stage; `instructions` is None where the signature's own stay."""

    demos: Sequence[Demo] = ()
    instructions: str | None = None


Prompts = Mapping[StageName, StagePrompt]


def split_folds(cases: Sequence[Case], folds: str) -> list[list[Case]]:
    """Case i goes to fold i modulo K; "loo" is as many folds as cases. Raises DataError."""
    count = len(cases) if folds == "loo" else int(folds) if folds.isdigit() else 0
    if len(cases) < 2:
        raise DataError(f"--folds {folds}: folds need at least 2 labelled cases, and there is {len(cases) or 'none'}")
    if not 2 <= count <= len(cases):
        raise DataError(f"--folds {folds}: give loo, or a number from 2 to the {len(cases)} labelled cases")
    return [list(cases[k::count]) for k in range(count)]


def assemble(base: GroundedQA, prompts: Prompts, settings: PipelineSettings) -> GroundedQA:
    """`base` with the prompts found; a stage without one keeps its own instructions and demos."""
    program = GroundedQA(settings, base.fitted)
    for stage in prompted(program):
        new = predictor(getattr(program, stage))
        if getattr(base, stage, None) is not None:  # else a view that only the new program uses
            old = predictor(getattr(base, stage))
            new.signature, new.demos = old.signature, old.demos
        if stage in prompts:
            new.demos = [d.shown() for d in prompts[stage].demos]
            if prompts[stage].instructions is not None:
                new.signature = new.signature.with_instructions(prompts[stage].instructions)
    return program


class HeldOut(GroundedQA):
    """A program that answers each case without the demos made from that case, and where nothing reaches the cut
    takes the first three sentences: the LM is to be measured, not its twin."""

    def __init__(self, program: GroundedQA) -> None:
        super().__init__(
            program.settings.model_copy(update={"on_failure": "first_three"}),
            program.fitted,
            **{stage.name: getattr(program, stage.name, None) for stage in held(program.settings)},
        )

    def forward(
        self, case: Case, question: QuestionSource = "own", stages: Collection[StageName] | None = None
    ) -> dspy.Prediction:
        return without_demos_of(self, case)(case=case, question=question, stages=stages)


def without_demos_of(program: GroundedQA, case: Case) -> GroundedQA:
    """A copy of the program that has no demo made from `case`."""
    blind = GroundedQA(program.settings, program.fitted)
    for stage in prompted(program):
        old, new = predictor(getattr(program, stage)), predictor(getattr(blind, stage))
        new.signature, new.lm = old.signature, old.lm
        new.demos = [d for d in old.demos if not made_from(d, case)]
    return blind


@dataclass
class Answering:
    """How cases are answered: the LM, or LMs by stage; the number of cases at once; and where progress is told.

    `cases_with_failures` of `cases_answered` hold an answer that the extractive fallback gave.
    """

    lm: LMs
    workers: int = 8
    tell: Callable[[str], None] = field(default=lambda line: None)
    cases_answered: int = field(default=0, init=False)
    cases_with_failures: int = field(default=0, init=False)
    expected_calls: int = field(default=0, init=False)  # of the whole optimisation, at most; 0 while unknown

    def lm_of(self, stage: StageName) -> dspy.LM:
        """The LM that a stage asks."""
        return lm_for(self.lm, stage)

    def warm(self, program: GroundedQA, cases: Sequence[Case], stages: Collection[StageName]) -> None:
        """Ask for every stage's reply on gold inputs, so that a compilation, which is serial, finds it cached."""
        if not all(lm.cache for lm in each(self.lm)):
            return
        modules = {stage: without_asking_again(getattr(program, stage)) for stage in stages}

        def ask(case: Case) -> None:
            for stage, module in modules.items():
                if PROMPTED[stage].has_gold(case):
                    quiet = dspy.context(lm=self.lm_of(stage), disable_history=True, max_trace_size=0)
                    with quiet, at(case_id=case.id, stage=stage):
                        module(**PROMPTED[stage].taught().arguments(case))

        for _ in in_threads(cases, ask, self.workers):
            pass

    def held_out(self, program: GroundedQA, cases: Sequence[Case], stages: Collection[StageName]) -> list[CaseRecord]:
        """One record per case, each answered without its own demos. The clinician's answer sentences are aligned,
        not the program's own: that is what subtask 4 scores, and it saves a call per case."""
        chain, align = set(stages) - {"align"}, set(stages) & {"align"}
        lms = fitting(self.lm, program)
        runs = [
            run_cases(cases, HeldOut(program), lms, stages=part, workers=self.workers).records
            for part in (chain, align)
            if part
        ]
        records = [_merged(parts) for parts in zip(*runs, strict=True)]
        self._count(records)
        return records

    def _count(self, records: Sequence[CaseRecord]) -> None:
        failed = [{n["stage"] for n in r.notices if n["kind"] == "lm_failed"} for r in records]
        self.cases_answered += len(records)
        self.cases_with_failures += sum(map(bool, failed))
        if failed and (never := set.intersection(*failed)):
            reasons = sorted({n["detail"] for r in records for n in r.notices if n["kind"] == "lm_failed"})
            if all(r.unreached for r in records):
                raise LMGone(f"no reply in {len(records)} cases in a row: {reasons[0]}")
            raise DataError(
                f"the LM failed in stage {', '.join(sorted(never))} on all of {len(records)} cases ({reasons[0]}): "
                "the extractive fallback would be measured in its place; check --lm and its options"
            )


def _merged(parts: Sequence[CaseRecord]) -> CaseRecord:
    values: dict[str, Any] = {}
    for part in parts:
        values |= {name: value for name, value in part if value is not None}
    return CaseRecord(**values | {"notices": [n for p in parts for n in p.notices]})
