"""The file of a fitted extractive program: JSON with plain arrays, no word of any note, nothing run on loading."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from archehr.data.case import DataError
from archehr.program.extractive.fitted.answerable import AnswerableModel
from archehr.program.extractive.fitted.models import AlignmentModel, EvidenceModel

KIND = "extractive"  # the field `kind` that tells such a file from one of prompts, which has none
FORMAT = 1
FEATURES = 1  # to be raised when a feature comes to mean something else; a weight fitted before is then refused
SHIPPED = ("extractive", "extractive-dev")  # fitted on both samples; on sample/dev alone, to be measured on the other


class FittedFile(BaseModel):
    """The JSON form. `sha256` is that of the models; `provenance` as in files of prompts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["extractive"] = "extractive"
    format: int = FORMAT
    features: int = FEATURES
    sha256: str
    evidence: EvidenceModel
    alignment: AlignmentModel
    answerable: AnswerableModel
    provenance: dict[str, Any] = {}

    @classmethod
    def of(
        cls,
        evidence: EvidenceModel,
        alignment: AlignmentModel,
        answerable: AnswerableModel,
        provenance: dict[str, Any] | None = None,
    ) -> Self:
        """The file of these models."""
        parts: dict[str, Any] = {"evidence": evidence, "alignment": alignment, "answerable": answerable}
        return cls(sha256=_sha256(parts), provenance=provenance or {}, **parts)

    def as_text(self) -> str:
        """The file's text, the same for the same models."""
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


def check_fitted(raw: dict[str, Any], path: Path) -> FittedFile:
    """The file in JSON that says it is of KIND. Raises DataError with the reason and the remedy."""
    for name, ours in (("format", FORMAT), ("features", FEATURES)):
        if raw.get(name) != ours:
            found = str(raw.get(name))[:12]
            raise DataError(f"{path}: extractive model of {name} {found}, this version reads {ours}; fit it again")
    try:
        file = FittedFile.model_validate(raw)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise DataError(f"{path}: not an extractive model, {where}: {fault['msg']}; fit it again") from None
    if file.sha256 != _sha256({name: getattr(file, name) for name in ("evidence", "alignment", "answerable")}):
        raise DataError(f"{path}: its models are not those it was written with (sha256 differs); fit it again")
    return file


@cache
def shipped(name: str = SHIPPED[0]) -> FittedFile:
    """The model of that name that is part of the package; read once a process."""
    path = Path(__file__).with_name(f"{name}.json")
    return check_fitted(json.loads(path.read_text(encoding="utf-8")), path)


def _sha256(models: dict[str, BaseModel]) -> str:
    told = {name: model.model_dump(mode="json") for name, model in models.items()}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
