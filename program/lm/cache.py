"""DSPy's reply cache: one for each user, in a folder that only they can read; beside a reply, what it took."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import astuple
from pathlib import Path
from typing import Any

from archehr.data.case import DataError
from archehr.program.lm.ledger import Tokens

SIZE_LIMIT = 2**30  # bytes, and up to 64 MB for SQLite's own; what was stored longest ago goes first
IN_MEMORY = 2_000  # entries, two a reply; all are on disk
MODELS = "models.json"  # which model versions replied: optimize keeps them here, for cached replies name none
_TOKENS = {"archehr": "tokens"}  # beside what was asked: the key under which its tokens stand
_decided = False  # whether replies have a place of our choosing yet


def keep_replies_in_memory() -> None:
    """Unless `configure_cache` named a folder: no reply on disk. DSPy's own default is a file that others can read."""
    global _decided
    import dspy

    if not _decided:
        dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
        _decided = True


def keep_tokens(asked: dict[str, Any], took: Tokens | None) -> None:
    """Keep what the reply to a call took: DSPy keeps it too, but tells nobody who gets the reply from the cache."""
    import dspy

    if took is not None:
        dspy.cache.put(asked | _TOKENS, astuple(took))


def kept_tokens(asked: dict[str, Any]) -> Tokens | None:
    """What the cached reply to a call took when it was made; None where that is not known."""
    import dspy

    took = dspy.cache.get(asked | _TOKENS)
    return None if took is None else Tokens(*took)


def cache_folder() -> Path:
    """$ARCHEHR_CACHE, else `archehr` in $XDG_CACHE_HOME, which is ~/.cache unless it is set."""
    if named := os.environ.get("ARCHEHR_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "archehr"


def cache_size(folder: Path) -> int:
    """Bytes of the replies in `folder`."""
    return sum(path.stat().st_size for shard in _shards(folder) for path in shard.rglob("*") if path.is_file())


def clear_cache(folder: Path) -> None:
    """Remove the replies in `folder` and nothing else that is there. Raises DataError."""
    try:
        for shard in _shards(folder):
            shutil.rmtree(shard)
        (folder / MODELS).unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be emptied ({error.strerror}); mend its permissions") from None


def _shards(folder: Path) -> list[Path]:
    """The folders of numbers in which DSPy keeps replies."""
    found = folder.iterdir() if folder.is_dir() else ()
    return [p for p in found if re.fullmatch(r"\d{3}", p.name) and (p / "cache.db").exists()]


def configure_cache(folder: Path) -> None:
    """Keep replies in `folder` (made, mode 0700; files 0600), in memory and on disk, without unpickling anything
    but plain data.

    The process's umask becomes 077, for the cache's files are opened later and by other threads.
    """
    global _decided
    import sqlite3

    import dspy

    os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        dspy.configure_cache(
            enable_disk_cache=True,
            enable_memory_cache=True,
            disk_cache_dir=str(folder),
            disk_size_limit_bytes=SIZE_LIMIT,
            memory_max_entries=IN_MEMORY,
            restrict_pickle=True,
        )
    except (OSError, sqlite3.Error) as exc:
        why = getattr(exc, "strerror", None) or exc
        raise DataError(
            f"{folder}: the cache folder cannot be written or read ({why}); free space, remove it, or choose another "
            "with ARCHEHR_CACHE"
        ) from None
    _decided = True
