"""One finished run as it is compared: its answers, its run.json and its prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from archehr.program.extractive.fitted.file import FittedFile
from archehr.program.prompts.program_file import ProgramFile
from archehr.program.prompts.provenance import Provenance
from archehr.program.run.manifest import Manifest
from archehr.program.run.records import CaseRecord
from archehr.program.stage_lms import in_words


@dataclass(frozen=True)
class ProgramRun:
    """A finished run of one program with one LM: its run.json, its answers by case id, and its prompts (`file`; None
    where it has none or, as `unknown` then says, where they cannot be told) or its fitted models."""

    label: str
    folder: Path
    manifest: Manifest
    records: Mapping[str, CaseRecord]
    file: ProgramFile | None = None
    unknown: str = ""
    fitted: FittedFile | None = None

    @property
    def provenance(self) -> Provenance:
        if self.fitted is not None:
            return Provenance.model_validate(self.fitted.provenance)
        return self.file.provenance if self.file else Provenance()

    @property
    def program(self) -> str:
        return self.manifest.program

    @property
    def lm(self) -> str | None:
        return in_words(self.manifest.lm) if self.manifest.lm else None
