"""Finds what a patient's message asks: its questions, most likely main one first, question mark or not."""

from __future__ import annotations

import re
from dataclasses import dataclass

from archehr.program.extractive.text import terms

_ASKS = (
    r"why|what|how|when|which|where|who|is|are|was|were|will|would|can|could|should|shall|do|does|did|has|have|am|any"
)
_SENTENCE = re.compile(r"[^.?!\n]+(?:\.(?=\d|\w\.)[^.?!\n]+)*[.?!]*")  # "1.5" and "p.m." do not end one
_OPENS = re.compile(rf"^(?:and|but|so|also|now|then|or|hence|please|kindly)?[\s,]*(?:{_ASKS})\b", re.IGNORECASE)
# "When my brother had ..." and "Was told ..." open like questions and are none, unless marked.
_STATEMENT = re.compile(
    r"^(?:(?:when|where|what) (?:i|he|she|they|we|my|our|his|her|the)\b|(?:was|were|is|are|has|have|had|did|do)\b"
    r"(?! (?:i|he|she|it|they|we|you|the|my|his|her|this|that|there|a|any)\b))(?!.*\?)",
    re.IGNORECASE | re.DOTALL,
)
# "I dont get why ...", "please tell me what ...", "any idea what ...": the question is what follows.
_INSIDE = re.compile(
    r"\b(?:wonder(?:ing)?|explain(?: to me)?|tell me|to know|understand(?:ing)?|question is|(?:any )?idea|guide"
    r"|(?:don'?t|do not) (?:get|understand|know|see)|suggest|advi[sc]e(?: me)?|worried(?: that| about)?"
    r"|concerned(?: about)?|thought|let me know)\s*[,:]?\s*(?:(?:that|as|to|about|me)\s+)?"
    rf"(?P<question>(?:why|what|how|when|whether|if|which|where|is there|{_ASKS})\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_OPINION = re.compile(r"\bdo you think,?\s+(?:that\s+)?(?P<question>\w+ \w+.*)", re.IGNORECASE | re.DOTALL)
_LATE = re.compile(
    r"\b(?:why|what caused|what (?:is|are|was|could|else)|how (?:long|can|do|did)"
    r"|(?:is|was|could|can|does|will) (?:this|that|it|there) (?:a|an|be|from|due|normal|caused?|any)\b).*",
    re.IGNORECASE | re.DOTALL,
)
_PLEA = re.compile(
    r"^(?:(?:can|could|would|will) you (?:please )?(?:help|advise|suggest|explain|tell|recommend)"
    r"|(?:do|please|kindly|pls)\s+(?:reply|help|advi[sc]e|suggest|let|guide)|any (?:other )?advi[sc]e"
    r"|what (?:would you recommend|should i do|to do))",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"\b(?:thank(?:s| you|you)|in advance|regards|awaiting)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ask:
    """One question of the message: `text` from its question word on, `weight` how likely it is the main one,
    `marked` whether it looks like a question at all."""

    text: str
    weight: float
    position: int
    marked: bool


def asks(narrative: str) -> list[Ask]:
    """Every sentence of the message as an Ask, most likely main question first. Informal text: any run of . ? ! and
    any line end closes a sentence. Empty only when there is no word in it."""
    texts = [s.strip() for s in _SENTENCE.findall(narrative) if re.search(r"\w", s)]
    found = [_ask(text, i / max(len(texts) - 1, 1), i) for i, text in enumerate(texts)]
    return sorted(found, key=lambda a: (-a.weight, a.position))


def _ask(text: str, how_late: float, position: int) -> Ask:
    opens = bool(_OPENS.match(text)) and not _STATEMENT.match(text)
    inside = _OPINION.search(text) or (None if opens else _INSIDE.search(text))
    late = None if opens or inside else _LATE.search(text)
    question = inside["question"] if inside else late[0] if late else text
    question_mark = text.rstrip(" !.").endswith("?") or "??" in text
    topics = sum(t.startswith("=") for t in terms(question))
    length = len(question.split())
    plea = bool(_PLEA.match(question if inside else text)) and (topics < 2 or question.lower().startswith("what to do"))
    weight = 3.0 * question_mark + 2.0 * opens + 1.5 * bool(inside) + 0.7 * bool(late)
    weight += 0.35 * min(topics, 4) + 0.8 * how_late
    weight += 0.8 * bool(re.match(r"(?:and |so |but )?(?:why|what|how|when)\b", question, re.IGNORECASE))
    weight -= 1.5 * (length < 4) + 0.04 * max(0, length - 25)
    weight -= 3.0 * (bool(_CLOSING.search(text)) and topics < 2) + 3.0 * plea
    marked = (question_mark or opens or bool(inside) or bool(late)) and not plea
    return Ask(question.strip(), weight, position, marked)
