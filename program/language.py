"""Tells a text in another language than English, which is the only one that the extractive stages read."""

from __future__ import annotations

import re
from collections import Counter

from archehr.data.case import Case
from archehr.program.types import Notice

# The commonest function words of each language, without those that are also English, Latin or a clinician's
# abbreviation: "die", "des" (a stent), "im" (an injection), "la" (an atrium), "para", "con", "per", "med", "po".
_FOREIGN = {
    language: frozenset(words.split())
    for language, words in {
        "German": """und der das ist nicht mit von dem den ein eine einen einer eines zu zur zum auf für bei nach wurde
            wurden wird werden sich auch als aus sind kein keine seit oder über unter durch vom bis hatte haben nur
            noch sowie unauffällig links rechts täglich""",
        "French": """le les un une et est du dans pour sur avec sans aux il elle qui que ce cette était avait ont été
            ne plus ou depuis chez son ses leur nous vous mais très après avant jours""",
        "Spanish": """el los las del y un una que se su sin fue es como más pero desde hasta ha muy este esta refiere
            paciente años días después por lo le sus había presenta niega ni""",
        "Italian": """il lo gli di che è una della dei delle del nel nella alla alle dal dalla sono stato stata anche
            si ha come più senza giorni dopo durante paziente""",
        "Portuguese": """os da dos das em um uma não que foi ao à mais e se sem como pelo pela há até após anos dias
            paciente também apresenta nega""",
        "Dutch": """de het een van met niet voor zijn aan bij naar werd worden door ook uit geen over heeft dagen sinds
            patiënt wegens links rechts""",
        "Danish or Norwegian": """og er det på som til ikke af av har der den blev ble var også efter etter ved eller
            hun han fra dager dage ingen""",
        "Swedish": """och är det på som till inte av har den ett var också efter vid eller hon han från utan dagar
            ingen för""",
        "Polish": """na nie się że jest oraz przez był była bez dni lub dla pacjent""",
    }.items()
}
_ENGLISH = frozenset(
    """the and of to with was is were are for on at by from not no had has have be been he she his her they this that
    which who it its or but as after before during than then you your we our will would can pt patient denies""".split()
)
_WORD = re.compile(r"[^\W\d_]+")

_FEWEST, _FEWEST_DIFFERENT = 4, 3  # function words; with fewer a text has no language
_FEWEST_LETTERS = 20


def language_notices(case: Case) -> list[Notice]:
    """What to tell of a case without an LM: that its note, or else its message, looks to be in another language."""
    note = case.note or " ".join(s.text for s in case.sentences)
    for name, text in (("note", note), ("message", case.narrative)):
        if (language := other_language(text)) is not None:
            told = f"the extractive stages read English only; this {name} looks {language}"
            return [Notice(name, "language", told)]
    return []


def other_language(text: str) -> str | None:
    """The language a text looks to be in, such as "German", or None for English and for what cannot be told.

    Counts function words, since an English note in telegraphic style has few but none of another language. A text
    that is mostly not in Latin letters looks "not to be in Latin letters".
    """
    letters = [] if text.isascii() else [c for c in text if c.isalpha()]  # ASCII letters are all Latin
    latin = sum(c < "\u0250" or "\u1e00" <= c < "\u1f00" for c in letters)
    if len(letters) >= _FEWEST_LETTERS and 2 * latin < len(letters):
        return "not to be in Latin letters"
    words = Counter(word.lower() for word in _WORD.findall(text) if not word.isupper() or len(word) > 3)
    english = sum(words[word] for word in _ENGLISH)
    counts = {language: sum(words[word] for word in known) for language, known in _FOREIGN.items()}
    best = max(counts, key=lambda language: counts[language])
    different = sum(word in words for word in _FOREIGN[best])
    found = counts[best] >= _FEWEST and different >= _FEWEST_DIFFERENT and counts[best] > 2 * english
    return best if found else None
