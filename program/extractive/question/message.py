"""A patient's message as it was sent: its subject line, and its sentences without labels, greetings and thanks."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SUBJECT_LABELS = r"subject|subj|re|fwd?|topic|title"
# A label opens a line or follows a sentence; in capitals it may stand anywhere ("SUBJECT: Shingles MESSAGE: I am").
_LABEL = re.compile(
    rf"(?:^|(?<=[\n.?!:]))[^\w\n]{{0,9}}(?P<line>{_SUBJECT_LABELS}|message|msg|note|question|body|text)[ \t]*:+"
    r"|\b(?P<capitals>SUBJECT|MESSAGE)[ \t]*:+",
    re.IGNORECASE | re.MULTILINE,
)
_ABBREVIATION = re.compile(
    r"\b(?:dr|drs|mr|mrs|ms|st|vs|approx|yrs?|e\.g|i\.e|p\.m|a\.m|no|dept|etc)\.$|(?:^|\s)[A-Za-z]\.$", re.I
)
_NUMBER = re.compile(r"(?<!\d)\d{1,2}\)\s+(?=[A-Z])")  # "I have three questions. 1) Is it"
_DOMAIN = re.compile(r"(?:gov|com|org|net|edu|co|uk|in|html?|php|pdf)\b", re.IGNORECASE)
_END = re.compile(r"(?:\.(?:\s*\.)*|[?!]+(?:\s*[?!.]+)*)[\"')\]]*")
_GREETING = re.compile(
    r"^\W*(?:(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day)|(?:dear|respected)(?= ))\b"
    r"(?:[ /,]*\b(?:sirs?|madam|ma'?am|mam|doctors?|drs?|docs?|there|all|team|everyone|friends?|respected|dear)\b)*"
    r"|(?:(?:sirs?|madam|ma'?am|doctors?|docs?)\b[ /]*)+(?=[,.!:]))[\s,.!:;-]*",
    re.IGNORECASE,
)
_DOUBT = re.compile(r" ?\(\s?(?:sp|spelling)?\s?\??\s?\)", re.IGNORECASE)  # "(sp?)", "(?)"
_SIGNED = re.compile(r"\bsent from my \w+.*$|\[(?:NAME|CONTACT|LOCATION)\]\s*$", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Message:
    """`subject` is "" where there is none; `sentences` keep the writer's spelling and closing marks."""

    subject: str
    sentences: tuple[str, ...]


def read_message(text: str) -> Message:
    """The message of any text; no sentence only where there is no word in the body."""
    text = _DOUBT.sub("", _SIGNED.sub("", text.replace("’", "'")))
    subject, body = _without_labels(text)
    return Message(subject, tuple(sentences(body)))


def sentences(text: str) -> list[str]:
    """Sentences of informal text: at . ? ! even without a blank behind, at blank lines, and at line ends that do not
    look like a wrapped line. Those without a word are left out; greetings are taken off."""
    texts = []
    for paragraph in _unwrapped(_NUMBER.sub("\n\n", text)):
        texts += [_GREETING.sub("", s).strip() for s in _split(paragraph)]
    return [s for s in texts if re.search(r"\w", s)]


def _without_labels(text: str) -> tuple[str, str]:
    """The subject line, and the rest with every label cut out."""
    marks = list(_LABEL.finditer(text))
    subject, body = "", [text[: marks[0].start()] if marks else text]
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends[: len(marks)], strict=True):
        part = text[mark.end() : end]
        if not subject and re.fullmatch(_SUBJECT_LABELS, (mark["line"] or mark["capitals"]).lower()):
            subject, part = _first_line(part, closed=end < len(text))
        body.append(part)
    return " ".join(subject.split()), "\n\n".join(body)


def _first_line(part: str, closed: bool) -> tuple[str, str]:
    """The subject ends with its line, with the next label (`closed`), or else with its first sentence."""
    line, newline, rest = part.strip().partition("\n")
    if newline or closed:
        return line.strip(), rest
    first = (_split(line) or [""])[0]
    return first.strip(" ."), line[len(first) :]


def _unwrapped(text: str) -> list[str]:
    """Paragraphs: a line that runs on (nearly full, or the next begins small) is joined to the next."""
    paragraphs = [""]
    last = ""
    for line in text.splitlines():
        runs_on = not re.search(r"[.?!:]\W*$", last) and (line.strip()[:1].islower() or len(last) >= 60)
        if line.strip() and last and (runs_on or paragraphs[-1].strip() == ""):
            paragraphs[-1] += " " + line.strip()
        else:
            paragraphs.append(line.strip())
        last = line.strip()
    return [" ".join(p.split()) for p in paragraphs]


def _split(paragraph: str) -> list[str]:
    parts, start = [], 0
    for end in _END.finditer(paragraph):
        before, after = paragraph[start : end.end()], paragraph[end.end() :]
        if end[0] == "." and after and _goes_on(before, after):
            continue
        parts.append(before)
        start = end.end()
    return [*parts, paragraph[start:]]


def _goes_on(before: str, after: str) -> bool:
    """Whether the full stop belongs to a number, an address or an abbreviation."""
    if after[0] in ",;" or after[0].isdigit() or (after[0].isalnum() and _DOMAIN.match(after)):
        return True
    return bool(_ABBREVIATION.search(before)) and not re.match(r"\s+(?:I|My|He|She|We|It|Please|Thanks?)\b", after)
