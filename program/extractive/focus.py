"""Finds what a patient's message asks: its question sentences, best first, question mark or not."""

from __future__ import annotations

import re
from dataclasses import dataclass

from program.extractive.text import terms

_ASKS = (
    r"why|what|how|when|which|where|who|is|are|was|were|will|would|can|could|should|shall|do|does|did|has|have|am|any"
)
_SENTENCE = re.compile(r"[^.?!\n]+(?:\.(?=\S)[^.?!\n]+)*[.?!]*")
_OPENS = re.compile(rf"^(?:and|but|so|also|now|then|or|hence|please|kindly)?[\s,]*(?:{_ASKS})\b", re.IGNORECASE)
# "I dont get why ...", "please tell me what ...", "any idea what ...": the question is what follows.
_INSIDE = re.compile(
    r"\b(?P<lead>(?:do you think|you think|wonder(?:ing)?|explain(?: to me)?|tell me|(?:want|like|need) to know|understand(?:ing)?"
    r"|question is|(?:don'?t|do not) (?:get|understand|know|see)|(?:any )?idea|suggest|advi[sc]e(?: me)?|guide|asked"
    r"|worried(?: that| about)?|concerned(?: about)?|thought|let me know)\s*[,:]?\s*(?:that|as|to|about|me)?\s*)"
    rf"(?P<question>(?:why|what|how|when|whether|if|which|where|is there|{_ASKS})\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_LATE = re.compile(r"\b(?:why|what caused|what (?:is|are|was)|how (?:long|can|do|did))\b.*", re.IGNORECASE | re.DOTALL)
_POLITE = re.compile(r"^(?:can|could|would|will) you (?:please )?(?:help|advise|suggest|explain|tell)", re.IGNORECASE)
_CLOSE = re.compile(r"\b(?:thank(?:s| you|you)|in advance|regards|awaiting)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ask:
    """One question of the message: `text` as written, from its question word on; `weight` says how likely it is the
    main one; `marked` whether it had a question mark or opened like a question."""

    text: str
    weight: float
    position: int
    marked: bool


def sentences(narrative: str) -> list[str]:
    """The message in sentences; informal text, so any run of . ? ! and any line end closes one."""
    return [s.strip() for s in _SENTENCE.findall(narrative) if re.search(r"\w", s)]


def asks(narrative: str) -> list[Ask]:
    """What the message asks, most likely main question first. Empty only when there is no word in it."""
    texts = sentences(narrative)
    found = [_ask(text, i, len(texts)) for i, text in enumerate(texts)]
    return sorted(found, key=lambda a: (-a.weight, a.position))


def _ask(text: str, position: int, count: int) -> Ask:
    inside = _INSIDE.search(text)
    opens = bool(_OPENS.match(text))
    late = None if opens or inside else _LATE.search(text)
    question = inside["question"] if inside and not opens else late[0] if late else text
    marked = text.rstrip(" !.").endswith("?") or "??" in text
    topics = sum(t.startswith("=") for t in terms(question))
    length = len(question.split())
    weight = 3.0 * marked + 2.0 * opens + 1.5 * bool(inside) + 0.7 * bool(late) + 0.35 * min(topics, 4)
    weight += 0.8 * position / max(count - 1, 1) + 0.8 * bool(
        re.match(r"(?:and |so |but )?(?:why|what|how)\b", question, re.I)
    )
    weight -= 1.5 * (length < 4) + 0.04 * max(0, length - 25) + 3.0 * bool(_CLOSE.search(text) and topics < 2)
    weight -= 2.0 * bool(_POLITE.match(text) and topics < 2)
    return Ask(question.strip(), weight, position, marked or opens or bool(inside))
