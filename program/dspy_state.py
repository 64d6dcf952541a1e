"""What dspy.Module.save keeps of a program: settings, prompts, demos and which LMs it asks, but never a key."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dspy
from pydantic import ValidationError

from archehr.data.case import DataError
from archehr.program.lm.make import make_lm
from archehr.program.lm.metered import MeteredEngine
from archehr.program.lm.policy import LMConfigError
from archehr.program.settings import PipelineSettings
from archehr.program.signature_hash import fits
from archehr.program.stages.registry import PROMPTED

SETTINGS = "settings"
_LM = "make_lm"  # an LM of ours stands as {"make_lm": its settings}: no engine, which would be a class to import
logger = logging.getLogger("archehr")


def dump(program: dspy.Module, settings: PipelineSettings, json_mode: bool) -> dict[str, Any]:
    """The state as DSPy lays it out, a predictor a name, with the settings beside them."""
    state: dict[str, Any] = {SETTINGS: settings.model_dump(mode="json")}
    for name, predictor in program.named_parameters():
        engine = getattr(predictor.lm, "engine", None)
        state[name] = dump_prompt(predictor, json_mode, keep_lm=not isinstance(engine, MeteredEngine))
        if isinstance(engine, MeteredEngine) and engine.asked is not None:
            state[name]["lm"] = {_LM: engine.dump_state()}
    return state


def dump_prompt(predictor: dspy.Predict, json_mode: bool = True, *, keep_lm: bool = False) -> dict[str, Any]:
    """A predictor's state with the demos that its prompt shows."""
    plain = copy.copy(predictor)
    plain.demos = [demo for demo in predictor.demos if _is_shown(demo, predictor.signature)]
    plain.lm = predictor.lm if keep_lm else None
    state: dict[str, Any] = plain.dump_state(json_mode=json_mode)
    return state


def _is_shown(demo: Mapping[str, Any], signature: type[dspy.Signature]) -> bool:
    """Whether a prompt shows the demo: DSPy's optimisers leave whole training examples among the demos, which have
    none of a stage's fields, and no prompt shows those."""
    return any(name in demo for name in signature.output_fields)


def read_settings(state: Mapping[str, Any]) -> PipelineSettings | None:
    """The settings of a saved state; None for one that was saved without. Raises DataError."""
    if SETTINGS not in state:
        return None
    try:
        return PipelineSettings.model_validate(state[SETTINGS])
    except ValidationError as error:
        first = error.errors()[0]
        raise DataError(f"settings.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def check_fields(state: Mapping[str, Any], program: dspy.Module, path: Path) -> None:
    """Raises DataError where a saved state is of another program than this."""
    for name, ours in program.named_predictors():
        try:
            fields = len(state[name]["signature"]["fields"])
        except (KeyError, TypeError):
            raise DataError(f"{path}: saved by DSPy, but not of a GroundedQA: it lacks {name}") from None
        if fields != len(ours.signature.fields):  # DSPy restores texts by position
            raise DataError(f"{path}: {name} has {fields} fields, here {len(ours.signature.fields)}; compile again")


def of_program_file(path: Path) -> dict[str, Any] | None:
    """The state that a program file of archehr holds, without the demos that only its data could fill; None for any
    other file. Raises DataError for one of other signatures."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # DSPy says what is the matter
    if not isinstance(raw, dict) or "format" not in raw:
        return None
    try:
        stages = {name: (part["signature"], part["demos"]) for name, part in raw["stages"].items()}
        known = all(name in PROMPTED for name in stages) and fits(raw["signature_hash"], stages)
    except (KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise DataError(f"{path}: not a program file of this version's signatures; compile the program again")
    state: dict[str, Any] = {SETTINGS: raw.get(SETTINGS, {})}
    for name, (signature, demos) in stages.items():
        kept = [demo for demo in demos if "from_case" not in demo]
        state[f"{name}.predict"] = {"traces": [], "train": [], "lm": None, "signature": signature, "demos": kept}
    return state


def with_lms(state: Mapping[str, Any], *, allow_unsafe: bool) -> tuple[dict[str, Any], dict[str, dspy.LM]]:
    """The state without LMs of ours, and these made again, by the predictor that asks them; one LM stays one.

    An LM is left out, with a warning, where it cannot be made here (its key is not in the environment) or where the
    file names a server that the note would be sent to, which only `allow_unsafe` accepts.
    """
    plain, asked = dict(state), {}
    for name, part in state.items():
        if isinstance(part, Mapping) and isinstance(part.get("lm"), Mapping) and _LM in part["lm"]:
            plain[name] = {**part, "lm": None}
            asked[name] = part["lm"][_LM]
    made = {key: _made(dict(json.loads(key)), allow_unsafe) for key in {json.dumps(a) for a in asked.values()}}
    found = {name: made[json.dumps(settings)] for name, settings in asked.items()}
    return plain, {name: lm for name, lm in found.items() if lm is not None}


def _made(settings: dict[str, Any], allow_unsafe: bool) -> dspy.LM | None:
    name = settings.pop("name", "")
    why = "its server is named by the file alone; load with allow_unsafe_lm_state=True, or set_lm again"
    if allow_unsafe or not settings.get("api_base"):
        try:
            return make_lm(name, **settings)
        except LMConfigError as error:
            why = str(error)
    logger.warning("the LM %s is not restored: %s", name, why)
    return None


class Saved(dspy.Module):
    """A program that is saved and loaded with its settings, as DSPy's documents say for any module."""

    settings: PipelineSettings

    def use_settings(self, settings: PipelineSettings) -> None:
        """Work by other settings from now on."""
        self.settings = settings

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """What `save` writes: the settings beside DSPy's own state. An LM of make_lm is kept by its name and settings,
        without key and engine."""
        return dump(self, self.settings, json_mode)

    def save(self, path: str | Path, save_program: bool = False, modules_to_serialize: list[Any] | None = None) -> None:
        """As dspy.Module.save, in a file for its owner alone: demos hold note text."""
        super().save(path, save_program=save_program, modules_to_serialize=modules_to_serialize)
        Path(path).chmod(0o700 if save_program else 0o600)

    def load_state(self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False) -> None:
        """Restore what `dump_state` gave, here or from any of DSPy's optimisers; without settings ours stay."""
        settings = read_settings(state) or self.settings
        self.use_settings(settings)  # its views must be there to be restored
        plain, lms = with_lms(state, allow_unsafe=allow_unsafe_lm_state)
        super().load_state(plain, allow_unsafe_lm_state=allow_unsafe_lm_state)
        for name, predictor in self.named_predictors():
            predictor.lm = lms.get(name, predictor.lm)
        self.use_settings(settings)

    def load(self, path: str | Path, allow_pickle: bool = False, allow_unsafe_lm_state: bool = False) -> None:
        """As dspy.Module.load; reads the program files of archehr too. Raises DataError for one that does not fit."""
        if (state := of_program_file(Path(path))) is not None:
            self.load_state(state)
        else:
            super().load(path, allow_pickle=allow_pickle, allow_unsafe_lm_state=allow_unsafe_lm_state)
