"""LMSettings: how one LM is reached and asked; `make_lm` takes its fields as keywords."""

from __future__ import annotations

import os
from math import inf
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from archehr.program.lm.policy import LMConfigError, local_only_asked

REASONING = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class LMSettings(BaseModel):
    """What a registry entry makes a Backend of. The key is left out of its repr."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    api_base: str | None = Field(default=None, description="address of the server; None is the provider's own")
    api_key: str | None = Field(default=None, repr=False, description="else from the environment")
    timeout: float = Field(default=120, description="seconds for one attempt; gguf: cannot keep it")
    num_retries: int = Field(default=3, description="attempts after a transient error")
    max_tokens: int | None = Field(default=None, description="of one reply, thinking included")
    seed: int | None = None
    reasoning: str | None = Field(default=None, description="one of REASONING")
    context: int | None = Field(default=None, description="gguf: tokens")
    threads: int | None = Field(default=None, description="gguf: CPU threads")
    local_only: bool | None = Field(None, validate_default=True, description="refuse all but this machine")
    accept_model_version: bool = Field(default=False, description="take answers from another model than asked for")
    safety: str = Field(default="BLOCK_NONE", description="Gemini's threshold")
    schema_mode: Literal["auto", "json", "none"] = Field(
        default="auto", alias="schema", description="json: JSON mode without a schema; none: the prompt alone"
    )
    record: Path | None = Field(default=None, description="append every reply to this file, for replay:FILE")
    cache: bool = True
    batch_bucket: str | None = Field(None, validate_default=True, description="vertex_ai: gs://… for files of batches")

    @classmethod
    def of(cls, name: str, **given: Any) -> LMSettings:
        """Validated at once. Raises LMConfigError, one line without any value that could be a key."""
        try:
            return cls(name=name, **given)
        except ValidationError as error:
            first = error.errors()[0]
            if isinstance(cause := first.get("ctx", {}).get("error"), LMConfigError):
                raise cause from None
            field = ".".join(map(str, first["loc"]))
            raise LMConfigError(f"{name}: {field}: {first['msg']}; the settings are {', '.join(_KEYWORDS)}") from None

    @field_validator("timeout", "max_tokens", "context", "threads", "num_retries", mode="before")
    @classmethod
    def _in_range(cls, value: Any, info: Any) -> Any:
        check_numbers(zero=info.field_name == "num_retries", **{info.field_name.removeprefix("num_"): value})
        return value

    @field_validator("reasoning")
    @classmethod
    def _known_effort(cls, value: str | None) -> str | None:
        if value is not None and value not in REASONING:
            raise LMConfigError(f"--reasoning {value}: give one of {', '.join(REASONING)}")
        return value

    @field_validator("schema_mode", mode="before")
    @classmethod
    def _known_mode(cls, value: Any) -> Any:
        if value not in ("auto", "json", "none"):
            raise LMConfigError(f"--schema {value}: give one of auto, json, none")
        return value

    @field_validator("batch_bucket")
    @classmethod
    def _or_the_usual(cls, value: str | None) -> str | None:
        return value or os.environ.get("ARCHEHR_BATCH_BUCKET")

    @field_validator("local_only", mode="before")
    @classmethod
    def _from_environment(cls, value: bool | None) -> bool:
        return local_only_asked(value)


_KEYWORDS = [field.alias or name for name, field in LMSettings.model_fields.items() if name != "name"]


def check_numbers(*, zero: bool, **given: Any) -> None:
    """Raise LMConfigError for the first of the `given` that is not a number above zero, or zero where that may be."""
    for name, value in given.items():
        if isinstance(value, (int, float)) and not (0 < value < inf or (zero and value == 0)):
            raise LMConfigError(f"--{name.replace('_', '-')} {value}: must be {'0 or more' if zero else 'above 0'}")
