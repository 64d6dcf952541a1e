"""Stage 1 without an LM: the message's own question, condensed and put in the third person."""

from __future__ import annotations

import re
from functools import cache

import dspy

from archehr.program.extractive.question.cut import close, without_tail
from archehr.program.extractive.question.focus import Ask, asks_of
from archehr.program.extractive.question.message import Message, read_message, sentences
from archehr.program.extractive.question.patient import Patient, who_is_the_patient
from archehr.program.extractive.question.person import names_first_person, third_person
from archehr.program.extractive.question.request import helped_to, requested
from archehr.program.extractive.question.topic import complaints, conditions, diseases, subject_topic
from archehr.program.extractive.question.word_order import directly
from archehr.program.extractive.question.wording import plain
from archehr.program.extractive.text import all_concepts, terms

WORD_LIMIT = 15
_QUESTION = re.compile(
    r"(?:why|what|how|when|which|where|who|is|are|was|were|will|would|can|could|should|shall|does|did|has|have)\b", re.I
)
_THIS_DISEASE = re.compile(
    r"\b(?:this|that|the) (?:disease|desease|decease|condition|syndrome|illness|disorder|disear)\b", re.IGNORECASE
)


# Concepts that say how it went or what was done about it, not what the patient has.
_GENERAL = """
recover|permanent|again|stop|start|follow up|remove|cause|risk|weeks|months|machine|unlikely|confirmed|worsened
side effect|controlled|medication|family|second doctor|appointment|imaging|blood test|recovered|reversible|emergency
stable|too much|not enough|second dose|genetic|independent|damage|died|oral|walk|fall|weight|pain|movement|feeling|diet
transfuse|transfusion|end of life|missed|words|language
""".strip().replace("\n", "|")


_DANGLES = re.compile(r"\b(?:this|it|that|these|those|them|happen\w*|now)\b", re.IGNORECASE)
# "my kidneys, are they ok" points at what stands before, "is it safe to" at nothing.
_THEY = re.compile(r"\bthey\b", re.IGNORECASE)
_AT_NOTHING = re.compile(r"\bit (?:be )?(?:\w+ ){1,2}(?:to|if|that|for (?:me|him|her|us|the|my))\b", re.IGNORECASE)
_CLAUSES = re.compile(r"\s*[,;]\s*|\s+(?:and|but|so)\s+(?=(?:i|it|he|she|they|my|his|her|the) )", re.IGNORECASE)
_TELLS = re.compile(r"(?:I|he|she|my|our|his|her)\b(?!')", re.IGNORECASE)
_BUT_WANTS = re.compile(
    r"[,;.]?\s*\b(?:and |so |but )*(?:i (?:want|need|wish|would)|need (?:info|help|advice)|please|pls|plz|kindly)\b",
    re.IGNORECASE,
)
_WRITES = re.compile(
    r"\b(?:writing|name is|years? old|yrs? old|live in|reading|looking|searching|years? male|wish|want|need"
    r"|came across|web ?site|would like|cannot find|thank|your|doing a|report|question)\b",
    re.IGNORECASE,
)


class ExtractiveReformulate(dspy.Module):
    """narrative -> question: one line, 1..`limit` words. The focus `phrases`, where the data has them, take the place
    of our own search for the question; the words stay the patient's."""

    def __init__(self, limit: int = WORD_LIMIT) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, narrative: str, phrases: tuple[str, ...] = ()) -> dspy.Prediction:
        return dspy.Prediction(question=reformulate(narrative, phrases, self.limit))


def reformulate(narrative: str, phrases: tuple[str, ...] = (), limit: int = WORD_LIMIT) -> str:
    """The rule behind the stage: always one line of 1..`limit` words with one question mark, at its end.

    The main question in the third person; where that is not safe, in the writer's own words; where there is none,
    what is advised for the disease the message names."""
    message, patient = read_message(narrative), who_is_the_patient(narrative)
    given = Message("", tuple(s for p in phrases for s in sentences(p)))
    ranked = [a for a in asks_of(given if given.sentences else message) if a.marked]
    questions = [a for a in ranked if not a.plea and len(a.text.split()) > 1]
    if not questions:
        return close(_without_a_question(message, patient, ranked), limit)
    best, *others = _fitting_first([(a, _put(a, patient, limit)) for a in questions[:4]], limit)
    if both := _with_second(best, others, limit):
        return close(both, limit)
    question = _with_disease(best[1], message)
    if patient.who != "other" or not names_first_person(question):  # not "am I going to have one too"
        question = _with_topic(question, message, patient, limit)
        asked = given if given.sentences else message
        question = _after_what_it_points_at(question, best[0], asked, patient, limit)
    return close(question, limit)


def _put(ask: Ask, patient: Patient, limit: int) -> str:
    """The question as it would be asked of the chart, else in the writer's own words; of the orders in which it can be
    put, the first that fits the limit, so that no condition is cut off."""
    own = without_tail(plain(ask.text))
    put = directly(own, ask.embedded)
    orders = [third_person(put, patient) or put]
    if not ask.embedded:
        own = directly(own, embedded=False, reorder=False)
        orders.append(third_person(own, patient) or own)
    return next((q for q in orders if len(q.split()) <= limit), orders[0])


def _fitting_first(questions: list[tuple[Ask, str]], limit: int) -> list[tuple[Ask, str]]:
    """A question that would be cut gives way to one that fits and is nearly as likely the main one."""

    def merit(pair: tuple[Ask, str]) -> float:
        return pair[0].weight - 1.0 * (len(pair[1].split()) > limit)

    return sorted(questions, key=merit, reverse=True)


def _with_second(best: tuple[Ask, str], others: list[tuple[Ask, str]], limit: int) -> str:
    """Two questions joined in the order of the message where there is room; "" where there is not."""
    for other in others:
        first, second = sorted((best, other), key=lambda pair: pair[0].position)
        if set(terms(other[1])) <= set(terms(best[1])):  # asks the same again
            continue
        both = f"{first[1].strip(' ,;:.')}, and {second[1][:1].lower()}{second[1][1:]}"
        if _QUESTION.match(second[1]) and _QUESTION.match(first[1]) and len(both.split()) <= limit:
            return both
    return ""


def _with_disease(question: str, message: Message) -> str:
    """ "this disease" by its name."""
    named = diseases(message)
    if len(named) == 1 and named[0].lower() not in question.lower():
        return _THIS_DISEASE.sub(lambda _: named[0], question, count=1)
    return question


def _with_topic(question: str, message: Message, patient: Patient, limit: int) -> str:
    """ "is this normal" -> "is this normal, given fever and rash", where there is room and the question names nothing
    itself."""
    told = conditions(message, patient)
    dangles = _DANGLES.search(question) and _QUESTION.match(question)
    if not told or not dangles or _names_something(question):
        return question
    for count in (2, 1):
        longer = f"{question}, given {' and '.join(told[:count])}"
        if len(told) >= count and len(longer.split()) <= limit:
            return longer
    return question


def _after_what_it_points_at(question: str, ask: Ask, message: Message, patient: Patient, limit: int) -> str:
    """ "Wasn't that dangerous" -> "they gave the patient haldol: wasn't that dangerous": what was said just before, in
    the same sentence or the last one, or its last clause, where there is room and the question names nothing itself."""
    said = ask.lead or (message.sentences[ask.position - 1] if ask.position > 0 else "")
    before = re.sub(r"\W+(?:and|but|so)$", "", plain(said).rstrip(" .,;:!-"))
    points = (_DANGLES.search(question) or (ask.lead and _THEY.search(question))) and not _AT_NOTHING.search(question)
    if not before or not points or "," in question or _names_something(question):
        return question
    for told in (before, _CLAUSES.split(before)[-1]):
        longer = f"{third_person(told, patient) or told}: {question[:1].lower()}{question[1:]}"
        if "?" not in told and len(longer.split()) <= limit:
            return longer
    return question


def _names_something(question: str) -> bool:
    """Whether the question itself says what it is about."""
    asked = Message("", (question,))
    return bool(set(terms(question)) & _medical() or diseases(asked) or complaints(asked))


def _without_a_question(message: Message, patient: Patient, pleas: list[Ask]) -> str:
    """For a message that only tells and asks for help: what it names, most particular first."""
    if wanted := requested(message) or helped_to(message):
        wanted = without_tail(plain(wanted))
        return third_person(wanted, patient) or wanted
    named = diseases(message)[:1]
    if named:
        return f"what treatment is advised for {named[0]}"
    if subject := subject_topic(message):
        return f"what is advised for {subject}"
    if told := complaints(message)[:3]:
        return f"what explains {_list(told)}, and what treatment is advised"
    return _as_told(message, patient) or plain(
        max([a.text for a in pleas] or message.sentences or [message.subject], key=len)
    )


def _as_told(message: Message, patient: Patient) -> str:
    """ "My ear rings all day" -> "what is advised when the patient's ear rings all day": the first sentence that speaks
    of the patient, preferably of something medical."""
    told = [_BUT_WANTS.split(s)[0] for s in message.sentences]
    told = [s for s in told if _TELLS.match(s) and len(s.split()) > 3 and not _WRITES.search(s)]
    if not told:
        return ""
    clause = without_tail(plain(max(told, key=lambda s: bool(set(terms(s)) & _medical()))))
    clause = clause if clause.startswith("I") else clause[0].lower() + clause[1:]
    return f"what is advised when {third_person(clause, patient) or clause}"


def _list(phrases: list[str]) -> str:
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases)


@cache
def _medical() -> frozenset[str]:
    return all_concepts() - {f"={name}" for name in _GENERAL.split("|")}
