"""Order: a job in plain JSON, from which a worker in another process makes the same job again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import dspy
from pydantic import BaseModel, ConfigDict

from archehr.data.case import Case, DataError
from archehr.data.case_file import adapter
from archehr.program.extractive.fitted.file import FittedFile
from archehr.program.extractive_program import extractive_program
from archehr.program.lm import Budget, make_lm
from archehr.program.lm.metered import MeteredEngine
from archehr.program.pipeline import GroundedQA, QuestionSource
from archehr.program.prompts.program_file import ProgramFile, program_hash, stored_form, to_program
from archehr.program.run.job import Job
from archehr.program.settings import PipelineSettings
from archehr.program.stage_lms import lm_identity, stage_lms, with_lms
from archehr.program.stages.registry import held
from archehr.program.types import StageName


class OrderedLM(BaseModel):
    """An LM as make_lm makes it again: its settings without the key, what its answers depend on, which of the LMs'
    budgets it shares, and the stages that ask it ("" where the whole program does)."""

    model_config = ConfigDict(extra="forbid")

    settings: dict[str, Any]
    identity: dict[str, Any]
    budget: int | None
    stages: list[StageName]


class Order(BaseModel):
    """What a worker needs to answer cases as the job does: the program as its file has it, and how it is asked."""

    model_config = ConfigDict(extra="forbid")

    program: ProgramFile | FittedFile
    settings: PipelineSettings
    question: QuestionSource
    stages: tuple[StageName, ...]
    program_hash: str
    lms: list[OrderedLM] = []

    @classmethod
    def of(cls, job: Job) -> Self | None:
        """The order for a job, or None where the program made from it would not be the job's own: one whose stages
        are another's code. Raises DataError for an LM that make_lm did not make."""
        file = stored_form(job.program)
        if file is None:
            return None
        order = cls(
            program=file,
            settings=job.program.settings,
            question=job.question,
            stages=job.stages,
            program_hash=program_hash(job.program),
            lms=_ordered(job),
        )
        return order if _kinds(order.made()) == _kinds(job.program) else None

    def made(self) -> GroundedQA:
        """The program. Raises ValueError where it is not the one that was ordered: another version is installed."""
        if isinstance(self.program, FittedFile):
            program = extractive_program(None, self.program)
            program.use_settings(self.settings)
        else:
            program = to_program(self.program, self.settings)
        if program_hash(program) != self.program_hash:
            raise ValueError("this worker makes another program of the same file; install the same archehr everywhere")
        return program

    def job(self, keys: Mapping[str, str] | None = None, budgets: Sequence[Budget] = ()) -> Job:
        """The job, with its LMs. `keys` has the key of each LM by its first stage, where it is not to come from the
        environment. Raises ValueError as `made`, and LMConfigError for an LM that cannot be made here."""
        lms: dict[StageName, dspy.BaseLM] = {}
        for ordered in self.lms:
            lm = make_lm(
                **ordered.settings,
                api_key=(keys or {}).get(ordered.stages[0]),
                budget=None if ordered.budget is None else budgets[ordered.budget],
            )
            if (here := lm_identity(lm)) != ordered.identity:
                differs = ", ".join(k for k in ordered.identity if (here or {}).get(k) != ordered.identity[k])
                raise ValueError(f"{lm.model} is another here ({differs}); is the environment the same everywhere?")
            lms |= dict.fromkeys(ordered.stages, lm)
        program, lm = with_lms(self.made(), lms)
        return Job(program, lm, self.question, self.stages)


def case_as_json(case: Case) -> str:
    """One line for `case_from_json`, without the gold: no program may see it."""
    return adapter(Case).dump_json(replace(case, gold=None)).decode()


def case_from_json(line: str) -> Case:
    """The case of a line."""
    return adapter(Case).validate_json(line)


def keys_of(job: Job) -> dict[str, str]:
    """The keys that the LMs of a job were given, for `Order.job`; those of the environment are not among them."""
    given = {stages[0]: lm.engine.asked.api_key for lm, stages in _asked(job)}
    return {stage: key for stage, key in given.items() if key is not None}


def budgets_of(job: Job) -> list[Budget]:
    """The budgets of the LMs of a job, each once, as `OrderedLM.budget` counts them."""
    kept = [lm.engine.budget for lm, _ in _asked(job) if lm.engine.budget is not None]
    return list({id(budget): budget for budget in kept}.values())


def _ordered(job: Job) -> list[OrderedLM]:
    places = {id(budget): place for place, budget in enumerate(budgets_of(job))}
    return [
        OrderedLM(
            settings=lm.engine.dump_state(),
            identity=lm_identity(lm) or {},
            budget=places.get(id(lm.engine.budget)),
            stages=stages,
        )
        for lm, stages in _asked(job)
    ]


def _asked(job: Job) -> list[tuple[Any, list[StageName]]]:
    """Each LM that is asked, and the stages that ask it, the program's own LM at ""."""
    asked: dict[int, tuple[dspy.BaseLM, list[StageName]]] = {}
    for stage, lm in stage_lms(job.program, job.lm).items():
        engine = getattr(lm, "engine", None)
        if lm is None or not isinstance(engine, MeteredEngine) or engine.asked is None:
            raise DataError(f"the LM of {stage} is not one of make_lm, which alone can be made again elsewhere")
        stages = asked.setdefault(id(lm), (lm, []))[1]
        if (place := "" if lm is job.lm else stage) not in stages:
            stages.append(place)
    return list(asked.values())


def _kinds(program: GroundedQA) -> dict[str, Any]:
    kinds: dict[str, Any] = {s.name: type(getattr(program, s.name, None)) for s in held(program.settings)}
    return {"": type(program), **kinds}
