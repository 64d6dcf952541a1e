"""What a demo is to the program: which case it was made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archehr.data.case import Case
from archehr.data.dataset import case_sha256
from archehr.program.stages.render import render


def made_from(demo: Mapping[str, Any], case: Case) -> bool:
    """Whether the demo shows this case, told by the case's hash where the demo keeps it, else by its
    text: ids say nothing across data sets."""
    if "case_sha256" in demo:
        return bool(demo["case_sha256"] == case_sha256([case])[0])
    if "narrative" in demo:
        return bool(demo["narrative"] == case.narrative)
    note = str(demo.get("sentences") or demo.get("note") or "").splitlines()
    return bool(note) and set(note) <= set(render(case.sentences).splitlines())
