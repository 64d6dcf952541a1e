"""Finds what a patient's message asks: its questions, most likely main one first, question mark or not."""

from __future__ import annotations

import re
from dataclasses import dataclass

from archehr.program.extractive.question.message import Message, read_message
from archehr.program.extractive.question.patient import KIN
from archehr.program.extractive.text import terms

_WH = r"(?:why|what|how|when|which|where|who|whom|whose|what's|whats|how's|where's|who's)"
_AUX = (
    r"(?:is|are|was|were|am|do|does|did|can|could|will|would|should|shall|has|have|had|may|might|isn't|aren't"
    r"|wasn't|weren't|don't"
    r"|doesn't|didn't|can't|couldn't|won't|wouldn't|shouldn't|hasn't|haven't|dont|doesnt|didnt|cant|couldnt|wont"
    r"|wouldnt|shouldnt)"
)
_SOMEBODY = (
    rf"(?:i|you|he|she|it|we|they|this|that|there|these|those|the|an?|my|his|her|its|our|their|your|any|anyone"
    rf"|anybody|anything"
    rf"|someone|somebody|something|people|all|one|{KIN}|doctors?)"
)
_START = (
    r"^\W*(?:(?:and|but|so|also|now|then|or|hence|please|pls|plz|kindly|ok|plus|further|\d+[.)]|second(?:ly)?"
    r"|first(?:ly)?|my (?:\w+ )?question is)[\s,:]*)*"
)
_NO_SUBJECT = (
    r"(?:been|not|to|be|\w+ing|\w+ed|reply|advi[sc]e|suggest|help|let|also|now|very|had|told|an?|got|only|always"
    r"|some|many|no|taken|send|give|appreciate|like|love|be|prefer|any|not)"
)
_OPENS = re.compile(
    rf"{_START}(?!is that (?:my|i|he|she|the|we|an?)\b)(?:(?:at|in|for|to|with|by|on|from) (?:what|which|how)\b"
    rf"|(?!is that (?:my|i|he|she|the|we|an?)\b)(?:is|are|can|could|does|do|will|would"
    rf"|should) (?!{_NO_SUBJECT}\b)\w+ (?:\w+ )?\w+|(?:why|what|how|whose)(?: (?!(?:i|he|she|we|they|my|our"
    rf"|his)\b)[\w'/-]+){{0,4}}? {_AUX}\b|{_WH}(?: (?!(?:i|he|she|we|they|my|our"
    rf"|his)\b)[\w'/-]+){{0,3}}? {_AUX} {_SOMEBODY}\b|(?:who|where) {_AUX}\b|which(?: [\w'/-]+){{1,3}}? {_AUX}\b"
    rf"|{_WH} (?:[\w'-]+ )?(?:causes?|makes?|happens?|helps?|caused|made|happened|brought|led|kind|type|about|if|else"
    rf"|to|no|not)\b"
    rf"|(?:why|how|what'?s|who'?s|how'?s)\b|(?:what|which|who) (?!(?:is|was|has|does|means|makes"
    rf"|causes)\b)(?:\w+ )?\w+s\b(?! (?:i|we|he|she|they)\b)|(?!(?:have|had) (?:an?|the|been|any|my)\b)(?!(?:do"
    rf"|had) (?:the|my|an?|this|that)\b){_AUX} {_SOMEBODY}\b|any (?:\w+ )+(?:to|for)\b)",
    re.IGNORECASE,
)
_OPENS_MARKED = re.compile(rf"{_START}(?:{_WH}|{_AUX}|any|{_AUX}n't)\b", re.IGNORECASE)
# "When my brother had ..." tells; so do "What he said was ..." and "Was told ...".
_TELLS = re.compile(
    rf"{_START}(?:(?:when|where|what|which|who|while) (?:i|he|she|they|we|my|our|his|her|it|the \w+ (?!is|are|was"
    rf"|were))\b(?! (?:{_AUX}) (?:i|he|she|we|they)\b))",
    re.IGNORECASE,
)
_BEFORE_A_QUESTION = (
    r"(?:wonder(?:ing|ed)?|wou?nder(?:ing)?|curious(?: as to)?|explain(?: to (?:me|us))?|explain(?:ing)? (?:me|us)"
    r"|tell (?:me|us)|to (?:k?now|no)|want(?:ed)?(?: to)? know|you know|anyone know|anybody know"
    r"|understand(?:ing)?|(?:question|query|concern) is(?: that)?|(?:any )?idea(?: of| on| as to)?|guide(?: me"
    r"| us)?(?: in| on| about)?"
    r"|(?:don'?t|do not|dint|not|never) (?:get|understand|know|see|sure)|not sure|unsure|suggest(?: me| us)?"
    r"|advi[sc]e(?: me| us)?(?: on| as to| about)?|worried(?: that| about)?|concerned(?: about| that)?|thought"
    r"|let (?:me|us) k?no?w|find out|see|figure out|help (?:me |us )?(?:to )?(?:in )?understand(?:ing)?"
    r"|inform (?:me|us)|please clarify|clarify|informed|asking|ask|(?:enquire|inquire) (?:about|of)|determine"
    r"|confirm|learn(?:ing)?|provide me|exploring)"
)
# "I dont get why ...", "please tell me what ...": the question is what follows.
_INSIDE = re.compile(
    rf"\b{_BEFORE_A_QUESTION}\s*[,:.]*\s*(?:(?:that|as to|to|about|me|please|if possible)\s+)?"
    rf"(?P<question>(?:{_WH}|whether|if|weather|{_AUX}(?= {_SOMEBODY}\b))\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_MY_QUESTION = re.compile(
    rf"\bmy (?:\w+ )?(?:question|query|concern) (?:is|was)\b[\s:,.]*(?:that |about |regarding "
    rf"|as to )?(?P<question>(?:{_WH}|{_AUX}|whether|if|this|it|there|he|she|the)\b \w+ \w+.*)",
    re.IGNORECASE | re.DOTALL,
)
_OPINION = re.compile(
    r"\b(?:do you|does anyone|would you|do u)\s+(?:think|believe|feel"
    r"|suggest)\b,?\s+(?:that\s+)?(?P<question>\w+ \w+.*)",
    re.IGNORECASE | re.DOTALL,
)
_DO_YOU_KNOW = re.compile(
    rf"{_START}(?:do|does|did|can|could|would|will|may)\s+(?:you|u|anyone|anybody|someone|somebody|any one|i)\b"
    rf"|{_START}any (?:idea|clue|thoughts?)\b",
    re.IGNORECASE,
)
_LATE = re.compile(
    rf"(?:(?<=[,;:-])|(?<=[,;:-] )|(?<=\bbut )|(?<=\band )|(?<=\bso )|\b(?=why|what caused|what (?:(?:is|are"
    rf"|was) (?:the|this|that|my|his|her|wrong|causing|it)|could|can|should|shall|would|do|does|else|happened"
    rf"|happens)|how (?:long|can|do|did|could|should|serious)|where (?:can|do|could)"
    rf"|would (?:this|that|it) be|is that (?:a sign|normal|ok|okay|bad|safe|possible|right|true|common|correct"
    rf"|dangerous)|when (?:can|will|should)|(?:is|was|could|can|does|will) (?:this|it|there) (?:a|an|be|from|due"
    rf"|normal|caused?|any|anything|anyway|safe|possible|ok|okay|something)\b"
    rf"|(?:should|can|could|will|would|am) i\b"
    # where a statement runs into it: "my mom has a bad valve can she have surgery", "my kidneys are they ok"
    rf"|(?:can|could|will|would|should|does|do|did) (?:he|she|they|we|it|this|that)\b"
    rf"|(?:is|are|was|were) (?:it|this|that|he|she|they|there) (?:ok|okay|going|dangerous|safe|bad|serious|still|why)\b"
    rf"|what (?:made|makes|is it|are they)\b|when (?:does|do|is) (?:it|he|she|they|this|that)\b))"
    rf"(?P<question>(?:and |so |but |then )?(?:(?:what|who|how|where)'s\b|(?:why|what|how"
    rf"|where)(?: [\w'-]+){{0,3}}? {_AUX}\b|(?:when|who|which)(?: [\w'-]+){{0,2}}? {_AUX} (?:i|it|this|we|he|she"
    rf"|the|my)\b|how to|why|(?!(?:has|have|had|was) ){_AUX} (?:i(?! {_AUX})|you|he|she|it|we|they|this|that|there"
    rf"|my|his|her|our|any|someone|anyone|these|those))\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_LATE_MARKED = re.compile(
    r"\b(?P<question>(?:(?:what|how|where|why) (?:is|are|to|can|do|does|should|will|would|could)|(?:would|should"
    r"|could|will|can|does|is) (?:he|she|it|this|i|there))\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_ASKS_THEN = re.compile(
    r"\w\W+(?:(?:will|would|can|could|should|shall|am) (?:i|you|he|she|it|we|they|this|that|there|my|his|her|the"
    r"|anyone|someone|one)"
    r"|(?:do|does|may|might) (?:i|you|he|she|it|we|they|this|these)"
    r"|(?:is|are) (?:i|you|he|she|it|we|they|this|there))\b",
    re.IGNORECASE,
)
_WHEN = re.compile(rf"{_START}(?:when|once)\b", re.IGNORECASE)
_GIVES_A_REASON = re.compile(
    r"\b(?:that'?s|thats|is|was|reason|know|see|do|doing|knows)\W*$", re.IGNORECASE
)  # "that's why I"
# "can she" asks, but not in "what can she", "if does he".
_BY_AUXILIARY = re.compile(rf"{_AUX} (?:he|she|they|we|it|this|that|there)\b", re.IGNORECASE)
_GOVERNED = re.compile(
    rf"\b(?:{_WH}|that|than|as|because|if|whether|the|all|not|never|nor|or|once|since|before|after|until)\W*$",
    re.IGNORECASE,
)
# "my leg is swollen why": not "he knows why"
_WHY_LAST = re.compile(
    rf"{_START}(?P<told>(?:i|he|she|it|we|they|my|our|his|her|the|this) .*\w)[\s,;:.-]+(?P<why>why|how come)\W*$",
    re.IGNORECASE | re.DOTALL,
)
_NOT_ASKED = re.compile(
    r"\b(?:know|knows|knew|see|say|says|said|tell|told|me|us|sure|understand|explain|wonder|wondering|is|was|and|or|reason"
    r"|that|idea)$",
    re.IGNORECASE,
)
_CONDITION = re.compile(rf"{_START}(?:if|unless|suppose|assuming|when|once)\b(?! (?:so|not|yes)\b)", re.IGNORECASE)
_PLEA = re.compile(
    rf"{_START}(?:if [^,?]{{2,40}}?,? )?(?:(?:if|whether) (?:you|u|anyone|someone) (?:have|had|can|could|may|might"
    rf"|would|know|are aware|will)\b|could advi\w+|(?:if|whether) (?:can|could)\b|what(?:'s| is| are) (?:your|u r"
    rf"|ur|you r) (?:\w+ )?(?:suggest\w*|advi[cs]e|opinions?|thoughts?|comments?|recommend\w*)|(?:can|could"
    rf"|may) (?:i|we) (?:please )?(?:have|get|ask|call|contact|email) (?:you|some|more|any|an? (?:answer|reply|copy"
    rf"|list|question))\b|(?:can|could|would|will|may) (?:you|u|anyone|someone|anybody) (?:\w+ ){{0,3}}?(?:help"
    rf"|advi[sc]e|suggest|explain|tell|recomm?end|reccomend|guide|send|give|provide|offer|get|direct|point|assist"
    rf"|call|contact|answer|email|have|ask|refer|inform)\b"
    r"|(?:do|please|kindly|pls|plz)\s+(?:reply|help|advi[sc]e|suggest|let|guide|send|give)|any (?:other |more "
    r"|further )?(?:advi[sc]e|thoughts?|ideas?|suggest\w*|sugg?\w*|help|info\w*|input|comments?)\b"
    r"|what (?:would|do|can|could|did) (?:you|u) (?:\w+ )?(?:recommend|suggest|think|advi[sc]e|offer|say)"
    r"|what (?:you|u|are your) (?:suggest|recommend|advi[sc]e|think|thoughts)|how (?:can|could) (?:you|u) help"
    r"|who (?:can|could|will) help|(?:might|may|do) you have\b|what (?:i have )?to do\b(?! (?:for|about|with|to|if"
    r"|when|in)\b)|what (?:should|can|do|shall) (?:i|we|he|she) do\W*$|where to turn|how are you"
    r"|is (?:there )?any(?:one|body) (?:who|that|can)\b|(?:can|could) (?:\w+ )?(?:anyone|someone|anybody) help"
    r"|is there any (?:suggestion|help|advice|information|info|way you)|do you have (?:any|some|more)\b"
    r"|what do i do\W*$|are you able to|do you know (?:of )?(?:any|anyone|anybody|someone|a)\b"
    r"|have you (?:ever )?(?:heard|seen|had))",
    re.IGNORECASE,
)
_IF_SO = re.compile(rf"{_START}if (?:so|not|yes)\b\W*\w*\W*$", re.IGNORECASE)
_SAYS = re.compile(
    rf"{_START}(?:{_SOMEBODY}|if|because|even|not|no|(?-i:[A-Z])(?!\w+ed\b|ave\b|ad\b|een\b)[\w'-]+)\b(?! (?:know"
    rf"|have read|understand|heard)\b)",
    re.IGNORECASE,
)  # "So the stroke is from it?"
_CLOSING = re.compile(r"\b(?:thank(?:s| you|you)|in advance|regards|awaiting|forward to|appreciat\w+)\b", re.IGNORECASE)
_DANGLING = re.compile(
    r"^\W*(?:\w+ ){0,3}(?:this|that|it|these|those|them|same|the (?:condition|problem|disease|drug))\b", re.I
)


@dataclass(frozen=True, slots=True)
class Ask:
    """One question of the message: `text` from its question word on, `weight` how likely it is the main one,
    `marked` whether it looks like a question at all, `embedded` whether it stood behind "I wonder" and the like,
    `plea` whether it only asks for help. `lead` is what its sentence says before it."""

    text: str
    weight: float
    position: int
    marked: bool
    embedded: bool = False
    plea: bool = False
    lead: str = ""


def asks(narrative: str) -> list[Ask]:
    """Every sentence of any text as an Ask, most likely main question first; empty only when there is no word in it."""
    return asks_of(read_message(narrative))


def asks_of(message: Message) -> list[Ask]:
    """The same of a message read before. Its subject line is asked only where it opens like a question."""
    texts = list(message.sentences)
    candidates = [_ask(text, i / max(len(texts) - 1, 1), i) for i, text in enumerate(texts)]
    if message.subject and (_OPENS.match(message.subject) or message.subject.endswith("?") or not candidates):
        subject = _ask(message.subject, 0.0, -1)
        candidates.append(Ask(subject.text, subject.weight - 0.8, -1, subject.marked, subject.embedded, subject.plea))
    return sorted(candidates, key=lambda a: (-a.weight, a.position))


def _ask(text: str, how_late: float, position: int) -> Ask:
    question_mark = text.rstrip(" !.\"')").endswith("?") or "??" in text
    question, how = _question_in(text, question_mark)
    plea = bool(_PLEA.match(question))
    topics = sum(t.startswith("=") for t in terms(question))
    length = len(question.split())
    weight = {"whole": 2.0, "inside": 1.5, "late": 1.2, "": 0.0}[how]
    weight += (3.0 if how else 0.3) * question_mark
    weight += 0.35 * min(topics, 4) + 0.8 * how_late
    weight += 0.8 * bool(re.match(r"(?:and |so |but )?(?:why|what|how|when)\b", question, re.IGNORECASE))
    weight -= 1.5 * (length < 4) + 0.7 * (length < 5 and not topics) + 0.04 * max(0, length - 25)
    weight -= 3.0 * (bool(_CLOSING.search(text)) and topics < 2 and not how) + 3.0 * plea
    weight -= 0.5 * (bool(_DANGLING.match(question)) and topics == 0)
    marked = not _IF_SO.match(question) and bool(how or (question_mark and length > 3 and _SAYS.match(question)))
    lead = text[: text.find(question)] if how == "late" else ""
    return Ask(question.strip(), weight, position, marked, how == "inside", plea, lead)


def _question_in(text: str, question_mark: bool) -> tuple[str, str]:
    """The question part of a sentence, and where it was found: the "whole" sentence, "inside" a lead-in, "late" in the
    sentence, or "" where it asks nothing."""
    if named := _MY_QUESTION.search(text):
        return named["question"], "inside"
    opinion = _OPINION.search(text)
    if opinion and not re.match(rf"{_START}{_WH}\b", text, re.IGNORECASE):
        return opinion["question"], "inside"
    opens = _OPENS.match(text) or (question_mark and _OPENS_MARKED.match(text))
    if opens and _TELLS.match(text) and not question_mark:
        opens = None
    inside = _INSIDE.search(text)
    if inside and len(inside["question"].split()) > 2 and (not opens or _DO_YOU_KNOW.match(text)):
        return inside["question"], "inside"
    if opens:
        return text, "whole"
    if (
        _CONDITION.match(text)
        and (question_mark or not _WHEN.match(text))
        and len(text.split()) <= 24
        and _ASKS_THEN.search(text)
    ):
        return text, "whole"
    if (last := _WHY_LAST.match(text)) and not _NOT_ASKED.search(last["told"]):
        return f"{last['why']} {last['told']}", "whole"
    late = next((m for m in _LATE.finditer(text) if _stands_alone(text, m)), None)
    if not late and question_mark:
        late = _LATE_MARKED.search(text)
    return (late["question"], "late") if late else (text, "")


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    """Whether a question found late in a sentence is one: not "that's why I", not "details should I know", not what a
    word before it governs."""
    before = text[: match.start("question")]
    by_auxiliary = _BY_AUXILIARY.match(match["question"])  # "are they ok" is whole, "why I signed" is not
    if by_auxiliary and _GOVERNED.search(before):
        return False
    return len(match["question"].split()) > (2 if by_auxiliary else 3) and not _GIVES_A_REASON.search(before)
