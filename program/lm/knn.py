"""`--lm knn`: nearest neighbours over the demos in the prompt. For trying the tool offline, not for use.

It stands in for an LM where there is none: demos truly change its answers, so that optimising and comparing programs
can be shown and tested without a key or a download. It ships no fitted number and reads nothing but its prompt.
Without demos it knows only how many words two texts share; with them it still does not read, it copies how similar
sentences were labelled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from dspy import lm15

from program.lm.metered import prompt_parts
from program.lm.neighbours import Array, Neighbours, Rarity, line_features, pair_features, words

FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*$", re.MULTILINE)
CLOSING_REQUEST = re.compile(r"\n\nRespond with (?:a JSON object|the corresponding output fields)[^\n]*\s*\Z")
TAGGED = re.compile(r"^\[([^\]\s]+)\] (.*)$", re.MULTILINE)
SENTENCE_END = re.compile(r"(?<=[.?!])\s+|\n+")
LIMIT = re.compile(r"[Aa]t most (\d+) words")
DEFAULT_LIMIT = 75  # words, where neither the prompt nor a demo says

Inputs = tuple[tuple[str, str], ...]  # (field, text), in the prompt's order; hashable
Lines = list[tuple[str, str]]  # (id, text)


class KnnEngine:
    """Answers every output field from the demos of its own prompt; the same prompt gets the same answer."""

    supports_response_schema = True
    supported_params = frozenset({"temperature", "max_tokens", "seed", "response_format"})

    def complete(self, request: lm15.Request) -> lm15.Response:
        """The reply as a JSON object. Usage counts four characters as a token."""
        parts = prompt_parts(request)
        reply = json.dumps(answer(read_prompt(parts, request.config.response_format)), ensure_ascii=False, indent=1)
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant([lm15.TextPart(reply)]),
            finish_reason="stop",
            usage=lm15.Usage(input_tokens=sum(len(t) for _, t in parts) // 4, output_tokens=len(reply) // 4),
        )


@dataclass(frozen=True)
class Demo:
    """One worked example of the prompt. `reply` is its JSON object as sent."""

    inputs: Inputs
    reply: str

    def output(self, name: str) -> Any:
        """The value of one output field, or None where the demo lacks it."""
        try:
            found = json.loads(self.reply)
        except ValueError:
            return None
        return found.get(name) if isinstance(found, dict) else None


@dataclass(frozen=True)
class Prompt:
    """What a JSONAdapter prompt says: the demos, the inputs to answer, the JSON schema of each output field, and the
    word limit named in its system text."""

    demos: tuple[Demo, ...]
    inputs: Inputs
    outputs: Mapping[str, dict[str, Any]]
    limit: int | None


def read_prompt(parts: Sequence[tuple[str, str]], response_format: Mapping[str, Any] | None = None) -> Prompt:
    """(role, text) messages -> Prompt; the output fields come from the response format, else from the system text."""
    system = "\n\n".join(text for role, text in parts if role == "system")
    turns = [(role, text) for role, text in parts if role != "system"]
    pairs = zip(turns, turns[1:], strict=False)
    demos = tuple(Demo(_fields(a), b) for (asked, a), (told, b) in pairs if (asked, told) == ("user", "assistant"))
    schema = (response_format or {}).get("schema") or {}
    outputs = {name: _resolved(field, schema) for name, field in schema.get("properties", {}).items()}
    limit = LIMIT.search(system)
    return Prompt(
        demos=demos,
        inputs=_fields(CLOSING_REQUEST.sub("", turns[-1][1])) if turns else (),
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
        fields = {name: str(told).partition("JSON schema: ")[2] for name, told in described.items()}
        schemas = {name: json.loads(told) if told else {"type": "string"} for name, told in fields.items()}
    except (ValueError, AttributeError):
        return {}
    return {name: _resolved(schema, schema) for name, schema in schemas.items()}


def _resolved(schema: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with a list's entry in place of the reference to it."""
    entry = schema.get("items")
    if isinstance(entry, dict) and "$ref" in entry:
        return {**schema, "items": root.get("$defs", {}).get(entry["$ref"].rsplit("/", 1)[-1], {})}
    return schema


def answer(prompt: Prompt) -> dict[str, Any]:
    """A value for every output field: scores of the lines of one input, links between the lines of two, or text."""
    return {name: _answer_field(name, schema, prompt) for name, schema in prompt.outputs.items()}


def _answer_field(name: str, schema: dict[str, Any], prompt: Prompt) -> Any:
    entry = schema.get("items") or {}
    fields = {field: told.get("type") for field, told in entry.get("properties", {}).items()}
    kinds = {kind: field for field, kind in fields.items()}
    lists = _lists(prompt.inputs)
    if set(fields.values()) == {"string", "integer"} and len(fields) == 2 and lists:
        return _scores(name, (kinds["string"], kinds["integer"]), entry, prompt)
    if set(fields.values()) == {"string", "array"} and len(fields) == 2 and len(lists) > 1:
        return _links(name, (kinds["string"], kinds["array"]), prompt)
    if schema.get("type") == "string" and "enum" not in schema:
        return " ".join(_extract(name, prompt, one=True))
    if schema.get("type") == "array" and entry.get("type") == "string":
        return _extract(name, prompt, one=False)
    return _empty(schema)


def _empty(schema: Mapping[str, Any]) -> Any:
    """The plainest value for a field of a shape that is not ours."""
    choice = next(iter(schema.get("enum", ())), "")
    plain = {"array": [], "object": {}, "integer": schema.get("minimum", 0), "number": 0.0, "boolean": False}
    return plain.get(schema.get("type", "string"), choice)


def _lists(inputs: Inputs) -> list[str]:
    """Names of the inputs that are lists of `[id] text` lines."""
    return [name for name, text in inputs if TAGGED.match(text)]


def _source(inputs: Inputs) -> tuple[Lines, list[str]]:
    """The sentences to work on, (id, text), and the other inputs: the first list of sentences, else the longest
    input cut into sentences."""
    if not inputs:
        return [], []
    chosen = next(iter(_lists(inputs)), None) or max(inputs, key=lambda pair: len(pair[1]))[0]
    text = dict(inputs)[chosen]
    lines = TAGGED.findall(text) or [(str(i), s) for i, s in enumerate(SENTENCE_END.split(text)) if s.strip()]
    return lines, [text for name, text in inputs if name != chosen]


def _pair_source(inputs: Inputs) -> tuple[Lines, Lines, list[str]]:
    """The sentences to link, those to link them to, and the other inputs."""
    fields, (left, right, *_) = dict(inputs), _lists(inputs)
    rest = [text for name, text in inputs if name not in (left, right)]
    return TAGGED.findall(fields[left]), TAGGED.findall(fields[right]), rest


def _texts(lines: Lines) -> list[str]:
    return [text for _, text in lines]


def _line_points(inputs: Inputs, rarity: Rarity) -> Array:
    lines, contexts = _source(inputs)
    return line_features(_texts(lines), contexts, rarity)


def _pair_points(inputs: Inputs, rarity: Rarity) -> Array:
    left, right, contexts = _pair_source(inputs)
    points = pair_features(_texts(left), _texts(right), contexts, rarity)
    return points.reshape(-1, points.shape[-1])


def _scores(name: str, keys: tuple[str, str], entry: dict[str, Any], prompt: Prompt) -> list[dict[str, Any]]:
    """Every line with a score. From demos: cuts on the neighbours' mean, one where each score of the demos is
    foretold best, evenly spaced between them. Without: the words shared with the first other input, from the low
    end of the scale up."""
    told = entry["properties"][keys[1]]
    low, high = told.get("minimum", 1), told.get("maximum", 5)
    lines, contexts = _source(prompt.inputs)
    model = _fit_scores(prompt.demos, name, keys, _names(prompt.inputs))
    if model is None:
        asked = words(contexts[0] if contexts else "")
        scores = [min(high, low + len(words(text) & asked)) for text in _texts(lines)]
    else:
        rarity, neighbours, seen, cuts = model
        scale = np.arange(low + 1, high + 1)
        values = neighbours.predict(_line_points(prompt.inputs, rarity))
        reached = values[:, None] >= np.interp(scale, seen, cuts)[None, :] if seen else np.zeros((len(lines), 0))
        scores = [low + int(n) for n in reached.sum(axis=1)]
    return [{keys[0]: i, keys[1]: s} for (i, _), s in zip(lines, scores, strict=True)]


def _links(name: str, keys: tuple[str, str], prompt: Prompt) -> list[dict[str, Any]]:
    """Every left sentence with the right ones linked to it. Without demos: those that share half of its words."""
    left, right, _ = _pair_source(prompt.inputs)
    model = _fit_links(prompt.demos, name, keys, _names(prompt.inputs))
    if model is None:
        bags = [words(text) for text in _texts(right)]
        linked = [[2 * len(words(a) & bag) >= max(1, len(words(a))) for bag in bags] for a in _texts(left)]
    else:
        rarity, neighbours, cut = model
        values = neighbours.predict(_pair_points(prompt.inputs, rarity))
        linked = (values.reshape(len(left), len(right)) >= cut).tolist()
    ids = [i for i, _ in right]
    return [
        {keys[0]: i, keys[1]: [r for r, yes in zip(ids, row, strict=True) if yes]}
        for (i, _), row in zip(left, linked, strict=True)
    ]


def _extract(name: str, prompt: Prompt, *, one: bool) -> list[str]:
    """Sentences of the source, as many words as the nearest demo's output has: the one, or those, most like what
    demos drew on. Without demos: those that share most words with the first other input, or the first question."""
    lines, contexts = _source(prompt.inputs)
    texts = [" ".join(re.sub(r"\s*\([^()]*\)", "", text).split()) for text in _texts(lines)]
    if not texts:
        return []
    limit = prompt.limit or DEFAULT_LIMIT
    model = _fit_text(prompt.demos, name, _names(prompt.inputs))
    if model is None:
        asked = words(contexts[0] if contexts else "")
        liking = [float(len(words(text) & asked)) + 0.5 * ("?" in text) for text in texts]
        ending = ""
    else:
        rarity, neighbours, outputs = model
        liking = neighbours.predict(_line_points(prompt.inputs, rarity)).tolist()
        nearest = max(outputs, key=lambda o: len(words(o[0]) & words(" ".join(texts))))[1]
        limit, ending = min(limit, len(nearest.split())), nearest[-1:]
    if one:
        best = " ".join(texts[liking.index(max(liking))].split()[:limit])
        return [best.rstrip(".!?, ") + ending if ending in {"?", "."} else best]
    return _within(texts, liking, limit)


def _within(texts: Sequence[str], liking: Sequence[float], limit: int) -> list[str]:
    """The best-liked texts of at most `limit` words in all, in their order; the first one cut if it is too long."""
    ranked = sorted(range(len(texts)), key=lambda i: -liking[i])
    kept, left = [], limit
    for i in ranked:
        size = len(texts[i].split())
        if size <= left:
            kept.append(i)
            left -= size
    return [texts[i] for i in sorted(kept)] or [" ".join(texts[ranked[0]].split()[:limit])]


def _names(inputs: Inputs) -> tuple[str, ...]:
    return tuple(name for name, _ in inputs)
