"""Who a message is about: its writer, somebody the writer speaks of, or nobody that can be told."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from archehr.program.extractive.question.message import sentences

_GROUPS = {
    # one person under the names that messages give them; "f", "m" or either
    "f": ("mother mom mum mama mommy mam", "wife", "fiancee fiancée", "girlfriend gf", "daughter girl", "sister",
          "aunt auntie", "niece", "grandmother grandma granny nana", "granddaughter", "stepmother stepmom",
          "stepdaughter", "woman lady female", "mother-in-law", "sister-in-law", "daughter-in-law"),
    "m": ("father dad papa daddy", "husband hubby", "boyfriend bf", "son boy", "brother", "uncle", "nephew",
          "grandfather grandpa granddad", "grandson", "stepfather stepdad", "stepson", "man gentleman guy male",
          "father-in-law", "brother-in-law", "son-in-law"),
    "": ("spouse", "partner", "fiance fiancé", "cousin", "friend", "baby newborn infant", "child kid toddler",
         "grandchild grandbaby", "patient pt client", "relative", "parent"),
}  # fmt: skip
_KIN = {name: (group.split()[0], sex) for sex, groups in _GROUPS.items() for group in groups for name in group.split()}
_UNNAMED = r"\d+[ -]?(?:months?|years?|yrs?|weeks?|mo)[ -]old(?= (?:has|is|had|was|with)\b)"  # "my 9 month old has"
KIN = "|".join(sorted((re.escape(k).replace(r"\-", "[- ]") for k in _KIN), key=len, reverse=True))
_FOR = re.compile(r"\b(?:for|about|of|on behalf of|that|if|whether|is|can|will|does|should|did|why)\s+$", re.IGNORECASE)
_NOT_FAMILY = frozenset({"friend", "girlfriend", "boyfriend", "woman", "man", "patient", "relative"})

_AGE = r"(?:\(?\d+[^\w]*(?:years?|yrs?|yea|yo|months?|weeks?|m|f)?\W*(?:old)?\W*)"
_DETERMINED = re.compile(
    rf"\b(?:(?P<owner>my|our)|an?|the|one|this|his|her)\s+(?P<between>(?:(?!(?:is|was|my|our|and|the|or|has|had)\b)[\w'-]+\s+){{0,4}}?)(?P<kin>{KIN}"
    rf"|{_UNNAMED})\b(?!'s?\s)",
    re.IGNORECASE,
)
# "Mom (83) got", "hello, mom is 69"
_BARE = re.compile(
    rf"(?:^|[.?!:]\s*)(?P<kin>{KIN})(?=\W)(?!-)|(?<!\w )\b(?P<named>mom|mum|dad|papa|mother|father) (?=is|was|has|had)",
    re.IGNORECASE,
)
_CLINICAL = re.compile(
    rf"^\W*(?:\w+\W+)?{_AGE}?(?:\W*(?:who|that)\W+)?(?:\w+ly\W+|also\W+|just\W+|recently\W+|now\W+)?(?:is|was|has"
    rf"|had|have|got|gets|went|fell"
    r"|suffer\w*|take\w*|took|been|diagnosed|died|passed|lost|woke|broke|broken|collapsed|needs?|can't|cannot"
    r"|keeps?|feels?|felt"
    r"|complain\w*|experienc\w*|developed|underwent|tripped|flipped|came|started|being|will|weighs?|tested|with"
    r"|aged?|\d+)\b(?! (?:telling|saying|says|said|told|worried|concerned|asking|wondering|trying|my|an? (?:nurse"
    r"|doctor|pharmacist|physician))\b)",
    re.IGNORECASE,
)
_SHE, _HE = re.compile(r"\b(?:she|her|hers|herself)\b", re.IGNORECASE), re.compile(r"\b(?:he|him|his|himself)\b", re.I)
_SAYS = re.compile(
    r"\W*(?:is|keeps?|was(?! told))?\s*(?:tell|say|said|told|worr|concern|ask|wonder|think|thought|want|suggest)",
    re.IGNORECASE,
)
_I_AM_ILL = re.compile(
    r"\bI(?:'?m|'?ve| am| have| had| was| got| get| take| took| use| feel| felt| suffer\w*| went| woke| need"
    r"| can'?t| cannot"
    r"| still| also| now| just| never| recently| only| keep| lost| broke| fell| started| stopped| had| do| did| can)\b"
    r"(?! (?:not )?(?:also |just |very |so |really |still |currently |now )*(?:looking|writing|wonder\w*|asking"
    r"|worried|scared|concerned|afraid|trying"
    r"|search\w*|interested|posting|curious|sure|his|her|the|their|questions?|an? (?:few |couple of "
    r"|lot of )?(?:question|student|nurse|"
    r"doctor|physician|teacher|research\w*|friend|brother|sister|son|daughter|mother|wife|husband)\w*|some questions?|"
    r"read|heard|searched|looked|seen|found|been (?:looking|searching|reading|trying|told|informed)|hop\w+"
    r"|unable to find"
    rf"|my|to know|any idea|no idea|need\w* (?:information|help|advice|to know|some)|information|the following"
    rf"|(?:an? )?(?:\w+ )?(?!(?:woman|man|male|female|lady|guy|boy|girl|patient)\b)(?:{KIN})\b))",
    re.IGNORECASE,
)
# "I am a woman", "this was my 2nd baby", "which my cousin died of"
_IN_PASSING = re.compile(
    r"\b(?:I ?'?a?m|as|like|than|which|with|from|by|lift|hug|hold|near|this (?:is|was))\s*$", re.IGNORECASE
)
# "26 m, never sick", "Went to the ER": the writer, left out.
_LEFT_OUT = re.compile(
    r"(?:^|[.?!]\s+)(?:\d+\W*(?:y\W*o|yrs?|years?)?(?:\W*old)?\W*(?:m|f|male|female|man|woman)\b"
    r"|(?:went|woke|had|was told|have been|have had|been|got|diagnosed|suffering)\b(?! (?:he|she|they|we|you|it)\b))",
    re.IGNORECASE,
)
_MINE = re.compile(
    rf"\bmy\b(?! (?:[\w'-]+\s+){{0,2}}?(?:{KIN}|name|question|concern|e-?mail|address|phone|number|family|aim|goal"
    rf"|job|hospital|opinion"
    r"|understanding|apologies|class|project|research|paper|country|city|area|contact|message|query|research"
    r"|student|house|life)s?\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Patient:
    """`names` are the words the message uses for someone else ("mother", "mom"); `sex` is "f", "m" or ""."""

    who: Literal["writer", "other", "unknown"]
    names: frozenset[str] = frozenset()
    sex: str = ""

    @property
    def is_family(self) -> bool:
        """Whether "the family" fits those who ask."""
        return self.who == "other" and not self.names & _NOT_FAMILY


# A child that is not born yet is no patient of its own.
_UNBORN = re.compile(
    r"\b(?:pregnan\w+|trimester|due date|expecting|(?:weeks|months) along"
    r"|(?:when|is|was)\b[^.?!]{0,20}\b(?:baby|child|twins?) due\b(?! for)"
    r"|(?:baby|child|twins?) (?:is|are|was) due\b(?! for))",
    re.IGNORECASE,
)

UNKNOWN = Patient("unknown")


def who_is_the_patient(text: str) -> Patient:
    """By whose illness the message speaks of most and first; `unknown` where the two are near each other."""
    text = " ".join(sentences(text.replace("’", "'")))
    mentions = Counter({group: 0 for group, _ in _KIN.values()})
    for match in [*_DETERMINED.finditer(text), *_BARE.finditer(text)]:
        _count(match, text, mentions)
    if _UNBORN.search(text):
        mentions["baby"] = mentions["child"] = 0
    she, he = len(_SHE.findall(text)), len(_HE.findall(text))
    other = max(she, he) + sum(mentions.values())
    writer = len(_I_AM_ILL.findall(text)) + len(_MINE.findall(text))
    writer += 0 if max(mentions.values()) > 1 else 2 * len(_LEFT_OUT.findall(text))
    if writer and writer >= 1.4 * other:
        return Patient("writer")
    group = _most_spoken_of(mentions, she, he)
    if group and other >= 1.2 * writer:
        names, sex = frozenset(n for n, (g, _) in _KIN.items() if g == group), _sex_of(group)
        return Patient("other", names, sex or ("f" if she > he else "m" if he > she else ""))
    return UNKNOWN


def _count(match: re.Match[str], text: str, mentions: Counter[str]) -> None:
    """Four for a relative whose illness the message opens with, one later; none for one named in passing."""
    groups = match.groupdict()
    kin = re.sub(r"\s", "-", (groups["kin"] or groups["named"]).lower())
    group = _KIN[kin if kin in _KIN else "child"][0]
    before, after = text[max(match.start() - 160, 0) : match.start()], text[match.end() : match.end() + 60]
    early = match.start() < 160
    another = re.search(r"\b(?:a|an)\b", groups.get("between") or "", re.IGNORECASE)
    ours = groups.get("owner") or "owner" not in groups or group in _NOT_FAMILY | {"baby", "child"}
    if another or not ours or _IN_PASSING.search(before) or _SAYS.match(after):
        return
    opens = early and (not re.search(r"[.?!]", before) or re.search(r"[.?!:,] *$", before))
    if opens or _CLINICAL.match(after) or _FOR.search(before):
        mentions[group] += 4 if early and (opens or _FOR.search(before)) else 1


def _most_spoken_of(mentions: Counter[str], she: int, he: int) -> str:
    """The person of the pronouns' sex who is mentioned most, the first of equals; "" where none fits."""
    wanted = "f" if she > he else "m" if he > she else ""
    fitting = [g for g in mentions if mentions[g] and (not wanted or _sex_of(g) in ("", wanted))]
    return max(fitting, key=lambda g: mentions[g], default="")


def _sex_of(group: str) -> str:
    return next(sex for g, sex in _KIN.values() if g == group)
