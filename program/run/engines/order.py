"""Order: a job in plain JSON, from which a worker in another process makes the same job again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter

from archehr.data.case import Case
from archehr.program.extractive.fitted.file import FittedFile
from archehr.program.extractive_program import extractive_program
from archehr.program.pipeline import GroundedQA, QuestionSource
from archehr.program.prompts.program_file import ProgramFile, program_hash, stored_form, to_program
from archehr.program.run.job import Job
from archehr.program.settings import PipelineSettings
from archehr.program.stages.registry import held
from archehr.program.types import StageName

_CASE = TypeAdapter(Case)


class Order(BaseModel):
    """What a worker needs to answer cases as the job does: the program as its file has it, and how it is asked."""

    model_config = ConfigDict(extra="forbid")

    program: ProgramFile | FittedFile
    settings: PipelineSettings
    question: QuestionSource
    stages: tuple[StageName, ...]
    program_hash: str

    @classmethod
    def of(cls, job: Job) -> Self | None:
        """The order for a job, or None where the program made from it would not be the job's own: one whose stages
        are another's code."""
        file = stored_form(job.program)
        if file is None:
            return None
        order = cls(
            program=file,
            settings=job.program.settings,
            question=job.question,
            stages=job.stages,
            program_hash=program_hash(job.program),
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

    def job(self) -> Job:
        """The job, without an LM."""
        return Job(self.made(), None, self.question, self.stages)


def case_as_json(case: Case) -> str:
    """One line for `case_from_json`, without the gold: no program may see it."""
    return _CASE.dump_json(replace(case, gold=None)).decode()


def case_from_json(line: str) -> Case:
    """The case of a line."""
    return _CASE.validate_json(line)


def _kinds(program: GroundedQA) -> dict[str, Any]:
    kinds: dict[str, Any] = {s.name: type(getattr(program, s.name, None)) for s in held(program.settings)}
    return {"": type(program), **kinds}
