"""The one adapter every stage uses: DSPy's JSONAdapter that tells when a reply was not the JSON it should be."""

from __future__ import annotations

import functools
import json
import re
from typing import Any, get_args, get_origin

import dspy
from dspy import AdapterParseError
from pydantic import BaseModel, ValidationError

from archehr.program.lm._dspy import structured_response_format
from archehr.program.lm.wire.replies import last_json_object

ADAPTER_NAME = "JSONAdapter"


class TellingJSONAdapter(dspy.JSONAdapter):
    """DSPy closes cut lists and drops stray text without a word, and one bad entry fails a whole list.

    Here bad entries of a list are dropped one by one, and `repairs` says what was done; the stage turns that into
    a notice. The messages sent are JSONAdapter's own; `fault`, what was wrong with the last reply, ends the last of
    them, so that what all prompts of a stage share still stands first. One instance serves one call.
    """

    def __init__(self, fault: str | None = None) -> None:
        super().__init__()
        self.fault = fault
        self.repairs: list[str] = []

    def format(self, signature: Any, demos: list[dict[str, Any]], inputs: dict[str, Any]) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = super().format(signature, demos, inputs)
        if self.fault is not None:
            messages[-1]["content"] += f"\n\nYour last reply was refused: {self.fault}. Reply again in full."
        return messages

    def format_system_message(self, signature: Any) -> str:
        return _system_message(signature)

    def _prepare_response_format(self, lm: Any, lm_kwargs: dict[str, Any], signature: Any) -> None:
        if "response_format" in lm.supported_params and lm.supports_response_schema:
            lm_kwargs["response_format"] = _response_format(signature)
        else:
            super()._prepare_response_format(lm, lm_kwargs, signature)

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        if (inner := _unwrapped(completion, set(signature.output_fields))) is not None:
            self.repairs.append("the reply was wrapped in something else")
            completion = inner
        elif not _is_json_object(completion):
            self.repairs.append("the reply was not plain JSON")
        try:
            return super().parse(signature, completion)
        except AdapterParseError as error:
            kept = self._keep_valid_entries(signature, error)
            if kept is None:
                raise
            return kept
        except (ValueError, RecursionError):  # json_repair gives up on deep nesting with these
            raise AdapterParseError("JSONAdapter", signature, "", "the reply could not be read as JSON") from None

    def _keep_valid_entries(self, signature: Any, error: AdapterParseError) -> dict[str, Any] | None:
        fields = getattr(error, "parsed_result", None)
        if not isinstance(fields, dict) or set(fields) != set(signature.output_fields):
            return None
        kept: dict[str, Any] = {}
        for name, field in signature.output_fields.items():
            entries, model = fields[name], _entry_model(field.annotation)
            if model is None or not isinstance(entries, list):
                return None
            valid = [v for v in (_validated(model, e) for e in entries) if v is not None]
            if not valid:
                return None
            self.repairs.append(f"{len(entries) - len(valid)} malformed entries of {name} dropped")
            kept[name] = valid
        return kept


# DSPy makes these two anew for every call; together they are half of its own time, which 32 workers share.
@functools.lru_cache(maxsize=64)
def _system_message(signature: Any) -> str:
    message: str = dspy.JSONAdapter().format_system_message(signature)
    return message


@functools.lru_cache(maxsize=64)
def _response_format(signature: Any) -> type[BaseModel]:
    made: type[BaseModel] = structured_response_format(signature)
    return made


def _unwrapped(text: str, names: set[str]) -> str | None:
    """The JSON object with the fields `names` that stands behind the reasoning, in a list of one, or one level down in
    another object ({"json_input": {…}}); None where it stands for itself or there is not exactly one."""
    _, thought, answer = (text or "").rpartition("</think>")
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        value = last_json_object(answer)
    if isinstance(value, list) and len(value) == 1:
        outer: list[Any] = value
    elif isinstance(value, dict) and not names & value.keys():
        outer = [_decoded(inner) for inner in value.values()]
    else:
        return answer if thought and isinstance(value, dict) else None
    found = [inner for inner in outer if isinstance(inner, dict) and names <= inner.keys()]
    return json.dumps(found[0]) if len(found) == 1 else None


def _decoded(value: Any) -> Any:
    """A tool call's arguments often are JSON inside a string."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _is_json_object(text: str) -> bool:
    fenced = re.fullmatch(r"\s*```(?:json)?\s*(.*?)\s*```\s*", text or "", re.DOTALL)
    try:
        return isinstance(json.loads(fenced[1] if fenced else text), dict)
    except (ValueError, TypeError, RecursionError):
        return False


def _entry_model(annotation: Any) -> type[BaseModel] | None:
    if get_origin(annotation) is not list:
        return None
    (entry,) = get_args(annotation)
    return entry if isinstance(entry, type) and issubclass(entry, BaseModel) else None


def _validated(model: type[BaseModel], entry: Any) -> BaseModel | None:
    try:
        return model.model_validate(entry)
    except ValidationError:
        return None
