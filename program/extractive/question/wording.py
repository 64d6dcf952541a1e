"""Small repairs of a message's wording that change no sense: shouting, apostrophes, courtesies."""

from __future__ import annotations

import re

_SPELLING = {
    "dont": "don't", "cant": "can't", "doesnt": "doesn't", "didnt": "didn't", "wont": "won't", "isnt": "isn't",
    "wasnt": "wasn't", "wouldnt": "wouldn't", "couldnt": "couldn't", "shouldnt": "shouldn't", "arent": "aren't",
    "hasnt": "hasn't", "havent": "haven't", "im": "I'm", "ive": "I've", "i'm": "I'm", "i've": "I've", "i": "I",
    "iam": "I am", "u": "you", "w/": "with", "w/o": "without", "&": "and", "thru": "through", "whats": "what's",
    "pls": "please", "plz": "please",
}  # fmt: skip
# Words that only press or greet. "just", "really" and "doctor" stay: they can carry the sense.
_COURTESY = re.compile(
    r"(?:,\s*)?\b(?:please|kindly|on earth|for real|straight up|if possible|thank you|thanks)\b(?!,? the)"
    r"|(?:,\s*)\b(?:sir|madam|doctor|doc)\b(?=\s*(?:[,?.!]|$))",
    re.IGNORECASE,
)

_RUN = re.compile(r"\b[A-Z][A-Z'-]*(?:[ ,]+[A-Z][A-Z'-]*\b(?![a-z])){2,}")
_EVERYDAY = re.compile(
    r"\b(?:IS|THE|WAS|A|TO|OF|AND|MY|IN|IT|HE|SHE|THEY|WHAT|WHY|HOW|THERE|ARE|NOT|FOR|THAT|THIS|BE)\b"
)


def plain(text: str) -> str:
    """`text` on one line without shouting and courtesies, apostrophes put in; every other word as it was written."""
    text = " ".join(_SPELLING.get(word.lower(), word) for word in calm(text).split())
    text = _COURTESY.sub("", text)
    return " ".join(re.sub(r"[!?]+(?=.*\w)", ",", text).split())


def calm(text: str) -> str:
    """Shouting in lower case: the whole where more than half of the words shout, else runs of shouted words that hold
    an everyday one, so that "CT MRI EEG" stays."""
    words = [w for w in re.findall(r"[^\W\d_]+", text) if len(w) > 1]
    if len(words) > 2 and sum(w.isupper() for w in words) > len(words) / 2:
        return _lower(text)
    return _RUN.sub(lambda m: _lower(m[0]) if _EVERYDAY.search(m[0]) else m[0], text)


def _lower(text: str) -> str:
    return re.sub(r"\bi\b", "I", text.lower())
