"""Words that ask of any illness, words that are of one family, and how a dose is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from archehr.program.extractive.text import stem

DOSE = re.compile(r"\d\s?(?:mg|mcg|µg|ug|g|ml|mL|units?|puffs?|tabs?|tablets?|capsules?|drops?)\b", re.IGNORECASE)
SHORTEST_ROOT = 5  # letters that two words of one family share at least
# Words and concepts that ask, fear and hope of any illness: a note need not name them, and one that does says little.
_OF_ANYTHING = """
able advice advise afraid another answer anymore anything bad been begin behind better body brother call care cause
change come concern concerned condition continue cure dad daughter day decide diagnosis different disease dose due else
end expect experience explain father feel finally find fine fix follow forever good grandfather grandma grandmother
grandpa guess happen happened hard hear help home hope hospital husband idea illness improve information issue keep last
late later leave left level life long look lot make many matter mean medical medication medicine meds mom month mother
much mum need new next normal note notice often ok okay old option pill plan possible problem prognosis put question
reason recommend recover recovery remember result risk safe scared seem serious severe show sick sister something son
soon start stay stop suddenly suffer suggest sure symptom take tell thing think till today treat treated treatment try
turn understand unsure use wait want week whole wife wonder work worried worry worse worst wrong year yesterday
"""
_CONCEPTS_OF_ANYTHING = (
    "recover|permanent|again|stop|start|follow up|remove|cause|risk|weeks|months|worsened|medication|family"
    "|appointment|recovered|side effect|second doctor|too much|not enough|going home|controlled|feeling"
)
GENERAL = frozenset(
    [*(stem(word) for word in _OF_ANYTHING.split()), *("=" + name for name in _CONCEPTS_OF_ANYTHING.split("|"))]
)


def families(note: Iterable[str]) -> Callable[[str], str]:
    """A term as the note has it: "confus" is its "confusion". The shorter of two must begin the longer."""
    longer = {term[:end]: term for term in note for end in range(SHORTEST_ROOT, len(term))}

    def as_in_note(term: str) -> str:
        if term in note or term.startswith("="):
            return term
        shorter = (term[:end] for end in range(len(term) - 1, SHORTEST_ROOT - 1, -1))
        return longer.get(term) or next((root for root in shorter if root in note), term)

    return as_in_note
