"""Puts a message's question into the third person, as a clinician would ask it of the chart."""

from __future__ import annotations

import re

_KIN = (
    r"(?:dad|father|papa|mom|mum|mother|mama|husband|wife|hubby|spouse|partner|fianc[eé]e?|boyfriend|girlfriend|son"
    r"|daughter|brother|sister|uncle|aunt|cousin|niece|nephew|grand(?:ma|pa|mother|father|son|daughter)|friend|baby"
    r"|child|kid|(?:father|mother|sister|brother|son|daughter)[- ]in[- ]law)"
)
_SOMEONE = re.compile(rf"\b(?:\d+[- ]?(?:year|yr|yea)s?[- ]?old\s+)?{_KIN}\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(rf"\b(?:i|i'?m|i'?ve|me|my(?!\s+(?:own\s+)?{_KIN}\b))\b", re.IGNORECASE)
_THIRD_PERSON = re.compile(r"\b(?:he|she|him|her|his|hers)\b", re.IGNORECASE)

_SPELLING = {
    "dont": "don't", "cant": "can't", "doesnt": "doesn't", "didnt": "didn't", "wont": "won't", "isnt": "isn't",
    "wasnt": "wasn't", "wouldnt": "wouldn't", "couldnt": "couldn't", "shouldnt": "shouldn't", "arent": "aren't",
    "im": "I'm", "ive": "I've", "u": "you", "w/": "with", "w/o": "without", "&": "and", "thru": "through",
}  # fmt: skip
_FILLER = re.compile(
    r"\b(?:please|pls|kindly|really|actually|exactly|honestly|basically|just|on earth|straight up|for real|or what"
    r"|or not|anyway|thank you|thanks|sir|doctor|dr|hello|hi)\b|\([^)]*\)|,? do you think\W*$",
    re.IGNORECASE,
)
_MODAL = r"(?:should|could|would|can|may|might|will|must|did|does|do|can't|won't|couldn't)"
_PAST = {"went": "go", "got": "get", "took": "take", "gave": "give", "left": "leave", "kept": "keep", "put": "put",
         "had": "have", "made": "make", "did": "do", "came": "come", "stopped": "stop", "started": "start"}  # fmt: skip


def is_about_writer(narrative: str) -> bool:
    """Whether the writer is the patient, by whom the message speaks of most and first."""
    opens_with_kin = bool(_SOMEONE.search(narrative[:160]))
    others = len(_THIRD_PERSON.findall(narrative)) + 3 * opens_with_kin
    return len(_FIRST_PERSON.findall(narrative)) >= others


def third_person(text: str, about_writer: bool) -> str:
    """`text` without filler or shouting, with "the patient" in the patient's place and no question mark."""
    text = " ".join(_SPELLING.get(w.lower(), w) for w in text.split())
    text = _calm(_FILLER.sub(" ", text))
    for pattern, replacement in [*(_WRITER_RULES if about_writer else _OTHER_RULES), *_GRAMMAR_RULES]:
        text = pattern.sub(replacement, " ".join(text.split()))
    text = re.sub(r"^why (the \w+) (\w+)\b", _ask_about_past, text, flags=re.IGNORECASE)
    first, named, rest = text.partition("the patient")
    text = first + named + re.sub(r"\bthe patient's\b", "their", rest)
    return re.sub(r"\s+([,;:?.!])", r"\1", text).strip(' ,;:.!?-"')


def _rules(*pairs: tuple[str, str]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in pairs]


_WRITER_RULES = _rules(
    (r"\bi'?m\b|\bi am\b", "the patient is"),
    (r"\bam i\b", "is the patient"),
    (r"\bi'?ve\b|\bi have\b", "the patient has"),
    (r"\bhave i\b", "has the patient"),
    (r"\bdo i\b", "does the patient"),
    (r"\bdon't i\b", "doesn't the patient"),
    (r"\bi don't\b", "the patient doesn't"),
    (r"\bi (need|want|feel|get|take|keep)\b", r"the patient \1s"),
    (r"\bdo you get\b", "does the patient get"),
    (r"\b(?:i|me|myself)\b", "the patient"),
    (r"\b(?:my|mine)\b", "the patient's"),
)
_OTHER_RULES = _rules(
    (rf"\b(?:my|our) {_KIN}'?s\b(?= [a-z])", "the patient's"),
    (rf"\b(?:his|her) {_KIN}\b", "the family"),
    (rf"\b(?:(?:my|our) )?{_KIN}\b", "the patient"),
    (r"\b(?:should|shall) (?:we|i)(?: all)? be\b", "should the family be"),
    (r"\b(?:do|should) i\b", "should the family"),
    (r"\bi the family\b", "the family"),
    (r"\b(?:he|she|him)\b", "the patient"),
    (r"\bhis\b", "the patient's"),
    # "her leg" is possessive, "her again" and "her walking" are not
    (
        r"\bher (?=[a-z])(?!(?:to|in|on|at|for|with|or|and|when|if|so|because|back|again|out|off|up|down|was|is"
        r"|\w+ing)\b)",
        "the patient's ",
    ),
    (r"\bher\b", "the patient"),
    (r"\b(?:i|we|us|me)\b", "the family"),
    (r"\b(?:my|our)\b", "the family's"),
)
# What the replacements leave crooked, and statements turned into questions.
_GRAMMAR_RULES = _rules(
    (r"\b(?:they|doctors|you guys)\b", "the team"),
    (rf"\b({_MODAL} (?:the patient|they)) has\b", r"\1 have"),
    (rf"\b({_MODAL} the patient (?:need|want|feel|get|take|keep))s\b", r"\1"),
    (r"^\W*(?:and|but|so|also|or|now|then)\b[\s,]*", ""),
    (
        r"^(?:any idea|(?:can|could|would) you (?:give|tell|advise|explain|suggest|help)\b.{0,25}?)\s*\b"
        r"(?=how|what|why|when)",
        "",
    ),
    (r"^(?:whether|if) (.+?) needs? to\b", r"does \1 need to"),
    (r"^(?:whether|if) (.+?) (can|could|will|would|should|is|are|was|has)\b(.*)", r"\2 \1\3"),
    (r"^(this|that|it|there|the patient) (is|was|will|can|could)\b(.*)", r"\2 \1\3"),
    (r"^what (this|that|the) (\w+) (have|mean|do)\b", r"what does \1 \2 \3"),
    (r"^what (this|that|it) (might|could|can|may) be\b", r"what \2 \1 be"),
    (r"^how (bad|serious|severe|long|common|likely) ((?:the|this|that) .{3,30}?) (is|are|was)\b", r"how \1 \3 \2"),
    (r"^why (the \w+) (was|is|were|are|can't|can|could)\b", r"why \2 \1"),
)  # fmt: skip


def _ask_about_past(match: re.Match[str]) -> str:
    verb = _PAST.get(match[2].lower())
    return f"why did {match[1]} {verb}" if verb else match[0]


def _calm(text: str) -> str:
    """Shouting in lower case; what may be an acronym (2 to 5 capitals in a calm sentence) stays."""
    tokens = text.split()
    shouted = sum(w.isupper() and len(w) > 1 for w in tokens) > len(tokens) / 2
    calm = [w if not shouted and re.fullmatch(r"\W*[A-Z0-9&/-]{2,5}s?\W*", w) else w.lower() for w in tokens]
    keep = {"i": "I", "i'm": "I'm", "i've": "I've"}
    return re.sub(r"[!?]+(?=.)", ",", " ".join(keep.get(w, w) for w in calm))
