"""`--lm knn`: nearest neighbours over the demos in the prompt. For trying the tool offline, not for use.

It stands in for an LM where there is none: demos truly change its answers, so that optimising and comparing programs
can be shown and tested without a key or a download. It ships no fitted number and learns from its prompt alone.
Without demos it only counts the words that two texts share; with them it still does not read, it copies how sentences
of similar standing were labelled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from dspy import lm15

from archehr.program.lm.backend import Backend, in_process, prompt_parts
from archehr.program.lm.engines.neighbours import Array, Neighbours, Rarity, line_features, pair_features, words
from archehr.program.lm.engines.output_field import (
    Output,
    empty_value,
    lines_of,
    lists_of,
    output_of,
    paragraphs_of,
    source,
    two_sources,
)
from archehr.program.lm.engines.prompt_reader import Inputs, Prompt, ShownDemo, read_prompt
from archehr.program.lm.settings import LMSettings

ASIDE = re.compile(r"\s*\([^()]*\)")
DEFAULT_LIMIT = 75  # words, where neither the prompt nor a demo says


def backend(settings: LMSettings) -> Backend:
    """The engine; it has no settings."""
    return in_process(KnnEngine())


class KnnEngine:
    """Answers every output field from the demos of its own prompt; the same prompt gets the same answer."""

    supports_response_schema = True
    supported_params = frozenset({"temperature", "max_tokens", "seed", "response_format"})

    def complete(self, request: lm15.Request) -> lm15.Response:
        """The reply as a JSON object; {} for a prompt that names no output field. Usage: 4 characters a token."""
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
class Fitted:
    """What the demos teach about one output field. `cuts` maps a label to the prediction that foretells it best."""

    rarity: Rarity
    neighbours: Neighbours
    cuts: dict[float, float]


def answer(prompt: Prompt) -> dict[str, Any]:
    """A value for every output field of the prompt."""
    values: dict[str, Any] = {}
    names = [name for name, _ in prompt.inputs]
    demos = tuple(demo for demo in prompt.demos if [name for name, _ in demo.inputs] == names)
    for name, schema in prompt.outputs.items():
        output = output_of(name, schema, prompt.lists or lists_of(prompt.inputs))
        if output.kind == "scores":
            values[name] = _scores(output, demos, prompt.inputs)
        elif output.kind == "links":
            values[name] = _links(output, demos, prompt.inputs)
        elif output.kind == "cited":
            values[name] = _cited(output, demos, prompt.inputs)
        elif output.kind == "verdicts":
            values[name] = _verdicts(output, prompt.inputs)
        elif output.kind == "other":
            values[name] = empty_value(schema)
        else:
            sentences = _extract(output, demos, prompt)
            values[name] = sentences if output.kind == "sentences" else " ".join(sentences)
    return values


def _scores(output: Output, demos: tuple[ShownDemo, ...], inputs: Inputs) -> list[dict[str, Any]]:
    """Every line with its score: the highest whose cut its neighbours' mean label reaches. Without demos, by the
    number of words it shares with the other inputs, the line that shares most getting the highest score."""
    lines, contexts = source(inputs, output.lists)
    fitted = _fit(demos, output)
    if fitted is None:
        shared = [len(words(text) & words(" ".join(contexts))) for _, text in lines]
        step = (output.high - output.low) / (max(shared, default=0) or 1)
        scores = [output.low + int(step * n) for n in shared]
    else:
        # Scores that no demo gives have their cuts evenly between those of the scores that demos give.
        least = int(fitted.neighbours.labels.min())
        anchors = {float(least): float(fitted.neighbours.held_out.min()), **fitted.cuts}
        cuts = np.interp(np.arange(least + 1, int(max(anchors)) + 1), list(anchors), list(anchors.values()))
        means = fitted.neighbours.predict(_points(output, inputs, fitted.rarity))
        scores = np.clip(least + (means[:, None] >= cuts).sum(axis=1), output.low, output.high).tolist()
    return [{output.id_key: i, output.value_key: score} for (i, _), score in zip(lines, scores, strict=True)]


def _links(output: Output, demos: tuple[ShownDemo, ...], inputs: Inputs) -> list[dict[str, Any]]:
    """Every sentence of the first list with those of the second linked to it: the pairs that reach the cut. Without
    demos, those that share at least half of its words."""
    left, right, _ = two_sources(inputs, output.lists)
    fitted = _fit(demos, output)
    if fitted is None or not right:
        linked = [[0 < len(words(a)) <= 2 * len(words(a) & words(b)) for _, b in right] for _, a in left]
    else:
        means = fitted.neighbours.predict(_points(output, inputs, fitted.rarity))
        linked = (means >= fitted.cuts.get(1.0, np.inf)).reshape(len(left), len(right)).tolist()
    return [
        {output.id_key: i, output.value_key: [j for (j, _), yes in zip(right, row, strict=True) if yes]}
        for (i, _), row in zip(left, linked, strict=True)
    ]


def _cited(output: Output, demos: tuple[ShownDemo, ...], inputs: Inputs) -> list[dict[str, Any]]:
    """The lines to cite, each in its own words and citing itself: those that reach the cut, else the best. Without
    demos, as many as the usual limit holds of those that share half as many words with the other inputs as any."""
    lines, contexts = source(inputs, output.lists)
    if not lines:
        return []
    fitted = _fit(demos, output)
    if fitted is None:
        wanted = words(" ".join(contexts))
        shared = [len(words(text) & wanted) for _, text in lines]
        fitting = _within([text for _, text in lines], shared, DEFAULT_LIMIT)
        chosen = [i for i in fitting if 2 * shared[i] >= max(shared)]
    else:
        means = fitted.neighbours.predict(_points(output, inputs, fitted.rarity))
        chosen = [i for i, mean in enumerate(means) if mean >= fitted.cuts.get(1.0, np.inf)] or [int(means.argmax())]
    return [{output.id_key: ASIDE.sub("", lines[i][1]), output.value_key: [lines[i][0]]} for i in chosen]


def _verdicts(output: Output, inputs: Inputs) -> list[dict[str, Any]]:
    """The first line of every paragraph judged by the share of its words that the lines below it hold."""
    verdicts = []
    for (number, text), *cited in paragraphs_of(inputs, output.lists[0]):
        stated = words(text)
        share = len(stated & words(" ".join(line for _, line in cited))) / len(stated) if stated and cited else 0.0
        best_first = min(int((1 - share) * len(output.verdicts)), len(output.verdicts) - 1)
        verdicts.append({output.id_key: number, output.value_key: output.verdicts[best_first]})
    return verdicts


def _extract(output: Output, demos: tuple[ShownDemo, ...], prompt: Prompt) -> list[str]:
    """Sentences of the source without their asides, as many words as the nearest demo's output has: those most like
    the ones that demos drew on. Without demos, those that share most words with the first other input, a question
    before the rest."""
    lines, contexts = source(prompt.inputs, output.lists)
    texts = [ASIDE.sub("", text) for _, text in lines]
    if not texts:
        return []
    limit, ending = prompt.limit or DEFAULT_LIMIT, ""
    fitted = _fit(demos, output)
    if fitted is None:
        question = words(contexts[0] if contexts else "")
        liking = [len(words(text) & question) + 0.5 * ("?" in text) for text in texts]
    else:
        liking = fitted.neighbours.predict(_points(output, prompt.inputs, fitted.rarity)).tolist()
        nearest = _text(max(demos, key=lambda demo: _alike(_joined(demo.inputs), _joined(prompt.inputs))), output)
        limit, ending = min(limit, len(nearest.split()) or limit), nearest[-1:]
    if output.kind == "sentences":
        chosen = _within(texts, liking, limit)
        return [texts[i] for i in chosen] if len(chosen) > 1 else [" ".join(texts[chosen[0]].split()[:limit])]
    best = " ".join(texts[liking.index(max(liking))].split()[:limit])
    return [best.rstrip(" .,;:!?") + ending if ending in (".", "?") else best]


def _within(texts: Sequence[str], liking: Sequence[float], limit: int) -> list[int]:
    """The positions, in order, of the best-liked texts of at most `limit` words in all; the best one if none fits."""
    ranked = sorted(range(len(texts)), key=lambda i: -liking[i])
    picks: list[int] = []
    for i in ranked:
        if sum(len(texts[j].split()) for j in [*picks, i]) <= limit:
            picks.append(i)
    return sorted(picks) or [ranked[0]]


@lru_cache(maxsize=64)  # one program's demos come with every case
def _fit(demos: tuple[ShownDemo, ...], output: Output) -> Fitted | None:
    """Neighbours over all lines (or pairs of lines) of the demos that have the output, or None where none has."""
    labelled = [(demo.inputs, labels) for demo in demos if (labels := _labels(demo, output))]
    if not labelled:
        return None
    rarity = Rarity(text for inputs, _ in labelled for name in output.lists for _, text in lines_of(inputs, name))
    neighbours = Neighbours(
        features=np.concatenate([_points(output, inputs, rarity) for inputs, _ in labelled]),
        labels=np.concatenate([labels for _, labels in labelled]),
        group=np.repeat(np.arange(len(labelled)), [len(labels) for _, labels in labelled]),
    )
    if output.kind not in ("scores", "links", "cited"):
        return Fitted(rarity, neighbours, {})
    foretold = sorted({label for label in neighbours.labels.tolist() if label > neighbours.labels.min()})
    cuts = np.maximum.accumulate([0.0, *(neighbours.cut(label) for label in foretold)])[1:]
    return Fitted(rarity, neighbours, dict(zip(foretold, cuts.tolist(), strict=True)))


def _labels(demo: ShownDemo, output: Output) -> list[float] | None:
    """What the demo's reply says of each line or pair of its inputs; None where it does not answer the field."""
    if output.kind in ("sentences", "text"):
        text = _text(demo, output)
        return [_alike(line, text) for _, line in source(demo.inputs, output.lists)[0]] if text else None
    value = demo.output(output.name)
    if not isinstance(value, list):
        return None
    try:
        if output.kind == "cited":
            cited = {str(i) for entry in value for i in entry[output.value_key]}
            return [float(i in cited) for i, _ in source(demo.inputs, output.lists)[0]]
        by_id = {str(entry[output.id_key]): entry[output.value_key] for entry in value}
        if output.kind == "scores":
            return [float(by_id.get(i, output.low)) for i, _ in source(demo.inputs, output.lists)[0]]
        left, right, _ = two_sources(demo.inputs, output.lists)
        return [float(j in map(str, by_id.get(i, ()))) for i, _ in left for j, _ in right]
    except (KeyError, TypeError, ValueError):
        return None


def _points(output: Output, inputs: Inputs, rarity: Rarity) -> Array:
    """Feature vectors of the lines, or pairs of lines, that the output is about."""
    if output.kind == "links":
        left, right, contexts = two_sources(inputs, output.lists)
        pairs = pair_features([text for _, text in left], [text for _, text in right], contexts, rarity)
        return pairs.reshape(-1, pairs.shape[-1])
    lines, contexts = source(inputs, output.lists)
    return line_features([text for _, text in lines], contexts, rarity)


def _text(demo: ShownDemo, output: Output) -> str:
    """A text output of a demo; "" where it has none."""
    value = demo.output(output.name)
    return " ".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _joined(inputs: Inputs) -> str:
    return "\n".join(text for _, text in inputs)


def _alike(a: str, b: str) -> float:
    """Cosine of the words of two texts."""
    shared = len(words(a) & words(b))
    return shared / (len(words(a)) * len(words(b))) ** 0.5 if shared else 0.0
