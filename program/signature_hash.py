"""signature_hash: whether texts and demos that were saved fit the fields of the signatures in the code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import dspy
from pydantic import TypeAdapter

from archehr.program.stages.registry import PIPELINE, PROMPTED
from archehr.program.types import StageName

PIPELINE_NAMES = tuple(stage.name for stage in PIPELINE)
# Version 0.1 hashed the texts and the module paths of the types as well: its hash, and today's of the same fields.
_HASHES_OF_0_1 = {
    "9d416b4b1566d7c9742d9cbd27aa81fde6fff5d916e29f864d3cd04cb3af2820":
    "2f88931f4398080b23fc692d2d105cdc4af6603d23806cb170fc8db4daa10332",
}  # fmt: skip


def signature_hash(stages: Iterable[StageName] = PIPELINE_NAMES) -> str:
    """sha256 of the names, order and JSON schemas of the fields of these stages' signatures in the code.

    A file's own texts replace the code's, so these do not count; but DSPy restores them by position, and a file made
    for other fields would load without a word and send prompts nobody wrote (notes/dspy-3.4.md, section 9).
    """
    described = {stage: _fields(PROMPTED[stage].signature) for stage in stages}
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def fits(saved: str, stages: Iterable[StageName]) -> bool:
    """Whether what was saved with this hash is of the same fields as the code's."""
    return _HASHES_OF_0_1.get(saved, saved) == signature_hash(stages)


def _fields(signature: type[dspy.Signature]) -> list[list[Any]]:
    sides = {"in": signature.input_fields, "out": signature.output_fields}
    return [
        [side, name, _shape(TypeAdapter(field.annotation).json_schema())]
        for side, fields in sides.items()
        for name, field in fields.items()
    ]


def _shape(schema: Any) -> Any:
    """A JSON schema without the words for people in it."""
    if isinstance(schema, list):
        return [_shape(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {key: _shape(part) for key, part in value.items()} if name in ("properties", "$defs") else _shape(value)
        for name, value in schema.items()
        if name not in ("title", "description")
    }
