"""What a message without a question asks for: "I am looking for a cure for gout" asks "Is there a cure for gout?"."""

from __future__ import annotations

import re

from archehr.program.extractive.question.cut import without_tail
from archehr.program.extractive.question.message import Message
from archehr.program.extractive.question.verbs import AUXILIARY

_WANTS = (
    r"(?:looking (?:for|into)|look for|search(?:ing)? (?:for|on)|need(?:ing|ed)?|want(?:ed)?|wou?ld (?:also "
    r"|really )?like|seeking|trying to (?:find(?: out)?|get|obtain|locate)|interested in"
    r"|send (?:me|us)|give (?:me|us)|provide(?: (?:me|us))?(?: with)?|suggest(?: (?:me|us))?|recommend(?: (?:me"
    r"|us))?|advi[sc]e (?:me|us)?(?: (?:on|about))?|tell (?:me|us)(?: about)?|inform (?:me|us) (?:of|about|on)"
    r"|explain(?: to (?:me|us))?|clarify|get|find(?: out)?|obtain|request(?:ing)?|desire|share|know(?: about)?"
    r"|learn(?: more)?(?: about)?|like)"
)
_THING = (
    r"(?:(?P<article>the|an?|any|some|more|further|your|all|other)\s+)?(?P<head>(?:(?!(?:no|to|know|and|that|for"
    r"|about|of|if|you|me)\b)[\w'/-]+\s+){0,3}?(?:informati\w+|info|data|treatments?|cure|remed(?:y|ies)"
    r"|medic(?:ine|ation)s?|drugs?|doctors?"
    r"|physicians?|specialists?|stud(?:y|ies)|research|trials?|resources?|articles?|results?|effects?|risks?"
    r"|causes?|symptoms?|solutions?|ways?|literature|options?|diet|program|procedures?|prognosis|guidelines?"
    r"|hospitals?|support groups?|support|statistics|advice|help|details?|test(?:s|ing)?|surgery|therap(?:y|ies)"
    r"|protocols?|dosage|dose|difference|reasons?|indications?|chances?|guidance|clinics?|somewhere|opinions?"
    r"|suggestions?))\s+"
    r"(?P<link>about|for|on|regarding|concerning|to|of|that|which|who|with|in|where|related to|from|after|against"
    r"|between|as to)\s+(?P<rest>[^.?!;]{3,})"
)
_REQUEST = re.compile(rf"\b{_WANTS}\s+{_THING}", re.IGNORECASE)
# "side effects of amiodarone": a thing and no verb, as somebody in a hurry writes
_BARE = re.compile(rf"\W*{_THING}", re.IGNORECASE)
_TOLD = re.compile(rf"\b(?:{AUXILIARY}|came|went|\w{{3,}}ed)\b", re.IGNORECASE)
_ABOUT = re.compile(
    r"\b(?:(?:know|learn|learning|ask|inquire|enquire|read more|more|questions?|inquiry|curious|find out) about"
    r"|knowledge (?:on|about|of)|information (?:about|on|regarding)|info (?:about|on|regarding)|consult about"
    r"|interested in)\s+(?P<rest>[^.?!;]{3,})",
    re.IGNORECASE,
)
_END = re.compile(
    r"\s*(?:,?\s*\b(?:and i|but i|so i|because|please|pls|plz\w*|kindly|thanks?|thank you|if you|if possible|i am"
    r"|i'm|i have|i was|my name|hope|as i|since|and would|and if|can you|could you|do you|would you|and can"
    r"|and could|and my|as soon|also)\b|\s-\s).*$",
    re.IGNORECASE | re.DOTALL,
)
_DANGLING = re.compile(
    r"^(?:me|us|it|this|that|these|him|her|them|you|my (?:case|problem|question|condition|daughter|son|wife"
    r"|husband|mother|father|sister|brother|mom|dad|child)|the (?:above|following|same|problem|subject)|such|same"
    r"|here|there|which|what to do|do)\b"
    r"(?: (?:problem|condition|disease|disorder|matter|case|subject|issue|illness|pain|desease|disese|decease"
    r"|topic|regard|medication|drug))?\W*$|^(?:these|those|both|my|our|his|her|this|that"
    r"|the)(?: \w+){0,2} (?:matter|subjects?|topics?|issues?|conditions?|problems?|diseases?)$",
    re.IGNORECASE,
)
_UNCLEAR = re.compile(
    r"^(?:whether|it|this|that|these|those|anything|anyone|finding|more|you|your|them|if|what|whatever)\b"
    r"|\b(?:this|these|that) \w+|\bit\b|\bwill be\b",
    re.I,
)
_HELP = re.compile(
    r"\bhelp\s+(?:me|us|him|her|my \w+)?\s*(?:to |in )?(?P<verb>(?:overcome|cure|treat|prevent|fight|get rid of"
    r"|deal with|manage|relieve|reduce|stop|control|lower|lose|gain|heal|avoid|ease|cope with"
    r"|grow))\s+(?P<rest>[^.?!;]{3,})",
    re.IGNORECASE,
)
_DULL = re.compile(
    r"\b(?:information|informations|info|data|literature|research|articles?|resources?|help|advice|suggestions?"
    r"|guidance|details?|opinions?)$",
    re.IGNORECASE,
)


def requested(message: Message) -> str:
    """The first thing that the message asks for and names, as a question; "" where it names none."""
    for sentence in message.sentences:
        if match := _REQUEST.search(sentence):
            rest = _END.sub("", match["rest"]).strip(" ,:-")
            if len(rest) > 2 and not _DANGLING.match(rest) and not re.match(r"(?:i|he|she|we)\b", rest, re.IGNORECASE):
                return _is_there(match["article"] or "", match["head"], f"{match['link']} {rest}")
    if message.sentences and (bare := _BARE.match(without_tail(message.sentences[0]))) and not _TOLD.search(bare[0]):
        return _is_there("the", bare["head"], f"{bare['link']} {bare['rest'].strip(' ,:-')}")
    about = asked_about(message)
    return f"what information is there about {about}" if about else ""


def helped_to(message: Message) -> str:
    """ "help me overcome flatulence" -> "what can help overcome flatulence"; "" where nothing is named."""
    for sentence in message.sentences:
        if match := _HELP.search(sentence):
            rest = _END.sub("", match["rest"]).strip(" ,:-")
            if len(rest) > 2 and not _DANGLING.match(rest):
                return f"what can help {match['verb'].lower()} {rest}"
    return ""


def asked_about(message: Message) -> str:
    """What the message wants to know "about", as a noun phrase; "" where it says nothing of the kind."""
    for sentence in message.sentences:
        if match := _ABOUT.search(sentence):
            rest = _END.sub("", match["rest"]).strip(" ,:-")
            if len(rest) > 2 and not _DANGLING.match(rest) and not _UNCLEAR.search(rest):
                return rest
    return ""


def _is_there(article: str, head: str, rest: str) -> str:
    plural = head.lower().endswith("s") and not head.lower().endswith(("ss", "is", "us"))
    if article.lower() in ("the", "your"):
        return f"what {'are' if plural else 'is'} the {head} {rest}"
    if _DULL.search(head):
        return f"what {head} is there {rest}" if not plural else f"what {head} are there {rest}"
    named = f"{article} {head}".strip()
    return f"{'are' if plural else 'is'} there {named} {rest}"
