"""Closes a question: one line, at most so many words, never ending on a word that leans on the next."""

from __future__ import annotations

import re

from archehr.program.extractive.question.patient import KIN

_LEANS = frozenset(
    """
    the a an of to for with and or but in on at by from if when as is was be that which their so would will can does
    did has because who all my his her its our your this these those like than into about after before while since
    due very more most not no i am are were have had do could should may might it's i'm i've we he she they between
    during without under over through such any some each every how what why where whether per patient's taking
    having being getting given also just only even other another using
    """.split()
)
_LABEL = re.compile(r"^(?:\W*(?:subject|message|note|re)\s*:)+\s*", re.IGNORECASE)  # left where thanks stood before it
_JOINS = frozenset("and because since but so which or while if when although".split())
_LINKS = frozenset("in for with from at on by after before to as without during i the my".split())
_SUBORDINATE = frozenset("that which whether who whose".split())
_COUNTS = re.compile(r"one|two|three|four|five|six|\d+")
# What opens a new sentence though no mark ends the last: "… a genetic test for MM I am 63".
_NEW_SENTENCE = re.compile(
    r"(?P<before>[\w']+)(?P<mark>[,;-]*)\s+(?:I am\b|I'm\b|I have\b|my (?:name|age|email)\b|(?:he|she) is\b"
    r"|i live\b|i (?:shall|will) be\b|i think\b|please\b|pls\b|plz\w*|kindly\b"
    r"|thanks?\b|thank you\b|regards\b|do reply\b|hope\b|and if so\b|if yes\b|any help\b|and (?:I am|I'm|thank)\b"
    rf"|my (?:{KIN}) (?:(?:just|also|already|now|never|recently|only) )*(?:is|was|has|had|got|started|stopped|says|said"
    r"|told|thinks|takes|took|needs|wants|keeps|went|came)\b"
    r"|would be (?:very |really |much |so |greatly |of )*(?:helpful|great|appreciated|nice|help)\b)",
    re.IGNORECASE,
)
# "… what can we do he has had bad thoughts": a subject and its verb that nothing before them governs.
_RUNS_ON = re.compile(
    r"(?P<before>[\w']+)(?P<mark>[,;]?) (?:i|he|she|we|they|it) (?:has|have|is|are|am|was|were|had|did|do|want|need)\b",
    re.IGNORECASE,
)
_GOVERNS = frozenset(
    """
    that if when because and or as since while than which what how but who before after where why until think once
    believe said say is are was were do does did can could will would should shall may might has have had am whether
    like whenever so though although cause even to not whom my
    """.split()
)


def close(question: str, limit: int = 15) -> str:
    """`question` with a capital and one question mark, at most `limit` words: an aside goes first, then the last
    clauses, then words at the end. Any text; "What is asked?" where no word is left."""
    text = _LABEL.sub("", " ".join(re.sub(r"\?+", " ", question).split()))
    if len(text.split()) > limit:
        text = " ".join(re.sub(r"\s*\([^()]*\)", "", text).split()) or text
    words = text.split()
    if len(words) > limit:
        words = _to_a_clause(words, limit)
    text = re.sub(r"\s+([,;:.!?])", r"\1", " ".join(words)).strip(' ,;:.!?-–—/&*#>"')
    text = text.replace('"', "") if text.count('"') % 2 else text
    if not re.search(r"\w", text):
        text = " ".join("What is asked".split()[:limit])
    return text[0].upper() + text[1:] + "?"


def without_tail(question: str, limit: int = 15) -> str:
    """`question` up to where a new sentence begins without a mark: "… a genetic test for MM I am 63"."""
    start = len(" ".join(question.split()[:2]))
    head = _before(_NEW_SENTENCE, question, start)
    return _before(_RUNS_ON, head, start) if len(head.split()) > limit else head


def _before(opening: re.Pattern[str], text: str, start: int) -> str:
    """`text` up to the first opening of a sentence that no word before it governs."""
    for match in opening.finditer(text, start):
        if match["mark"] or match["before"].lower() not in _GOVERNS:
            return text[: match.end("before")]
    return text


def _to_a_clause(words: list[str], limit: int) -> list[str]:
    """The first words up to the last comma or joining word in the second half of the room, else all that fit, less
    what leans on the next word ("two or three" stays together, and "that the" goes)."""
    least = max(limit // 2 - 1, 1)
    low = [word.lower() for word in words]
    ends = [i for i in range(least, limit + 1) if low[i - 1].endswith((",", ";", ":", "."))]
    ends += [i for i in range(least, limit + 1) if low[i] in _JOINS and not _COUNTS.fullmatch(low[i - 1])]
    late = [i for i in range(max(limit - 3, 1), limit + 1) if low[i] in _LINKS]
    head = words[: max(ends or late[-1:] or [limit])]
    subordinate = [i for i in range(max(len(head) - 3, least), len(head)) if low[i] in _SUBORDINATE]
    head = head[: subordinate[0]] if subordinate else head
    while len(head) > 3 and re.sub(r"[^\w']", "", head[-1].lower()) in _LEANS:
        head = head[:-1]
    return head
