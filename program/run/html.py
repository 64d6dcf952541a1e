"""Pages that are one file: everything escaped, nothing loaded from anywhere, and no script but the page's own."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

BASE = Path(__file__).parent


def render_page(template: Path, script: str = "", **values: Any) -> str:
    """The page that `template` makes of `values`; it may extend page.html.j2.

    The page forbids the browser any request and any script but `script`, which must not hold "</script>".
    """
    import jinja2

    loader = jinja2.FileSystemLoader([template.parent, BASE])
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    return environment.get_template(template.name).render(script=script, script_allowed=allowed, **values)
