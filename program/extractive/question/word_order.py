"""Turns what a message asks indirectly ("I wonder why he got worse") into a direct question, where that is safe."""

from __future__ import annotations

import re

from archehr.program.extractive.question.patient import KIN
from archehr.program.extractive.question.verbs import AUXILIARY, base_of_past, base_of_third, is_base

_PRONOUN = (
    rf"(?:i|you|he|she|it|we|they|this|that|there|these|those|(?:my|our) (?:{KIN})|(?:mom|mum|dad|mother|father))"
)
_THING = r"(?:(?:the|this|that|these|those|my|his|her|its|their|our)(?: [\w'/-]+){1,4}?)"
_WH = (
    rf"(?:why|where|when|how(?: (?:long|often|soon|much|many|bad|serious|common|likely|far|fast"
    rf"|safe)(?: (?!(?:{AUXILIARY}|before|after|until)\b)\w+(?= (?:i|he|she|we|they|you)\b))?)?|(?:what|which"
    rf"|how much)(?: (?!(?:if|about|when|to|{AUXILIARY})\b)[\w'/-]+){{1,5}}(?= (?:i|he|she|we|they"
    rf"|it) (?:{AUXILIARY})\b)|what|who)"
)
_IT_IS = re.compile(
    r"^(it|he|she|that|there)(?:'?s|'re)(?= (?:any|\w+ing|an?|the|not|still|safe|ok|okay|normal|possible|too|good"
    r"|bad|true)\b)",
    re.I,
)
_WH_WORD = r"(?:what|why|how|when|where|who|which|whom|whose|what's|how's|who's|where's|whats)"
_PLURAL = frozenset(("i", "you", "we", "they", "these", "those"))
_OPENING = re.compile(
    r"^\W*(?:(?:and|but|so|also|or|now|then|because|plus|hence|ok|okay|well|sir|doctor|please|pls|plz|kindly"
    r"|(?:further|secondly|firstly|first|second|finally|next|anyway|question|lastly)(?=\s*[,:])"
    r"|my (?:\w+ )?(?:question|concern|query) (?:is|was)(?: that)?)(?![-/'])\b[\s,:.)-]*|\d+[.)]\s*)+",
    re.IGNORECASE,
)
_FINITE = r"(?:is|are|was|were|can|could|will|would|should|shall|may|might|has|have|had|does|do|did)"
# Behind "why the drain placed": by whom, or the verb that comes later.
_IS_NO_VERB = re.compile(rf"\s+by\b|(?:(?!\b(?:and|but|because|when|after|before|if|that)\b)[^,;])*\b{_FINITE}\b", re.I)
_CLOSING = re.compile(
    r"(?:[\s,;.!?-]|\b(?:please|pls|plz+|kindly|thanks?|thank (?:you|u)|thanx|thx|for real|straight up|or what"
    r"|on earth|sir|sirs|madam"
    r"|do you think|in advance|many thanks|so much|very much|(?:kind |best |warm )?regards|anyway)\b)+$",
    re.IGNORECASE,
)
_IF = re.compile(r"^(?:whether|if|weather)\s+(?:or not\s+)?", re.IGNORECASE)
_MAIN_AUX = r"(?:will|would|can|could|should|shall|is|are|do|does|may|might|am)"
_MAIN_CLAUSE = re.compile(
    r"(?<!^)\b(?:(?:what|how|why|when|where) (?:\w+ )?)?(?:(?:will|would|can|could|should|shall|does|do|may|might"
    r"|am)\s+(?:i|you|he|she|it|we|they|there|my|your|his|her|the)|(?:is|are)\s+(?:i|you|he|she|it|we|they|there)"
    r"|(?<=what )(?:would|will) happen)\b",
    re.I,
)
_SUBJECT = re.compile(rf"(?:{_PRONOUN}|the|his|her|my|an?|all|some|people)\s", re.IGNORECASE)


def directly(text: str, embedded: bool, reorder: bool = True) -> str:
    """`text` as a direct question without its opening and closing courtesies. `embedded` says that it stood behind
    "I wonder", "tell me" and the like, where "if" asks and the subject comes before the verb. `reorder`
    puts a condition last. What we cannot turn stays as it is."""
    text = _CLOSING.sub("", _OPENING.sub("", " ".join(text.split()))).strip(' "')
    text = re.sub(r"\bon earth\b ?", "", text, flags=re.IGNORECASE)
    if embedded and _IF.match(text):
        text = re.split(r"\W+(?:or not\W+)?(?:but|so)\b", text)[0]
        clause = _IT_IS.sub(r"\1 is", _IF.sub("", text))
        if _MAIN_CLAUSE.search(clause):  # "my question is, if I stop will it come back"
            return _condition_last(text)
        short = _SUBJECT.match(clause) and len(clause.split()) < 12
        return _from_if(clause) or f"{'is it true that' if short else 'whether'} {clause}"
    if embedded and not re.match(rf"(?:{_WH_WORD}|{AUXILIARY})\b", text, re.IGNORECASE):
        return _from_if(text) or text
    text = _condition_last(text) if reorder else text
    if not embedded and re.match(r"when\b", text, re.IGNORECASE):  # "when the baby was born, we saw" asks nothing
        return text
    return _wh_inverted(text) or _what_is_it(text) or _statement(text) or text


def _from_if(clause: str) -> str | None:
    """ "my wife can fly" -> "can my wife fly"; "it hurts" -> "does it hurt"."""
    by_pronoun = re.match(rf"(?P<who>{_PRONOUN})\s+(?P<verb>[\w']+)\b(?P<rest>.*)", clause, re.IGNORECASE | re.DOTALL)
    if by_pronoun and (turned := _inverted(by_pronoun["who"], by_pronoun["verb"], by_pronoun["rest"])):
        return turned
    thing = re.match(
        rf"(?P<who>(?!(?:{AUXILIARY}|not)\b)(?:(?!\b(?:that|which|who|if|when|because|since"
        rf"|so)\b)[^,;]){{2,60}}?)\s+(?P<verb>{_FINITE})\b(?P<rest>.*)",
        clause,
        re.I | re.S,
    )
    if thing:
        return _inverted(thing["who"], thing["verb"].lower(), thing["rest"])
    words = clause.split()
    at = next((i for i, word in enumerate(words[:10]) if i and base_of_third(word.lower())), 0)
    if at and words[at - 1].lower() not in ("the", "his", "her", "my", "of", "and", "these", "any", "all"):
        return _inverted(" ".join(words[:at]), words[at], " " + " ".join(words[at + 1 :]))
    acts = re.match(r"(?P<who>(?:any|the|my|this|his|her) [\w-]+) (?P<verb>\w+)\b(?P<rest>.*)", clause, re.I | re.S)
    return _inverted(acts["who"], acts["verb"], acts["rest"]) if acts else None


def _wh_inverted(text: str) -> str | None:
    """ "why she got confused" -> "why did she get confused"; "what I should do" -> "what should I do"."""
    match = re.match(rf"(?P<wh>{_WH})\s+(?P<who>{_PRONOUN})\s+(?P<verb>[\w']+)\b(?P<rest>.*)", text, re.I | re.DOTALL)
    if not match or re.match(r"who\s+(?:this|that|it)\b", text, re.IGNORECASE):
        return None
    if match["wh"].lower() == "how" and match["verb"].lower() == "about":
        return None
    turned = _inverted(match["who"], match["verb"], match["rest"])
    return f"{match['wh']} {turned}" if turned else None


_PARTICIPLE = re.compile(
    r"\s+(?:(?:not|ever|never|already|just|also|recently|always|possibly|really|only)\s+)*(?:been|had|got|gone"
    r"|done|made|said|lost|found|heard|come|become|caught|told|kept|left|put|\w+(?:ed|en))\b",
    re.IGNORECASE,
)
_AN_OBJECT = re.compile(r"\W*(?:$|(?:an?|the|my|to|for|about|with|if|when|at|in|now)\b)", re.IGNORECASE)


def _inverted(who: str, verb: str, rest: str) -> str | None:
    """Verb before subject, with "do" where the verb is no auxiliary; None for verbs we do not know."""
    word, subject = verb.lower(), who.lower()
    main_verb = (word in ("do", "does", "did") and _AN_OBJECT.match(rest)) or (
        word in ("have", "has", "had") and not _PARTICIPLE.match(rest)
    )
    if re.fullmatch(AUXILIARY, word) and not main_verb:
        return f"{verb} {who}{rest}"
    if subject in ("this", "that", "there") and not base_of_third(word):
        return None
    if base := base_of_past(word):
        return f"did {who} {base}{rest}"
    if is_base(word) and subject in _PLURAL:
        return f"do {who} {word}{rest}"
    if is_base(word) and re.match(rf"(?:(?:my|our) )?(?:{KIN})$", subject, re.IGNORECASE):
        return f"does {who} {word}{rest}"
    if base := base_of_third(word):
        return f"does {who} {base}{rest}" if subject not in _PLURAL else None
    return None


def _what_is_it(text: str) -> str | None:
    """ "how serious her situation is" -> "how serious is her situation"; "why the doctor stopped" -> "why did ..."."""
    at_end = re.match(
        r"(?P<wh>what|who|where|how \w+|why|which) (?P<who>(?:the|this|that|these|those|my|his|her|its|their"
        r"|our)(?: [^\s,]+){1,9}?|an? [\w-]+(?: [\w-]+)?)"
        r" (?P<verb>is|are|was|were)(?=$|[,.])",
        text,
        re.IGNORECASE,
    )
    if at_end:
        return f"{at_end['wh']} {at_end['verb']} {at_end['who']}{text[at_end.end() :]}"
    if means := re.match(r"what (?P<who>[^,]{2,40}?) means(?=$|[,.])", text, re.IGNORECASE):
        return f"what does {means['who']} mean{text[means.end() :]}"
    early = re.match(
        rf"(?P<wh>why|how|when) (?P<who>{_THING}) (?P<verb>[\w']+)\b(?P<rest>.*)", text, re.IGNORECASE | re.S
    )
    past = early and base_of_past(early["verb"].lower()) and not _IS_NO_VERB.match(early["rest"])
    if early and (past or re.fullmatch(_FINITE, early["verb"].lower())):
        turned = _inverted(early["who"], early["verb"], early["rest"])
        return f"{early['wh']} {turned}" if turned else None
    have = re.match(
        r"(?P<wh>what) (?P<who>(?:this|that|the) \w+) (?P<verb>have|mean|do)\b(?P<rest>.*)", text, re.I | re.S
    )
    return f"{have['wh']} does {have['who']} {have['verb']}{have['rest']}" if have else None


def _statement(text: str) -> str | None:
    """ "this is normal with a fever" -> "is this normal with a fever"."""
    match = re.match(
        rf"(?P<who>this(?: [a-z]+)?|it|there) (?P<verb>{_FINITE})\b(?P<rest>.*)", text, re.IGNORECASE | re.DOTALL
    )
    return f"{match['verb']} {match['who']}{match['rest']}" if match else None


def _condition_last(text: str) -> str:
    """ "If it does not heal will I need dialysis" -> "will I need dialysis if it does not heal"."""
    match = re.match(
        rf"(?P<condition>(?:if|unless|suppose|when(?= \w+ing\b))\b[^,;?]*?),?\s+(?:then\s+)?(?P<main>(?:(?:what|how"
        rf"|why|when|where) (?:\w+ )?)?{_MAIN_AUX}"
        rf"\s+(?:{_PRONOUN}|{_THING}|we|someone|anyone)\b[^?]*|what (?:is|are) (?!\w+ing\b)\w+[^?]*)$",
        text,
        re.IGNORECASE,
    )
    if not match or len(match["condition"].split()) < 3:
        return text
    condition = match["condition"].strip(" ,")
    return f"{match['main'].strip()} {condition[0].lower()}{condition[1:]}"
