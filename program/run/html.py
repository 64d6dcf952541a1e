"""Pages that are one file: everything escaped, nothing loaded from anywhere, and no script but the page's own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2

BASE = Path(__file__).parent


def render_page(template: Path, script: str = "", **values: Any) -> str:
    """The page that `template` makes of `values`; it may extend page.html.j2.

    The page forbids the browser any request and any script but `script`, which must not hold "</script>".
    """
    return "".join(page_pieces(template, script, **values))


def page_pieces(template: Path, script: str = "", **values: Any) -> Iterator[str]:
    """`render_page` piece by piece, for a page that is too long to hold; `values` may be iterators."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    found = _environment(template.parent).get_template(template.name)
    yield from found.generate(script=script, script_allowed=allowed, **values)


@cache
def _environment(folder: Path) -> jinja2.Environment:
    import jinja2

    loader = jinja2.FileSystemLoader([folder, BASE])
    return jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
