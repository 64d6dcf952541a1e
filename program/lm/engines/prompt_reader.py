"""What a prompt says, read back from its messages: for engines that answer in this process without an LM."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*$", re.MULTILINE)
CLOSING_REQUEST = re.compile(
    r"\n\nRespond with (?:a JSON object|the corresponding output fields)[^\n]*"
    r"(?:\n\nYour last reply was refused: [^\n]*)?\s*\Z"
)
LIMIT = re.compile(r"[Aa]t most (\d+) words")
DESCRIBED_LIST = re.compile(r"^\d+\. `(\w+)` \([^)]*\): .*\[id\]", re.MULTILINE)

Inputs = tuple[tuple[str, str], ...]  # (field, text), in the prompt's order; hashable


@dataclass(frozen=True)
class ShownDemo:
    """One worked example of the prompt. `reply` is its JSON object as sent."""

    inputs: Inputs
    reply: str

    def output(self, name: str) -> Any:
        """The value of one output field, or None where the demo lacks it."""
        try:
            values = json.loads(self.reply)
        except ValueError:
            return None
        return values.get(name) if isinstance(values, dict) else None


@dataclass(frozen=True)
class Prompt:
    """What a JSONAdapter prompt says: the demos, the inputs to answer, which of these its system text describes as
    lines with an [id], the JSON schema of each output field, and the word limit named in the system text."""

    demos: tuple[ShownDemo, ...]
    inputs: Inputs
    lists: tuple[str, ...]
    outputs: Mapping[str, dict[str, Any]]
    limit: int | None


def read_prompt(parts: Sequence[tuple[str, str]], response_format: Mapping[str, Any] | None = None) -> Prompt:
    """(role, text) messages -> Prompt; the output fields come from the response format, else from the system text."""
    system = "\n\n".join(text for role, text in parts if role == "system")
    turns = [(role, text) for role, text in parts if role != "system"]
    pairs = pairwise(turns)
    demos = tuple(
        ShownDemo(_fields(a), b) for (first, a), (second, b) in pairs if (first, second) == ("user", "assistant")
    )
    schema = (response_format or {}).get("schema") or {}
    outputs = {name: _resolved(field, schema) for name, field in schema.get("properties", {}).items()}
    limit = LIMIT.search(system)
    inputs = _fields(CLOSING_REQUEST.sub("", turns[-1][1])) if turns else ()
    described = DESCRIBED_LIST.findall(system.partition("Your output fields are:")[0])
    return Prompt(
        demos=demos,
        inputs=inputs,
        lists=tuple(name for name, _ in inputs if name in described),
        outputs=outputs or _described_outputs(system),
        limit=int(limit[1]) if limit else None,
    )


def _fields(text: str) -> Inputs:
    pieces = FIELD.split(text)[1:]
    return tuple((name, value.strip()) for name, value in zip(pieces[::2], pieces[1::2], strict=True))


def _described_outputs(system: str) -> dict[str, dict[str, Any]]:
    """Field schemas from the "Outputs will be a JSON object" part of the system text; {} where there is none."""
    _, _, rest = system.partition("Outputs will be a JSON object with the following fields.")
    try:
        described, _ = json.JSONDecoder().raw_decode(rest.strip())
        fields = {name: str(text).partition("JSON schema: ")[2] for name, text in described.items()}
        schemas = {name: json.loads(text) if text else {"type": "string"} for name, text in fields.items()}
    except (ValueError, AttributeError):
        return {}
    return {name: _resolved(schema, schema) for name, schema in schemas.items()}


def _resolved(schema: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with a list's entry in place of the reference to it."""
    entry = schema.get("items")
    if isinstance(entry, dict) and "$ref" in entry:
        return {**schema, "items": root.get("$defs", {}).get(entry["$ref"].rsplit("/", 1)[-1], {})}
    return schema
