"""The few English verb forms that putting a question into the third person needs."""

from __future__ import annotations

# Auxiliaries, and their form beside "the patient".
THIRD_AUXILIARY = {
    "am": "is", "are": "is", "were": "was", "do": "does", "have": "has", "don't": "doesn't", "haven't": "hasn't",
    "aren't": "isn't", "weren't": "wasn't",
    **{same: same for same in (
        "is was does did has had can could will would should shall may might must isn't wasn't doesn't didn't hasn't "
        "hadn't can't cannot couldn't won't wouldn't shouldn't mustn't").split()},
}  # fmt: skip
AUXILIARY = "|".join(sorted(THIRD_AUXILIARY, key=len, reverse=True))
ADVERB = (
    r"(?:also|just|still|always|never|really|recently|often|usually|sometimes|ever|even|only|now|currently|already|"
    r"possibly|probably|actually|simply|again|suddenly|constantly|not|both)"
)
_BASE = """
add affect agree apply ask avoid be become believe bleed breathe bring burn buy call catch cause change check choose
come consider consult contain continue cook cough cry deal decide depend develop die drink drive eat exercise expect
experience fall feed feel fight find fly follow forget gain get give go happen have hear help hold increase inject
interact keep know lack lay learn leave let lie live look lose lower make mean meet miss need notice occur order pass
pay plan prefer prevent quit receive reduce refuse relate remain remember remove require run say see seem show sit
sleep smell smoke speak spend stand start stay stop suffer suspect swallow sweat swim take talk tell test think touch
travel treat try turn undergo use vomit wait wake walk want wash wear weigh wish wonder work worry
""".split()
# Also nouns: "fever and cough" holds no verb.
_ALSO_NOUNS = frozenset("cause change cough cry drink exercise fall help lack order show sleep smell work".split())
_PAST = {
    "became": "become", "began": "begin", "bled": "bleed", "broke": "break", "brought": "bring", "came": "come",
    "caught": "catch", "chose": "choose", "died": "die", "did": "do", "fell": "fall", "felt": "feel", "found": "find",
    "gave": "give", "got": "get", "had": "have", "kept": "keep", "knew": "know", "left": "leave", "lost": "lose",
    "made": "make", "passed": "pass", "sent": "send", "started": "start", "stopped": "stop", "took": "take",
    "told": "tell", "went": "go", "woke": "wake", "gained": "gain", "developed": "develop", "needed": "need",
    "turned": "turn", "said": "say", "switched": "switch", "changed": "change", "removed": "remove",
    "happened": "happen", "collapsed": "collapse", "fainted": "faint", "wanted": "want", "thought": "think",
}  # fmt: skip
# What is done in a hospital, known by its past form alone: many of these words are nouns as well.
_DONE = """
admit attempt bandage biopsy cancel clot check decide decrease delay deny diagnose discharge discontinue double
drain drop examine explain fail faint halve increase infuse inject intubate leak lower mention move offer operate order
perform place postpone prescribe prolong raise recommend reduce refer refuse release relapse replace restart resume
rupture scan sedate skip suggest swell taper test transfer transfuse treat try use wean worsen
""".split()
_DOUBLED = frozenset("admit drop refer skip transfer".split())


def _with_ed(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return word + word[-1] * (word in _DOUBLED) + ("d" if word.endswith("e") else "ed")


_PAST |= {_with_ed(word): word for word in _DONE} | {"rose": "rise", "held": "hold", "withheld": "withhold"}


def is_base(word: str) -> bool:
    """Whether `word` is a verb without an ending ("take"), of the everyday ones."""
    return word in _BASE_SET


def is_only_a_verb(word: str) -> bool:
    """A base form that is no noun as well."""
    return word in _BASE_SET and word not in _ALSO_NOUNS


def is_past(word: str) -> bool:
    """Whether `word` can only be a past form, which does not change with the person."""
    return word in _PAST or (word.endswith("ed") and len(word) > 4 and word not in ("need", "feed", "bleed"))


def base_of_past(word: str) -> str | None:
    """ "got" -> "get"; None where we do not know."""
    return _PAST.get(word)


def base_of_third(word: str) -> str | None:
    """ "takes" -> "take"; None for what is no such form of an everyday verb."""
    return _THIRD.get(word)


def third_form(word: str) -> str | None:
    """The form beside "the patient" of an auxiliary, a base form or a past form; None where that is not certain."""
    if word in THIRD_AUXILIARY:
        return THIRD_AUXILIARY[word]
    if word in _BASE_SET:
        return _with_s(word)
    return word if is_past(word) else None


def _with_s(word: str) -> str:
    if word == "have":
        return "has"
    if word.endswith(("s", "sh", "ch", "x", "o")):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeiou" else word + "s"


_BASE_SET = frozenset(_BASE) - {"be"}
_THIRD = {_with_s(word): word for word in _BASE_SET}
