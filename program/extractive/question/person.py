"""Puts a question into the third person, as a clinician would ask it of the chart, or says that it cannot safely."""

from __future__ import annotations

import re

from archehr.program.extractive.question.patient import Patient
from archehr.program.extractive.question.verbs import (
    ADVERB,
    AUXILIARY,
    THIRD_AUXILIARY,
    is_base,
    is_only_a_verb,
    third_form,
)

# Stand for "the patient" and "the patient's" until the sentence is done; PRESENT marks a verb put in the third person.
_WHO, _WHOSE, _PRESENT = "\ue000", "\ue001", "\ue002"

_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours|ourselves)\b", re.IGNORECASE)
_CONTRACTIONS = (
    (re.compile(r"\bi ?'?m\b(?! ?')", re.IGNORECASE), "I am"),
    (re.compile(r"\bi ?'?ve\b", re.IGNORECASE), "I have"),
    (re.compile(r"\bi ?'ll\b", re.IGNORECASE), "I will"),
    (re.compile(r"\bi ?'d (?=like|rather|want|prefer)\b", re.IGNORECASE), "I would "),
)
_SHE_BESIDE = (
    r"to|in|on|at|for|with|or|and|when|if|so|because|back|again|out|off|up|down|was|is|the|a|an|any|some|this|that"
    r"|about|from|as|than|\w+ing|without|after|before|into|more|not|well|better|too|now|all"
)
_POSSESSIVE = re.compile(rf"\bher (?=[a-z])(?!(?:{_SHE_BESIDE})\b)", re.IGNORECASE)
# After these, "her" is who is helped: "help her find".
_LETS = re.compile(r"\b(?:help|helps|let|lets|make|makes|made|give|gives|gave|giving|tell|told)\s+$", re.IGNORECASE)
# What the family can do about the patient, in which "I" is not who is ill.
_CARE = (
    r"(?:help|give|do|worry|expect|look|consult|bring|take (?:him|her|the patient)|get (?:him|her|the patient)"
    r"|make sure|ensure|call|feed|treat"
    r"|support|care|find|know|ask|convince|prevent|tell|be (?:worried|concerned|scared|looking|freaking|doing|giving))"
)


# "do I" | "I often take" | "I" or "me" alone | "my"
_I = re.compile(
    rf"\b(?P<before>{AUXILIARY})\s+i\b|\bi\s+(?P<adverbs>(?:{ADVERB}\s+)*)(?P<verb>[a-z]+(?:'t)?)\b|\b(?P<object>i"
    rf"|me)\b|\b(?P<whose>my|mine)\b",
    re.IGNORECASE,
)
_PLURAL = {"am": "are", "was": "were", "is": "are"}


def third_person(question: str, patient: Patient) -> str | None:
    """`question` with "the patient" in the patient's place; None where a safe third person is not in reach, and the
    writer's own words should stay. The same text where no person is in it."""
    for pattern, full in _CONTRACTIONS:
        question = pattern.sub(full, question)
    if patient.who == "writer":
        changed = _writer(question)
    elif patient.who == "other":
        changed = _other(question, patient)
    else:
        changed = question
    return changed if changed and not _FIRST_PERSON.search(changed) else None


def _writer(text: str) -> str | None:
    """The first "I" is the patient; the others are "they", unless the question has a "they" of its own."""
    if re.search(r"\b(?:we|us|our|ours|i'd)\b", text, re.IGNORECASE):
        return None
    unsafe: list[str] = []
    others = bool(re.search(r"\b(?:they|them|their|theirs)\b", text, re.IGNORECASE))
    named = False

    def person(match: re.Match[str]) -> str:
        nonlocal named
        again, named = named and not others, True
        if match["whose"]:
            return _WHOSE
        if match["object"]:
            return "them" if again else _WHO
        if not match["before"]:
            return _they(match) if again else subject(match)
        verb = match["before"].lower()
        return f"{_PLURAL.get(verb, match['before'])} they" if again else f"{THIRD_AUXILIARY[verb]} {_WHO}"

    def subject(match: re.Match[str]) -> str:
        verb = third_form(match["verb"].lower())
        if verb is None:
            unsafe.append(match["verb"])
        present = _PRESENT if verb != match["verb"].lower() else ""
        return f"{_WHO}{present} {match['adverbs']}{verb or match['verb']}"

    text = _I.sub(person, text)
    text = re.sub(r"\bmyself\b", "themselves", text, flags=re.IGNORECASE)
    text = _agree_after_and(text)
    return None if unsafe or re.search(r"(?<!\d )\bam\b", text, re.IGNORECASE) else _name_patient(text)


def _they(match: re.Match[str]) -> str:
    """ "I am" as "they are"; every other verb keeps its form."""
    return f"they {match['adverbs']}{_PLURAL.get(match['verb'].lower(), match['verb'])}"


def _agree_after_and(text: str) -> str:
    """ "the patient takes it and feel dizzy" -> "feels": the second verb of the same subject. After "has" a word that
    may be a noun is one: "has fever and cough"."""

    def agree(match: re.Match[str]) -> str:
        is_verb = is_only_a_verb if re.search(rf"{_PRESENT} has\b", match["before"]) else is_base
        verb = match["verb"].lower()
        changes = is_verb(verb) or verb in ("am", "have", "do", "don't")
        return match["before"] + ((third_form(verb) if changes else None) or match["verb"])

    text = re.sub(
        rf"(?P<before>{_PRESENT}[^,.?!{_WHO}]*? (?:and|but|or) (?:then )?)(?P<verb>[a-z]+(?:'t)?)\b(?=\s|$)",
        agree,
        text,
        flags=re.IGNORECASE,
    )
    return text.replace(_PRESENT, "")


def _other(text: str, patient: Patient) -> str | None:
    """Relatives as the message names them, else the first pronoun, become the patient; later pronouns may stay."""
    called = patient.names - {"patient", "pt", "client"}
    if called:
        names = "|".join(sorted((re.escape(n).replace(r"\-", "[- ]") for n in called), key=len, reverse=True))
        text = re.sub(
            rf"\b(?P<owner>(?:(?:my|our)\s+(?:\w+\s+)??|(?:the"
            rf"|this)\s+)?)(?P<name>{names})(?P<s>'?s\b(?= [a-z])(?! (?:is|was|not)\b))?(?!['\w])",
            _named,
            text,
            flags=re.IGNORECASE,
        )
    if not re.search(f"[{_WHO}{_WHOSE}]", text):
        text = _first_pronoun(text, patient.sex)
    if patient.is_family:
        text = re.sub(
            rf"\b(?P<aux>can|could|should|shall|may|must|will|would|do|did|does)\s+(?:i|we)\s+"
            rf"(?=(?:(?:need|have|ought) to )?{_CARE}\b)",
            lambda m: f"{THIRD_AUXILIARY[m['aux'].lower()]} the family ",
            text,
            flags=re.IGNORECASE,
        )
    return None if _FIRST_PERSON.search(text) else _name_patient(text)


def _named(match: re.Match[str]) -> str:
    """The patient for "my mother", and for "mom" where no other word belongs to it ("her mom", "an elderly father")."""
    before = match.string[: match.start()]
    if not match["owner"] and not re.search(rf"(?:^|\b(?:{AUXILIARY}|{_BEFORE_A_NAME}))\W*$", before, re.IGNORECASE):
        return match[0]
    return _WHOSE if match["s"] else _WHO


_BEFORE_A_NAME = "if|for|of|to|that|and|help|give|with|from|about|when|because|why|how|than|does|get|where|what"


def _first_pronoun(text: str, sex: str) -> str:
    """The first pronoun of the patient's sex put as the patient; the text as it is where its sex is another."""
    pronoun = re.search(r"\b(?:he|she|him|his|her|hers)\b", text, re.IGNORECASE)
    if not pronoun:
        return text
    word, start, end = pronoun[0].lower(), pronoun.start(), pronoun.end()
    if sex and (word in ("she", "her", "hers")) != (sex == "f"):
        return text
    owns = word == "his" or (word == "her" and bool(_POSSESSIVE.match(text, start)) and not _LETS.search(text[:start]))
    return text[:start] + (_WHOSE if owns else _WHO) + text[end:]


def _name_patient(text: str) -> str:
    """The marks for the patient and the patient's written out, and the verb beside the patient made to agree."""
    text = re.sub(
        rf"(?P<before>^|[,;]\s+|\b(?:why|how|when|where|what|and|or|but|then|which \w+|what \w+|if)\s+)(?P<verb>am"
        rf"|are|were|do|have|don't|haven't|aren't)\s+{_WHO}(?! and\b)",
        lambda m: f"{m['before']}{THIRD_AUXILIARY[m['verb'].lower()]} {_WHO}",
        text,
        flags=re.IGNORECASE,
    )
    text = re.sub(
        rf"(?P<before>\b[\w']+\s+|^){_WHO} (?P<verb>am|are|were|have|do|don't|haven't|aren't|need|want|feel|take"
        rf"|get)\b",
        _agree,
        text,
        flags=re.IGNORECASE,
    )
    first, mark, rest = text.replace(f"{_WHO}'s", _WHOSE).replace(_WHO, "the patient").partition(_WHOSE)
    if "the patient" in first:
        first, mark, rest = first + "their" if mark else first, "", rest
    return (first + ("the patient's" if mark else "") + rest.replace(_WHOSE, "their")).strip()


def _agree(match: re.Match[str]) -> str:
    """ "the patient have" -> "has", unless an auxiliary or "help" before it asks for the base form."""
    before = match["before"].strip().lower()
    governed = before in THIRD_AUXILIARY or before in ("help", "let", "make", "see", "and") or is_base(before)
    return match[0] if governed else f"{match['before']}{_WHO} {third_form(match['verb'].lower())}"


def names_first_person(text: str) -> bool:
    """Whether the writer speaks of themselves in it."""
    return bool(_FIRST_PERSON.search(text))
