"""What an output field of a prompt asks for, by its JSON schema, and the lines of the prompt that it is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from archehr.program.lm.engines.prompt_reader import Inputs

TAGGED = re.compile(r"^\[([^\]\s*]+)\] ?(.*)$", re.MULTILINE)  # no *, for de-identified dates are [**...**]
SENTENCE_END = re.compile(r"(?<=[.?!])\s+|\n+")

Lines = list[tuple[str, str]]  # (id, text)


@dataclass(frozen=True)
class Output:
    """An output field: scores of the lines of one input, links between the lines of two, sentences with the lines of
    one that they rest on, verdicts on lines by those that follow them, text, or none of these.

    `lists` are the inputs that hold `[id] text` lines. `id_key` and `value_key` name the two properties of an entry;
    `low` and `high` bound a score, `verdicts` are the words to choose from, the best first.
    """

    name: str
    kind: Literal["scores", "links", "cited", "verdicts", "sentences", "text", "other"]
    lists: tuple[str, ...] = ()
    id_key: str = ""
    value_key: str = ""
    low: int = 1
    high: int = 5
    verdicts: tuple[str, ...] = ()


def output_of(name: str, schema: dict[str, Any], lists: tuple[str, ...]) -> Output:
    """The kind of an output field, by its JSON schema and the sentence lists that there are to answer about."""
    entry = schema.get("items") or {}
    properties = entry.get("properties", {})
    keys = {"enum" if "enum" in field else field.get("type"): key for key, field in reversed(properties.items())}
    if keys.keys() == {"string", "integer"} and lists:
        field = properties[keys["integer"]]
        low = int(field.get("minimum", 1))
        return Output(name, "scores", lists, keys["string"], keys["integer"], low, int(field.get("maximum", low + 4)))
    if keys.keys() == {"string", "array"} and lists:
        return Output(name, "links" if len(lists) > 1 else "cited", lists, keys["string"], keys["array"])
    if keys.keys() == {"string", "enum"} and lists:
        verdicts = tuple(map(str, properties[keys["enum"]]["enum"]))
        return Output(name, "verdicts", lists, keys["string"], keys["enum"], verdicts=verdicts)
    if schema.get("type") == "array" and entry.get("type") == "string":
        return Output(name, "sentences", lists)
    if schema.get("type") == "string" and "enum" not in schema:
        return Output(name, "text", lists)
    return Output(name, "other", lists)


def empty_value(schema: dict[str, Any]) -> Any:
    """The plainest value of a field of another shape."""
    plain = {"array": [], "object": {}, "integer": schema.get("minimum", 0), "number": 0.0, "boolean": False}
    return plain.get(str(schema.get("type")), next(iter(schema.get("enum", ())), ""))


def lists_of(inputs: Inputs) -> tuple[str, ...]:
    """Names of the inputs that look like lists of `[id] text` lines, for a prompt that describes none so."""
    return tuple(name for name, text in inputs if all(TAGGED.match(line) for line in text.split("\n")))


def lines_of(inputs: Inputs, name: str) -> Lines:
    """The lines of one list."""
    return TAGGED.findall(dict(inputs)[name])


def paragraphs_of(inputs: Inputs, name: str) -> list[Lines]:
    """The lines of one list, a paragraph each."""
    paragraphs = (TAGGED.findall(paragraph) for paragraph in re.split(r"\n\s*\n", dict(inputs)[name]))
    return [lines for lines in paragraphs if lines]


def source(inputs: Inputs, lists: tuple[str, ...]) -> tuple[Lines, list[str]]:
    """The sentences to work on, and the other inputs: the first list, else the longest input cut into sentences."""
    if not inputs:
        return [], []
    chosen = lists[0] if lists else max(inputs, key=lambda pair: len(pair[1]))[0]
    sentences = [text for text in SENTENCE_END.split(dict(inputs)[chosen]) if text.strip()]
    lines = lines_of(inputs, chosen) if lists else [(str(i), text) for i, text in enumerate(sentences)]
    return lines, [text for name, text in inputs if name != chosen]


def two_sources(inputs: Inputs, lists: tuple[str, ...]) -> tuple[Lines, Lines, list[str]]:
    """The sentences to link, those to link them to, and the other inputs."""
    left, right, *_ = lists
    rest = [text for name, text in inputs if name not in (left, right)]
    return lines_of(inputs, left), lines_of(inputs, right), rest
