"""Where a sentence stands in the note: in which section and problem ("# AKI:", "1. AKI."), and whether it is itself a
header."""

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
    ("findings", r"findings?|results?|labs?\b|imaging|studies|exam|physical|vitals|radiology|condition|micro|path"),
    ("admin", r"procedure|service|attending|admission date|date of birth|diagnos[ie]s|disposition|code status|sex"),
]
KINDS = tuple(name for name, _ in _KINDS)
_KIND_PATTERNS = [(name, re.compile(pattern)) for name, pattern in _KINDS]
_PROBLEM = re.compile(r"\s*#+\s*(?:\d+[.)]?\s*)?(?P<title>[^:.]{1,80}?)\s*(?:[:.]|\s-\s|$)(?P<rest>.*)", re.DOTALL)
# "1. AKI on CKD.", "2) Resp: stable on 2 L", "3. Type 2 diabetes.", but no dose.
_NUMBERED = re.compile(
    r"\s*\(?\d{1,2}[.)]\s+(?P<title>(?:(?!\d+ ?(?:m?c?g|m[lL]|units?|puffs?)\b)[^:.]){2,80}?)\s*(?:(?P<colon>:)|\.|$)"
    r"(?P<rest>.*)",
    re.DOTALL,
)
_NUMBER = re.compile(r"\s*\(?\d{1,2}[.)]\s")
_TITLE_WORDS = 8
# "Stop vancomycin.", "Echo was normal.": says something, and titles nothing.
_SAYS = re.compile(
    r"(?:please |would |ok to |okay to )*(?:continue|stop|hold|start|avoid|check|follow|consider|take|give|obtain"
    r"|send|monitor|wean|taper|call|keep|consult|discharge|admit|transfer|place|schedule|trend|add|change|expect|see|complete"
    r"|finish|await|advance|increase|decrease|switch|discontinue|use|get|do|will|may|agree|plan|re(?:sume|start|peat"
    r"|commend|duce|move|turn|check|assess|fer))\b|.*\b(?:is|are|was|were|be|been|has|have|had|will|should|may|can|could"
    r"|shows?|showed)\b",
    re.IGNORECASE | re.DOTALL,
)
# Sections whose numbers are findings.
_FINDS = re.compile(r"impression|conclusion|diagnos|finding|interpretation", re.IGNORECASE)
# "-2" and "1.5 mg" open with a number, not with a mark.
_MARK = re.compile(r"^\s*(?:#+\s*(?:\d+[.)])?|\[\s?[xX]?\]|[-*•·]+(?!\d)|\(?\d{1,2}[.)](?=\s))\s*")

_CUT_SHORT = re.compile(r"\b(?:Dr|Drs|Mr|Ms|Mrs)\.$")


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


def joined(texts: Sequence[str]) -> tuple[list[int], list[str]]:
    """The number of the whole sentence of each text, and the whole sentences; at least one text."""
    parts = whole_sentences(texts)
    wholes = ["" for _ in range(parts[-1] + 1)]
    for part, text in zip(parts, texts, strict=True):
        wholes[part] = f"{wholes[part]} {text}".strip()
    return parts, wholes


def whole_sentences(texts: Sequence[str]) -> list[int]:
    """Number of the whole sentence that each text is part of: "Seen by Dr." and "___, who ..." are one."""
    numbers: list[int] = []
    joined = False
    for text in texts:
        numbers.append(numbers[-1] + (not joined) if numbers else 0)
        joined = bool(_CUT_SHORT.search(text.rstrip()))
    return numbers


def places(texts: Sequence[str]) -> list[Place]:
    """The place of every sentence of a note, in order. Linear in the length of the note."""
    found: list[Place] = []
    section = block = 0
    kind, title = "other", ""
    numbered = _numbered_problems(texts)
    for i, text in enumerate(texts):
        problem = _PROBLEM.match(text) if text.lstrip().startswith("#") else numbered.get(i)
        if problem:
            block, title = block + 1, problem["title"]
            found.append(Place(section, block, kind, title, not re.search(r"\w", problem["rest"])))
        elif _is_header(text):
            section, block, title = section + 1, block + 1, text.rstrip(": ")
            kind = _kind(text) or kind
            found.append(Place(section, block, kind, title, True))
        else:
            found.append(Place(section, block, _inline_kind(text) or kind, title, False))
    return found


def _numbered_problems(texts: Sequence[str]) -> dict[int, re.Match[str]]:
    """Index -> match of the numbers that title problems: all of a list in which most are followed by a sentence without
    a number, and else those with a colon. A list of medicines or of recommendations has neither, and the numbers of an
    impression are findings."""
    problems: dict[int, re.Match[str]] = {}
    items: list[int] = []
    header = ""
    for i, text in enumerate([*texts, "#"]):
        if _NUMBER.match(text):
            items.append(i)
        elif text.lstrip().startswith("#") or _is_header(text):
            if items and not _FINDS.search(header):
                problems |= _titles(items, texts, last=i)
            header, items = text, []
    return problems


def _titles(items: Sequence[int], texts: Sequence[str], last: int) -> dict[int, re.Match[str]]:
    """Those of the items of one list, which ends before `last`, that title a problem."""
    followed = sum(after - i > 1 for i, after in zip(items, [*items[1:], last], strict=True))
    found = {i: match for i in items if (match := _NUMBERED.match(texts[i])) and _is_title(match["title"])}
    return {i: match for i, match in found.items() if match["colon"] or 2 * followed > len(items)}


def _is_title(text: str) -> bool:
    return len(text.split()) <= _TITLE_WORDS and not _SAYS.match(text)


def _is_header(text: str) -> bool:
    body = text.strip()
    count = len(body.split())
    if count == 0 or count > 8:
        return count == 0
    if body.endswith(":"):
        return True
    letters = [c for c in body if c.isalpha()]
    all_capitals = bool(letters) and all(c.isupper() for c in letters)
    shouted = all_capitals and count <= 5 and len(letters) > 8 and not body.endswith(".")  # "ESCHERICHIA COLI."
    return shouted or (count <= 4 and not re.search(r"\d|[.;,]$", body) and _kind(body) is not None)


def _kind(text: str) -> str | None:
    text = text.lower()
    return next((name for name, pattern in _KIND_PATTERNS if pattern.search(text)), None)


def _inline_kind(text: str) -> str | None:
    """ "Family History: maternal uncle with ESRD" belongs to its own section, whatever the one around it."""
    head, colon, _ = text.partition(":")
    return _kind(head) if colon and len(head.split()) <= 4 else None
