"""Knows a note's headers: by their form ("Brief Hospital Course:", "## Plan", "PLAN") and the common ones by name."""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

_NAMES = "|".join(
    """
history of (?:the )?present illness|hpi|chief complaint|presenting complaint
reason for (?:admission|visit|consult(?:ation)?)
(?:past |prior )?(?:medical|surgical|family|social|psychiatric|ob|obstetric) history
pmhx?|pshx?|fhx?|shx
(?:brief |summary of )?hospital course(?: by (?:problem|system)s?)?|(?:micu|icu|ed|floor) course
(?:discharge |home |current |admission |outpatient )?medications?(?: on (?:admission|discharge)| prior to admission)?
(?:discharge |home )?meds|(?:drug |medication )?allergies|immunizations
(?:discharge|follow-?\\s?up|after ?care|patient) instructions?|follow-?\\s?up(?: plans?| appointments?)?
(?:discharge|admission|admitting|final|principal|primary|secondary|preoperative|postoperative) diagnos[ie]s
discharge (?:condition|disposition|exam|labs|plan|physical exam)|transitional issues|(?:active|acute|chronic) issues
pertinent results|(?:laboratory|lab)(?: data| results| findings)?s?|labs|imaging(?: studies)?
radiology|microbiology|pathology
(?:general )?physical exam(?:ination)?|exam(?:ination)?|review of systems|ros|vitals?(?: signs)?
assessment(?:(?: and| &|/) ?plan)?|a/p|impression|plan|subjective|objective|findings|recommendations?|diagnos[ie]s
major surgical or invasive procedure|procedures?(?: performed)?|indications?|technique|comparison
service|attending|code status|disposition|summary
""".split("\n")[1:-1]
)
_NAMED = rf"(?:{_NAMES})"
_COLON = r"(?::\*\*|\*\*:|:)(?=\s|$)"

# "Service:", "**Plan:**", "GI/FEN:"
FIELD = re.compile(rf"(?:\*\*)?[A-Z][\w/&'()-]*(?: [\w/&'()-]+){{0,6}}{_COLON}")
_SECTION = re.compile(rf"(?:\*\*)?(?i:{_NAMED}){_COLON}")
_ALONE = re.compile(
    rf"#{{1,6}}\s*(?=[^\W\d])[^.:]{{1,60}}:?$|\*\*[^*]{{1,80}}\*\*:?$|__[^_]{{1,80}}__:?$|(?i:{_NAMED})$"
)
_WITHIN_LINE = re.compile(
    rf"(?:^|(?<=[.!?:] ))#{{1,6}}\s?[^.:#]{{1,60}}:(?=\s)|^{FIELD.pattern}|(?<=\s)(?=[A-Z*]){_SECTION.pattern}"
)
_SMALL_WORDS = frozenset("of or and on by to the prior".split())
_STANDS_ALONE = frozenset(("HPI:", "Service:", "Allergies:", "Attending:"))


def is_header(line: str) -> bool:
    """Whether the line is a header and nothing else."""
    return bool(FIELD.fullmatch(line) or _ALONE.match(line) or _is_shouted(line))


def opens_section(line: str) -> bool:
    """Whether the line begins with a section's common name and a colon."""
    return _SECTION.match(line) is not None


def headers(line: str) -> Iterator[Span]:
    """Where in a line headers stand: at its start, a problem's or a section's after a stop ("# AKI:", "Plan:"), and
    anywhere a section's in title case ("back pain Brief Hospital Course:")."""
    for match in _WITHIN_LINE.finditer(line):
        before = line[: match.start()].rstrip()[-1:]
        if not before or match[0].startswith("#") or before in ".!?:" or _is_titled(match[0]):
            yield match.span()


def _is_titled(header: str) -> bool:
    words = header.split()
    titled = all(word[0].isupper() or word in _SMALL_WORDS for word in words)
    return header in _STANDS_ALONE or (titled and len(words) > 1)


def _is_shouted(line: str) -> bool:
    """ "ASSESSMENT AND PLAN" """
    return len(line.split()) <= 5 and len(line) > 8 and line.isupper() and not re.search(r"\d|[.,;]$", line)
