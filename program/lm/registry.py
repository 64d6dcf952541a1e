"""Which engine a name gets. Every entry is a name pattern and a function `backend(LMSettings) -> Backend`.

Another package adds an LM by an entry point of the group `archehr.lms`: named `echo`, it serves the names `echo`,
`echo:…` and `echo/…`. A new engine of this package is a file in engines/ and a line in BUILT_IN.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint, entry_points

from archehr.program.lm.backend import Backend
from archehr.program.lm.policy import LMConfigError, check_address, refuse_remote
from archehr.program.lm.settings import LMSettings

GROUP = "archehr.lms"
BUILT_IN = {
    "gguf:?*": "gguf",
    "replay:?*": "replay",
    "knn": "knn",
    "gemini/*": "gemini",
    "gemini-*": "gemini",
    "vertex_ai/gemini-*": "gemini",
}
ANY_OTHER = "native"  # what DSPy's engines, a server at --api-base or litellm know

MakeBackend = Callable[[LMSettings], Backend]


def find_backend(asked: LMSettings) -> Backend:
    """The backend of the first entry that serves `asked.name`: built in, added by a package, any other.

    Raises LMConfigError for settings that it cannot serve; with local_only, unless it stays on this machine.
    """
    found = _maker(asked.name)(asked)
    if asked.local_only and found.endpoint is not None:
        refuse_remote(asked.name, found.endpoint)
    if asked.api_base is not None:
        check_address(asked.api_base)
    return found


def _maker(name: str) -> MakeBackend:
    for pattern, engine in BUILT_IN.items():
        if fnmatchcase(name, pattern):
            return _engine(engine)
    added = {entry.name: entry for entry in entry_points(group=GROUP)}
    prefix = next((key for key in added if name == key or name.startswith((f"{key}:", f"{key}/"))), None)
    return _engine(ANY_OTHER) if prefix is None else _load(added[prefix])


def _engine(file: str) -> MakeBackend:
    made: MakeBackend = importlib.import_module(f"archehr.program.lm.engines.{file}").backend
    return made


def _load(entry: EntryPoint) -> MakeBackend:
    try:
        made: MakeBackend = entry.load()
    except (ImportError, AttributeError) as exc:
        package = entry.dist.name if entry.dist else "a package"
        raise LMConfigError(
            f"{entry.name}: {package} offers it as {entry.value}, which cannot be imported ({type(exc).__name__}); "
            "mend or remove that package"
        ) from exc
    return made
