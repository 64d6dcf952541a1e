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
PARTS = ("evidence", "alignment", "answerable")
FORMAT = 1
FEATURES = 1  # to be raised when a feature comes to mean something else; a weight fitted before is then refused
# Fitted on both samples; and on one of them alone, to be measured on the other.
SHIPPED = ("extractive", "extractive-dev", "extractive-test")


class FittedFile(BaseModel):
    """The JSON form. A model that is left out is the shipped one. `sha256` is that of the models; `provenance` as in
    files of prompts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["extractive"] = "extractive"
    format: int = FORMAT
    features: int = FEATURES
    sha256: str
    evidence: EvidenceModel | None = None
    alignment: AlignmentModel | None = None
    answerable: AnswerableModel | None = None
    provenance: dict[str, Any] = {}

    @classmethod
    def of(
        cls,
        evidence: EvidenceModel | None,
        alignment: AlignmentModel | None,
        answerable: AnswerableModel | None,
        provenance: dict[str, Any] | None = None,
    ) -> Self:
        """The file of these models."""
        models = (evidence, alignment, answerable)
        parts: dict[str, Any] = {name: model for name, model in zip(PARTS, models, strict=True) if model is not None}
        return cls(sha256=_sha256(parts), provenance=provenance or {}, **parts)

    def as_text(self) -> str:
        """The file's text, the same for the same models."""
        left_out = {name for name in PARTS if getattr(self, name) is None}
        return json.dumps(self.model_dump(mode="json", exclude=left_out), indent=1, ensure_ascii=False) + "\n"


class WholeFile(FittedFile):
    """A file that has all three."""

    evidence: EvidenceModel
    alignment: AlignmentModel
    answerable: AnswerableModel


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
    if not (models := {name: model for name in PARTS if (model := getattr(file, name)) is not None}):
        raise DataError(f"{path}: an extractive program without a model; fit it again")
    if file.sha256 != _sha256(models):
        raise DataError(f"{path}: its models are not those it was written with (sha256 differs); fit it again")
    return file


def read_fitted(path: Path) -> FittedFile:
    """The file at `path`. Raises DataError for any other file."""
    remedy = "name one that archehr optimize --program extractive wrote"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: not JSON text; {remedy}") from None
    if not isinstance(raw, dict) or raw.get("kind") != KIND:
        raise DataError(f"{path}: not a file of fitted models; {remedy}")
    return check_fitted(raw, path)


def kept_models(path: Path) -> FittedFile | None:
    """The fitted models in the program file, of them alone or of prompts too, that a run kept; None where it has none
    or cannot be read."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        part = raw if raw.get("kind") == KIND else raw.get("fitted")
        return check_fitted(part, path) if part else None
    except (OSError, ValueError, RecursionError, AttributeError, DataError):
        return None


@cache
def shipped(name: str = SHIPPED[0]) -> WholeFile:
    """The model of that name that is part of the package; read once a process."""
    path = Path(__file__).with_name(f"{name}.json")
    return WholeFile.model_validate(dict(check_fitted(json.loads(path.read_text(encoding="utf-8")), path)))


def _sha256(models: dict[str, BaseModel]) -> str:
    told = {name: model.model_dump(mode="json") for name, model in models.items()}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
