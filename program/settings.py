"""PipelineSettings: every number and rule of the pipeline that is not a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from archehr.data.case import DataError


class Temperatures(BaseModel):
    """Sampling temperature per stage; left out of the request for models that refuse one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reformulate: float = Field(default=0.0, ge=0)
    score: float = Field(default=0.0, ge=0, description="of every view")
    generate: float = Field(default=0.1, ge=0)
    align: float = Field(default=0.0, ge=0)
    sample: float = Field(default=0.7, ge=0, description="of every reply to a prompt after its first")


class Samples(BaseModel):
    """How many replies are asked for, of which the one most like the others is kept; those to score are in `views`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reformulate: int = Field(default=1, ge=1, le=20)
    generate: int = Field(default=1, ge=1, le=20)


class ViewUse(BaseModel):
    """How a program uses one view: so many replies, one vote in all that counts `weight`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    samples: int = Field(default=1, ge=1, le=20)
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    cut: int = Field(default=5, ge=1, le=5, description="a reply votes for the sentences it scores at least this")

    def __str__(self) -> str:
        return f"{self.name}*{self.samples}" if self.samples > 1 else self.name


class PipelineSettings(BaseModel):
    """Cuts, limits and fallbacks. Part of a program file; `PRESETS` holds the two that ship."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question_words: int = Field(default=15, ge=1)
    answer_words: int = Field(default=75, ge=1)
    soft_cut_share: float = Field(default=0.6, ge=0, le=1, description="least share of answer_words after a soft cut")
    cut: int = Field(default=5, ge=1, le=5, description="a sentence scored at least this is evidence")
    relaxed_cut: int = Field(default=4, ge=1, le=5, description="used where no sentence reaches `cut`")
    views: tuple[ViewUse, ...] = Field(default=(ViewUse(name="score"),), min_length=1)
    agreement: float = Field(default=0.5, gt=0, le=1, description="the cut where several views or samples vote")
    samples: Samples = Samples()
    verify: Literal["off", "flag", "revise"] = Field(
        default="off", description="off: only numbers, dates and names are checked; revise: at most four calls more"
    )
    on_failure: Literal["extractive", "first_three"] = "extractive"
    abstain: bool = Field(default=True, description="say so where the note does not answer, instead of quoting it")
    ask_again: bool = Field(default=True, description="name a reply's fault to the LM once before repairing it")
    temperature: Temperatures = Temperatures()
    window_chars: int = Field(default=24_000, ge=200, description="longer notes are read in windows of this size")
    window_overlap: int = Field(default=3, ge=0, description="sentences that neighbouring windows share")

    @field_validator("temperature", mode="before")
    @classmethod
    def _one_for_all_stages(cls, value: Any) -> Any:
        stages = [name for name in Temperatures.model_fields if name != "sample"]
        return dict.fromkeys(stages, value) if isinstance(value, (int, float)) else value

    def temperature_of(self, stage: str, sample: int = 0) -> float:
        """The sampling temperature of a reply; every view is asked as `score` is."""
        if sample:
            return self.temperature.sample
        asked_as = "score" if any(view.name == stage for view in self.views) else stage
        return float(getattr(self.temperature, asked_as, 0.0))

    def changed(self, changes: Mapping[str, Any]) -> PipelineSettings:
        """These settings with some of them changed; a `cut` below `relaxed_cut` takes that down with it.

        Raises DataError: one line that names the setting.

        Example:
            >>> PRESETS["default"].changed({"cut": 3}).relaxed_cut
            3
        """
        values = {**dict(self), **changes}
        try:
            if "relaxed_cut" not in changes and isinstance(values["cut"], int):
                values["relaxed_cut"] = min(values["cut"], self.relaxed_cut)
            return PipelineSettings.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            name, said = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
            known = (
                f"; the settings are {', '.join(PipelineSettings.model_fields)}"
                if first["type"] == "extra_forbidden"
                else ""
            )
            raise DataError(f"settings {name}: {said}{known}" if name else f"settings: {said}") from None

    @property
    def votes(self) -> int:
        """How many replies a note is scored by."""
        return sum(view.samples for view in self.views)

    @model_validator(mode="after")
    def _each_view_once(self) -> PipelineSettings:
        names = [view.name for view in self.views]
        if len(set(names)) < len(names):
            raise ValueError(f"views name one twice ({', '.join(names)}); name each once, with more samples instead")
        return self

    @model_validator(mode="after")
    def _relaxed_is_not_stricter(self) -> PipelineSettings:
        if self.relaxed_cut > self.cut:
            raise ValueError(f"relaxed_cut {self.relaxed_cut} is above cut {self.cut}")
        return self


def parse_views(text: str) -> tuple[ViewUse, ...]:
    """ "score,answer_first*2" -> each view named, of one sample or as many as the star says. Raises DataError."""
    uses = []
    for part in text.replace(" ", "").split(","):
        name, _, samples = part.partition("*")
        try:
            uses.append(ViewUse(name=name, samples=int(samples or 1)))
        except ValueError:
            raise DataError(
                f"--views {text}: write NAME or NAME*SAMPLES (1 to 20), for example score,answer_first*2"
            ) from None
    if twice := [use.name for i, use in enumerate(uses) if use.name in [before.name for before in uses[:i]]]:
        raise DataError(f"--views {text}: {twice[0]} stands there twice; name it once, with samples: {twice[0]}*2")
    return tuple(uses)


def parse_samples(text: str) -> dict[str, int]:
    """ "reformulate=3,generate=5" -> the replies of each stage. Raises DataError."""
    numbers = {}
    for part in text.replace(" ", "").split(","):
        stage, _, number = part.partition("=")
        if stage not in Samples.model_fields or not number.isdecimal():
            raise DataError(
                f"--samples {text}: write STAGE=NUMBER of {' and '.join(Samples.model_fields)}, as generate=5; "
                "several replies of a view are --views score*3"
            )
        numbers[stage] = int(number)
    return numbers


# `seed` is the published system: keep 4 and 5, else 3, else the first three sentences; nothing is asked twice,
# and every question gets an answer.
# `default` cuts at 5, for most error of a strong LM is supplementary sentences scored 4. A trial of the seed's prompt
# before this repository, not reproduced in it, had strict F1 78.5 at 5 and 69.8 at 4. `archehr optimize` fits the cut
# to the LM at hand.
PRESETS: dict[str, PipelineSettings] = {
    "seed": PipelineSettings(cut=4, relaxed_cut=3, on_failure="first_three", ask_again=False, abstain=False),
    "default": PipelineSettings(),
}
