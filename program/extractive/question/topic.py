"""What a message is about, in the writer's own spelling: its subject line, the disease it names, the complaints."""

from __future__ import annotations

import re

from archehr.program.extractive.question.message import Message
from archehr.program.extractive.question.names import ADJECTIVES, COMPLAINT, DISEASE, EVERYDAY, NO_DISEASE, ONE_WORD
from archehr.program.extractive.question.patient import KIN, Patient
from archehr.program.extractive.question.verbs import base_of_past, base_of_third, is_only_a_verb

_NEGATED = re.compile(
    r"\b(?:no|not|without|never|denies|deny|negative for|ruled out|isn't|wasn't|don't|doesn't|didn't|nor|neither"
    r"|free of|instead of|rather than)\W+(?:\w+\W+){0,4}$",
    re.IGNORECASE,
)
_AFTER_NEGATION = re.compile(r"^\W*(?:was |has been |is )?(?:ruled out|negative|excluded|unlikely)\b", re.IGNORECASE)
_LONG_AGO = re.compile(
    r"\b(?:ago|once|removed|as a child|years back|in (?:19|20)\d\d|thought|figured|assumed|maybe|worried|afraid"
    r"|scared|might|could|if|used to|history|because of|blamed?|what)\b",
    re.IGNORECASE,
)
# "has Ganglisidose GM 1", "diagnosed with SCA3": names of diseases that no ending gives away.
_NAMED = re.compile(
    r"\b(?:diagnos\w+(?: (?:him|her|me))?(?: (?:with|as having|of|as))?|suffer\w* (?:from|with)|affected (?:by"
    r"|with)|living with|case of|(?:treatment|cure|medicine|remedy) (?:for|of)"
    r"|battling|(?<=\b[Ii] )have|(?<=\b[Hh]e )has|(?<=\bshe )has|(?<=\bShe )has|carrier of|patient of)\s+(?:(?:a"
    r"|an|the|my|his|her|severe|mild|possible|both)\s+)*"
    r"(?P<name>(?:[A-Z][\w'/-]*[A-Z\d][\w'/-]*"
    r"|[A-Z][\w'-]{2,})(?:\s+[A-Z\d][\w'/-]*)*(?P<rest>(?:\s+[a-z][\w'/-]+){0,3}))(?!\s+(?:reports?|tests?|scans?"
    r"|levels?|results?)\b)"
)
# "I have lichen planus." and no more
_HAS = re.compile(
    r"^(?:i|he|she|(?:my|our) \w+) (?:have|has|have got|has got) (?:an? )?(?P<name>(?!(?:\w+ed|shown|given|been"
    r"|taken|gotten|seen|eaten|done|gone|nothing|something|questions?)\b)[^\W\d_][\w'/-]*(?: [\w'/-]+){0,3})\W*$",
    re.IGNORECASE,
)
_SUFFERED = re.compile(
    r"\b(?:diagnos\w+ (?:with|as having|of)|suffer\w* (?:from|with)|(?:treatment|cure|remedy"
    r"|remedies) for)\s+(?:(?:a|an|the|my|his|her|severe|mild|possible)\s+)*"
    r"(?P<name>(?:[^\W\d_][\w'/-]*\s*){1,6})",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_](?:[\w'/-]*\w)?")
_DULL_SUBJECT = re.compile(
    r"clinicaltrials|customer service|\b(?:question|questions|request|enquiry|inquiry|query|help|hello|hi|general"
    r"|health|information|info"
    r"|subject|consultation|feedback|complaint|treatment|advice|medical|problem|urgent|please|comments?|dailymed"
    r"|something else"
    r"|none|medicine|medication|symptoms?|testing|research|hospital|doctor|physician|need|wanted|concern|important"
    r"|dear|mail|email)\b\W*$"
    r"|\[[A-Z]+\]|https?:",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"\b(?:i|i'?m|my|we|our|he|she|you|me|is|are|am|was|were|can|could|do|does|did|will|would|should|how|what|why"
    r"|who|where|when|which"
    r"|have|has|had|want|need|please|if|causing|suffering|looking|get|trying|help|take|taken|left|still|not|they)\b",
    re.IGNORECASE,
)


def subject_topic(message: Message) -> str:
    """The subject line where it names a thing ("limb-girdle muscular dystrophy"), at most eight words; else ""."""
    line = re.sub(
        r"\s*\b(?:information|info|help|advice)\W*(?:required|needed|wanted|please)?\W*$",
        "",
        message.subject,
        flags=re.I,
    )
    line = re.sub(
        r"^(?:(?:second opinion|more|need|questions?|quary|query|information|info|help|details?|research|advice"
        r"|treatment|cure|enquiry|inquiry) )+(?:on the treatment of|for|about|on|regarding|of|with) ",
        "",
        line,
        flags=re.I,
    ) or (message.sentences[0] if len(message.sentences) > 1 else "")
    subject = _calm(re.sub(r"\s*\([^)]*\)", "", line).strip(" .,;:!-?"))
    words = subject.split()
    if (
        not 1 <= len(words) <= 8
        or _DULL_SUBJECT.search(subject)
        or _CLAUSE.search(subject)
        or re.search(r"[?,]|^\d", line)
    ):
        return ""
    return subject if re.search(r"[^\W\d_]{3}", subject) else ""


def diseases(message: Message) -> list[str]:
    """Diseases named as the patient's own, not denied and not a relative's, the subject line's first; spelled as the
    writer spelled them."""
    phrases = [p for p in _phrases(message.subject, DISEASE) if not _negated(message.subject, p)]
    for sentence in message.sentences:
        for phrase in [*_phrases(sentence, DISEASE), *_names(sentence)]:
            if not _negated(sentence, phrase):
                phrases.append(phrase)
    return _distinct(phrases)


def complaints(message: Message) -> list[str]:
    """Symptoms told in the message and not denied, in the writer's words."""
    phrases = []
    for sentence in [message.subject, *message.sentences]:
        phrases += [p for p in _phrases(sentence, COMPLAINT) if not _negated(sentence, p)]
    return _distinct(phrases)


def conditions(message: Message, patient: Patient) -> list[str]:
    """Diseases, else complaints, that the first half of the message, or its subject line, says the patient has now."""
    clauses = [message.subject] if not _CLAUSE.search(message.subject) else []
    for sentence in message.sentences[: (len(message.sentences) + 1) // 2]:
        if not sentence.rstrip().endswith("?"):
            clauses += [c for c in re.split(r"[,;]|\bbut\b", sentence) if not _elsewhere(c, patient)]
    for heads in (DISEASE, COMPLAINT):
        phrases = [p for c in clauses for p in _phrases(c, heads) if not _negated(c, p)]
        if phrases:
            return _distinct(phrases)
    return []


def _elsewhere(clause: str, patient: Patient) -> bool:
    """Whether a clause tells of another person, of long ago or of what was only thought."""
    named = {m[0].lower() for m in re.finditer(rf"\b(?:{KIN})\b", clause, re.IGNORECASE)}
    return bool(named - patient.names) or bool(_LONG_AGO.search(clause))


def _phrases(sentence: str, heads: str) -> list[str]:
    """Head nouns with the words before them that belong to the name."""
    phrases = []
    for head in re.finditer(rf"(?<![\w'/-])(?:\w+-)*{heads}(?!\w|'\w)", sentence, re.IGNORECASE):
        if head[0].lower() in NO_DISEASE or re.match(
            r"\s+(?:of my|in my family|test|screening)\b", sentence[head.end() :]
        ):
            continue
        before = sentence[: head.start()]
        name = [head[0]]
        while len(name) < 5 and (word := re.search(r"(?:^|\s)([^\W_](?:[\w'/-]*\w)?)\s+$", before)):
            if not _belongs(word[1]):
                break
            name.insert(0, word[1])
            before = before[: word.start(1)]
        phrase = " ".join(name)
        if heads == COMPLAINT and " problem" in head[0] and not _belongs(head[0].split()[0]):
            continue
        if heads == COMPLAINT and not re.fullmatch(ONE_WORD, head[0], re.IGNORECASE):
            continue
        if phrase.lower() not in (
            "disease",
            "desease",
            "syndrome",
            "disorder",
            "infection",
            "failure",
            "attack",
            "deficiency",
        ):
            phrases.append(_calm(phrase) if _is_shouted(sentence) else phrase)
    return phrases


def _names(sentence: str) -> list[str]:
    """What a diagnosis or a suffering is said to be of, by its capitals or up to the next everyday word."""
    names = [] if _is_shouted(sentence) else [_to_stop(m["name"].split()) for m in _NAMED.finditer(sentence)]
    names += [_to_stop(m["name"].split()) for m in _SUFFERED.finditer(sentence)]
    if (short := _HAS.match(sentence)) and _to_stop(short["name"].split()) == short["name"]:
        names.append(short["name"])
    return [n for n in names if len(n) > 2 and n.lower().split()[0] not in EVERYDAY]


def _to_stop(words: list[str]) -> str:
    """The words up to the first that belongs to no name."""
    size = next((i for i, w in enumerate(words) if not _belongs(w) and not _links(words, i)), len(words))
    return " ".join(words[:size])


def _links(words: list[str], at: int) -> bool:
    """Whether the word is the "of" in "loss of appetite"."""
    return 0 < at < len(words) - 1 and words[at].lower() == "of" and _belongs(words[at + 1])


def _belongs(word: str) -> bool:
    low = word.lower()
    if (
        low in EVERYDAY
        or is_only_a_verb(low)
        or base_of_past(low)
        or base_of_third(low)
        or low.isdigit()
        or re.fullmatch(rf"(?:{KIN})(?:'?s)?", low)
    ):
        return False
    return not (low.endswith("ed") and low not in ADJECTIVES) and not low.endswith("ly")


def _negated(sentence: str, phrase: str) -> bool:
    """Whether the sentence denies it, or tells it of a relative in passing."""
    at = sentence.lower().find(phrase.lower())
    before, after = sentence[: max(at, 0)], sentence[max(at, 0) + len(phrase) :]
    clause = re.split(r"[,;.]|\bbut\b", before)[-1]
    return bool(_NEGATED.search(clause) or _AFTER_NEGATION.match(after))


def _distinct(phrases: list[str]) -> list[str]:
    """The most mentioned first, then the earliest; one of those that hold each other."""
    counts = {p.lower(): sum(p.lower() in q.lower() for q in phrases) for p in phrases}
    kept: list[str] = []
    for phrase in phrases:
        if not any(phrase.lower() in k.lower() or k.lower() in phrase.lower() for k in kept):
            longest = max((q for q in phrases if phrase.lower() in q.lower()), key=len)
            kept.append(longest)
    return sorted(kept, key=lambda p: -counts[p.lower()]) if len(kept) > 1 else kept


def _is_shouted(text: str) -> bool:
    letters = [w for w in _WORD.findall(text) if len(w) > 1]
    return sum(w.isupper() for w in letters) > max(len(letters) / 2, 1)


def _calm(text: str) -> str:
    """Shouting in lower case; a short line of one or two capitals is an acronym and stays."""
    return text.lower() if _is_shouted(text) and len(text.split()) > 1 else text
