"""Whether the model that answered is the one asked for.

It is where the names agree once this is taken off both: letter case; what stands before the last / (a provider, a
gateway, a folder, models/); a tag (:latest, :free, :8b-q4 where only one has it); @DATE or -vN:N of clouds; the
vendor that Bedrock puts before a dot; .gguf and the name of a quantisation; and, on the answer alone, a date or a
number of its version (gpt-4o-2024-08-06 for gpt-4o). A name that says no model (default, auto, …-latest) is answered
by any.
"""

from __future__ import annotations

import re

# Names under which users ask for "whatever is loaded there".
ANY_MODEL = frozenset({"auto", "default", "local", "local-model", "model", "any", "none"})
# What llama.cpp's server calls every model that it was not given an alias for.
STAND_IN = "gpt-3.5-turbo"

_QUANTISATION = re.compile(
    r"[-_.](gguf|gptq|awq|exl2|mlx|bnb|[48]bit|int[48]|w\d+a\d+|i?q\d(_[0-9a-z]+)*|fp(8|16)|bf16|f(16|32))$"
)
# A date or a version's number of three digits or more: claude-sonnet-4-5 is no version of claude-sonnet-4.
_VERSION = r"([-@](\d{3,}(-\d\d){0,2}|\d\d-\d\d))*"
_VENDOR = re.compile(r"^([a-z]{2,4}\.)?(anthropic|meta|mistral|amazon|cohere|ai21|deepseek|qwen|openai)\.")


def is_version_of(answered: str, asked: str) -> bool:
    """Whether `answered` is `asked` or a dated or numbered version of it: gemini-2.5-pro-002 is one of
    gemini-2.5-pro, gemini-2.5-pro-lite is not."""
    (given, given_tag), (wanted, wanted_tag) = _bare(answered), _bare(asked)
    if wanted in ANY_MODEL or wanted.endswith("-latest"):
        return True
    if given_tag and wanted_tag and given_tag != wanted_tag:
        return False
    return re.fullmatch(re.escape(wanted) + _VERSION, given) is not None


def names_no_model(answered: str, *, local: bool) -> bool:
    """Whether the answer's name is none that could be compared: a file of weights, or on this machine the name that
    llama.cpp's server gives to whatever it has loaded."""
    if answered.startswith(("/", "./", "~", "\\\\")) or re.match(r"[A-Za-z]:[\\/]", answered):
        return True
    return answered.lower().endswith((".gguf", ".safetensors", ".bin")) or (local and answered == STAND_IN)


def _bare(name: str) -> tuple[str, str]:
    """(name, tag) as they are compared."""
    name, _, tag = re.split(r"[/\\]", name.strip())[-1].lower().partition(":")
    name = _VENDOR.sub("", name)
    name = re.sub(r"-v\d+$", "", name) if tag.isdigit() else name  # Bedrock's -v1:0
    while (shorter := _QUANTISATION.sub("", name)) != name:
        name = shorter
    return name, "" if tag.isdigit() or tag in ("latest", "free") else tag
