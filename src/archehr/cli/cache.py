"""archehr cache: where replies are kept, and how to be rid of them."""

from __future__ import annotations

from typing import Annotated

import typer


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="remove every reply in it; runs keep their answers")] = False,
) -> None:
    """Print where the replies of LMs are kept, so that no run pays for the same prompt twice, and how much they take.

    One folder for you alone: $ARCHEHR_CACHE, else archehr in $XDG_CACHE_HOME or ~/.cache; at most 1 GB.
    """
    from archehr.program.lm.cache import cache_folder, cache_size, clear_cache

    folder = cache_folder()
    if clear:
        clear_cache(folder)
    typer.echo(f"{folder}  {cache_size(folder) / 1e6:.1f} MB")
