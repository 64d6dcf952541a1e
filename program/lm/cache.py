"""DSPy's reply cache, kept in a folder of its own that only the user can read."""

from __future__ import annotations

import os
from pathlib import Path

from archehr.data.case import DataError

_decided = False  # whether replies have a place of our choosing yet


def keep_replies_in_memory() -> None:
    """Unless `configure_cache` named a folder: no reply on disk. DSPy's own default is a file that others can read."""
    global _decided
    import dspy

    if not _decided:
        dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
        _decided = True


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
            enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=str(folder), restrict_pickle=True
        )
    except (OSError, sqlite3.Error) as exc:
        why = getattr(exc, "strerror", None) or exc
        raise DataError(
            f"{folder}: the cache folder cannot be written or read ({why}); free space, remove it, or choose another "
            "with ARCHEHR_CACHE"
        ) from None
    _decided = True
