"""What a server refuses is left out, one step at a time: the JSON schema, then JSON mode; a parameter it names."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, replace
from typing import Any, Literal

from dspy import lm15

from archehr.program.lm.wire.replies import REFUSED

SchemaMode = Literal["auto", "json", "none"]
LADDER = ("json_schema", "json_object", "none")
FIRST_STEP: dict[SchemaMode, str] = {"auto": "json_schema", "json": "json_object", "none": "none"}

# How servers say that they cannot hold a reply to a schema: OpenAI's, vLLM's, llama.cpp's, Ollama's, Gemini's words.
_SCHEMA = re.compile(
    r"response[_ ]?(format|schema|json)|json[_ ]?(schema|object|mode)|schema|grammar|guided|structured|constrain"
    r"|xgrammar|outlines|too many states|automaton|\bFSM\b",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"(not|n't|un)[\s_-]*support|unrecogni[sz]ed|unknown|unexpected|(not|n't) (permitted|allowed|available|accept)"
    r"|extra (inputs|fields|param)|extra_forbidden|deprecated|only the default|may only be"
    r"|cannot be (set|used|specified)|use\W+max_",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(r"context (length|window|size)|too (long|large)|exceed|at most", re.IGNORECASE)
# The names under which a setting stands in requests, and so in complaints about it.
_NAMES = {
    "temperature": r"temperature",
    "max_tokens": r"max_tokens|max_completion_tokens|max_output_tokens|maxOutputTokens",
    "seed": r"seed",
    "reasoning": r"reasoning(_effort)?|thinking(_?(config|level|budget))?",
    "top_p": r"top_?p",
    "top_k": r"top_?k",
}


@dataclass(frozen=True)
class Form:
    """How much of a request a server is sent."""

    schema: str = LADDER[0]
    dropped: frozenset[str] = frozenset()
    length_as: str | None = None  # the parameter that stands in for max_tokens

    def of(self, request: lm15.Request) -> lm15.Request:
        """The request in this form."""
        config: Any = request.config
        if config.response_format and self.schema != LADDER[0]:
            format = {"type": self.schema} if self.schema == "json_object" else None
            config = replace(config, response_format=format)
        if self.length_as and config.max_tokens and "max_tokens" not in self.dropped:
            more = {**(config.extensions or {}), self.length_as: config.max_tokens}
            config = replace(config, max_tokens=None, extensions=more)
        if gone := {name: None for name in self.dropped if getattr(config, name) is not None}:
            config = replace(config, **gone)
        return replace(request, config=config)

    def after(self, error: lm15.LM15Error, config: lm15.Config) -> Form | None:
        """The next form to try after a refusal of a request with this `config`, or None where it refuses no part."""
        if isinstance(error, lm15.UnsupportedFeatureError):  # no JSON mode here, as with Anthropic's API
            return replace(self, schema="none") if self.schema == "json_object" and config.response_format else None
        if not isinstance(error, (lm15.InvalidRequestError, lm15.ServerError)) or error.provider_code == REFUSED:
            return None
        if isinstance(error, (lm15.ContextLengthError, lm15.UnsupportedModelError)):
            return None
        if (name := refused_parameter(error.message, config)) is not None:
            return self._without(name, error.message)
        step = LADDER.index(self.schema) + 1
        if config.response_format is None or step == len(LADDER) or not _SCHEMA.search(error.message):
            return None
        only_text = "'text'" in error.message and "json_object" not in error.message
        return replace(self, schema="none" if only_text else LADDER[step])

    def joined(self, other: Form) -> Form:
        """What either leaves out is left out."""
        schema = max(self.schema, other.schema, key=LADDER.index)
        return Form(schema, self.dropped | other.dropped, self.length_as or other.length_as)

    def differences(self, before: Form) -> list[str]:
        """What this form leaves out that `before` did not, in words."""
        told = []
        if self.schema != before.schema:
            instead = "JSON mode is asked for" if self.schema == "json_object" else "the prompt alone asks for JSON"
            told.append(f"refuses the JSON schema; {instead} instead")
        if self.length_as and not before.length_as and "max_tokens" not in self.dropped:
            told.append(f"refuses max_tokens; {self.length_as} is sent instead")
        told += [f"refuses {name}; it is left out" for name in sorted(self.dropped - before.dropped)]
        return told

    def _without(self, name: str, message: str) -> Form:
        other = re.search(r"max_(?:completion_|output_)?tokens(?=\W+instead)|(?<=[Uu]se \W)max_\w+", message)
        if name == "max_tokens" and self.length_as is None:
            return replace(self, length_as=other[0] if other else "max_completion_tokens")
        return replace(self, dropped=self.dropped | {name})


def refused_parameter(message: str, config: lm15.Config) -> str | None:
    """The setting that the server says it does not take, among those that were sent."""
    if not _REFUSES.search(message) or _TOO_LONG.search(message):
        return None
    sent = {name for name in _NAMES if getattr(config, name, None) is not None}
    if set(config.extensions or ()) & {"max_tokens", "max_completion_tokens"}:
        sent.add("max_tokens")
    found = {name: match.start() for name in sent if (match := re.search(rf"\b({_NAMES[name]})\b", message))}
    return min(found, key=found.__getitem__) if found else None


class Concessions:
    """The form that one server takes of one model, found out by its refusals and remembered."""

    def __init__(self, schema: SchemaMode = "auto") -> None:
        self._whole = self.form = Form(FIRST_STEP[schema])
        self._lock = threading.Lock()

    def settle(self, form: Form) -> list[str]:
        """A reply came to a request in this form; all that is left out by now, in words."""
        with self._lock:
            self.form = self.form.joined(form)
            return self.form.differences(self._whole)


# What servers were found to refuse, while this process lasts: a second LM of the same model does not pay for it again.
KNOWN: dict[tuple[str, str, SchemaMode], Concessions] = {}


def concessions(model: str | None, endpoint: str | None, schema: SchemaMode) -> Concessions:
    """Those of a model at an address ("" is one that only the provider knows), the same for every LM of both. Without
    an address, within this process, an LM has its own."""
    if model is None or endpoint is None:
        return Concessions(schema)
    return KNOWN.setdefault((model, endpoint, schema), Concessions(schema))
