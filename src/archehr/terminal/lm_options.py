"""The flags of an LM, which every command that asks one shares, and the LMs that they make."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from archehr.data.case import DataError
from archehr.terminal.flags import in_a_name, option, with_options
from archehr.terminal.options import say


@dataclass
class LMOptions:
    """The options that every command which calls an LM shares; the door makes flags of the fields."""

    lm: list[str] | None = option(
        None, "gemini/MODEL, openai/MODEL, gguf:PATH, replay:FILE, knn, …; STAGE=NAME for one stage [$ARCHEHR_LM]"
    )
    api_base: str | None = option(None, "address of an OpenAI-compatible server")
    reasoning: str | None = option(None, "thinking effort: none, minimal, low, medium, high, xhigh, max", shapes=True)
    seed: int | None = option(None, "sampling seed", shapes=True)
    max_tokens: int | None = option(None, "most tokens of one reply, thinking included", shapes=True)
    timeout: float = option(120.0, "seconds for one attempt")
    retries: int = option(3, "attempts after a transient error")
    max_calls: int | None = option(None, "stop before more calls than this")
    max_tokens_total: int | None = option(None, "stop before more tokens than this")
    max_cost: float | None = option(None, "stop before a higher cost in US dollars")
    price_in: float | None = option(None, "dollars per million input tokens, where unknown")
    price_out: float | None = option(None, "dollars per million output tokens, where unknown")
    local_only: bool = option(False, "refuse every endpoint that is not this machine", "ARCHEHR_LOCAL_ONLY")
    accept_model_version: bool = option(False, "accept answers from another model than asked for")
    safety: str = option("BLOCK_NONE", "Gemini safety threshold", shapes=True)
    context: int | None = option(None, "gguf: context size in tokens", shapes=True)
    threads: int | None = option(None, "gguf: CPU threads")
    schema: str = option("auto", "auto, json (no schema is sent) or none (the prompt alone asks for JSON)", shapes=True)
    record: Path | None = option(None, "append every request and reply to this file, for replay:FILE")

    def names(self) -> dict[str, str]:
        """The LMs asked for by stage; "" is that of the stages not named. Raises DataError for two for one stage."""
        return by_stage(self.lm or [], os.environ.get("ARCHEHR_LM"))

    def title(self) -> str | None:
        """The LMs and what shapes their answers, for the name of a folder."""
        return "-".join(filter(None, [in_a_word(self.names()), self.settings_title()])) or None

    def settings_title(self) -> str | None:
        """What shapes answers beside the LMs' names, for the name of a folder."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.metadata["shapes"]}
        return in_a_name({name: value for name, value in values.items() if value != getattr(LMOptions, name)})

    def budget(self) -> Any:
        """The limits asked for, as a Budget that one or more LMs may share."""
        from archehr.program.lm import Budget

        return Budget(
            max_calls=self.max_calls,
            max_tokens_total=self.max_tokens_total,
            max_cost=self.max_cost,
            price_in=self.price_in,
            price_out=self.price_out,
        )

    def make(self, name: str, beside: Any = None, budget: Any = None, **more: Any) -> Any:
        """The dspy.LM called `name` with these options and `more` settings; `beside` is an LM whose ledger and budget
        it shares, `budget` one that it shares with others. Raises DataError."""
        from archehr.program.lm import LMSettings, make_lm

        known = {field.alias or key for key, field in LMSettings.model_fields.items()}
        settings = {f.name: getattr(self, f.name) for f in fields(self) if f.name in known}
        settings |= {"num_retries": self.retries, "local_only": self.local_only or None, **more}
        budget = budget or (beside.engine.budget if beside is not None else self.budget())
        return make_lm(name, ledger=beside.ledger if beside is not None else None, budget=budget, **settings)


def with_lm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a flag for every field of LMOptions; it receives them as the keyword `lm_options`."""
    return with_options(command, LMOptions, "lm_options")


def by_stage(given: Sequence[str], default: str | None) -> dict[str, str]:
    """["A", "score=B"] -> {"": "A", "score": "B"}; `default` stands in for the one without a stage."""
    names: dict[str, str] = {}
    for text in given:
        stage, equals, name = text.partition("=")
        if not equals or not stage.replace("_", "").isalnum():  # a path may hold an =
            stage, name = "", text
        if stage in names:
            which = f"stage {stage}" if stage else "all stages"
            raise DataError(
                f"--lm: {names[stage]} and {name} are both for {which}; name one, or give STAGE=NAME; for both to "
                "vote on the evidence: --views score,score_b --lm score_b=NAME"
            )
        names[stage] = name
    if default and "" not in names:
        names[""] = default
    return names


def several(given: Sequence[str]) -> list[dict[str, str]]:
    """["A", "B", "score=C"] -> A and B by stage as `by_stage` gives them, both with C for the score stage; without an
    A the one of the environment."""
    whole = [text for text in given if "" in by_stage([text], default=None)]
    own = by_stage([text for text in given if text not in whole], default=None)
    whole = whole or os.environ.get("ARCHEHR_LM", "").split()
    return [{"": name, **own} for name in whole] or ([own] if own else [])


def in_a_word(names: Mapping[str, str]) -> str:
    """LMs by stage for the name of a folder: "A-score-B"."""
    return "-".join(f"{stage}-{name}" if stage else name for stage, name in names.items())


def make(lm_options: LMOptions, **more: Any) -> Any:
    """The LM asked for, or the LMs by stage that share one ledger and budget, or None; what the user should know of
    them goes to stderr. `more` are settings that only one command has a flag for."""
    lms = make_all(lm_options, lm_options.names(), **more)
    _say_notes(*(lms.values() if isinstance(lms, dict) else [lms]))
    return lms


def make_one(lm_options: LMOptions, name: str, beside: Any) -> Any:
    """The LM called `name`, which shares the ledger and budget of another; what the user should know goes to stderr."""
    lm = lm_options.make(name, beside)
    _say_notes(lm)
    return lm


def _say_notes(*lms: Any) -> None:
    for note in dict.fromkeys(note for lm in lms for note in getattr(lm, "notes", ())):
        say(note)


def make_all(lm_options: LMOptions, names: Mapping[str, str], budget: Any = None, **more: Any) -> Any:
    """The LM called so, or the LMs by stage that share one ledger and budget, or None."""
    lms: dict[str, Any] = {}
    for stage, name in names.items():
        lms[stage] = lm_options.make(name, next(iter(lms.values()), None), budget, **more)
    return lms[""] if lms.keys() == {""} else lms or None
