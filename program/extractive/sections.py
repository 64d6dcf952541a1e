"""Where a sentence stands in the note: in which section and problem ("# AKI:"), and whether it is itself a header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# First match wins; the order is from the particular to the general.
_KINDS = [
    ("course", r"hospital course|course by|brief course|^course|hospital summary|icu course|assessment|impression"),
    ("followup", r"follow-?\s?up|transitional|discharge plan|appointments"),
    ("instructions", r"instructions?"),
    ("meds", r"medications?|\bmeds\b|allerg"),
    ("history", r"past (medical|surgical)|\bpmh|\bpsh|family hist|social hist|\bfhx|\bshx|history:?$"),
    ("hpi", r"history of present|\bhpi\b|reason for|chief complaint|presentation"),
    ("findings", r"results?|labs?\b|imaging|studies|exam|physical|vitals|radiology|condition|micro|path"),
    ("admin", r"procedure|service|attending|admission date|date of birth|diagnos[ie]s|disposition|code status|sex"),
]
KINDS = tuple(name for name, _ in _KINDS)
_KIND_PATTERNS = [(name, re.compile(pattern)) for name, pattern in _KINDS]
_PROBLEM = re.compile(r"\s*#+\s*(?:\d+[.)]?\s*)?(?P<title>[^:.]{1,80}?)\s*(?:[:.]|\s-\s|$)(?P<rest>.*)", re.DOTALL)
# "-2" and "1.5 mg" open with a number, not with a mark.
_MARK = re.compile(r"^\s*(?:#+\s*(?:\d+[.)])?|\[\s?[xX]?\]|[-*•·]+(?!\d)|\(?\d{1,2}[.)](?=\s))\s*")


@dataclass(frozen=True, slots=True)
class Place:
    """`section` counts major sections, `block` counts problems and sections; `title` is the block's header text."""

    section: int
    block: int
    kind: str
    title: str
    is_header: bool


def strip_mark(text: str) -> str:
    """`text` without the list mark, check box or "#" in front of it."""
    return _MARK.sub("", text).strip()


def places(texts: Sequence[str]) -> list[Place]:
    """The place of every sentence of a note, in order. Linear in the length of the note."""
    found: list[Place] = []
    section = block = 0
    kind, title = "other", ""
    for text in texts:
        problem = _PROBLEM.match(text) if text.lstrip().startswith("#") else None
        if problem:
            block, title = block + 1, problem["title"]
            found.append(Place(section, block, kind, title, len(problem["rest"].split()) < 2))
        elif _is_header(text):
            section, block, title = section + 1, block + 1, text.rstrip(": ")
            kind = _kind(text) or kind
            found.append(Place(section, block, kind, title, True))
        else:
            found.append(Place(section, block, _inline_kind(text) or kind, title, False))
    return found


def _is_header(text: str) -> bool:
    body = text.strip()
    count = len(body.split())
    if count == 0 or count > 8:
        return count == 0
    if body.endswith(":"):
        return True
    letters = [c for c in body if c.isalpha()]
    shouted = bool(letters) and all(c.isupper() for c in letters) and count <= 5 and len(letters) > 8
    return shouted or (count <= 4 and not re.search(r"\d|[.;,]$", body) and _kind(body) is not None)


def _kind(text: str) -> str | None:
    text = text.lower()
    return next((name for name, pattern in _KIND_PATTERNS if pattern.search(text)), None)


def _inline_kind(text: str) -> str | None:
    """ "Family History: maternal uncle with ESRD" belongs to its own section, whatever the one around it."""
    head, colon, _ = text.partition(":")
    return _kind(head) if colon and len(head.split()) <= 4 else None
