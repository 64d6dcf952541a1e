"""Cue words: how notes reason, decide, report a course or merely record, and what a message asks for."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

_CUES = {
    # why something happened, what it was taken to be
    "reason": (
        r"c/w|consistent with|\bfelt\b|attribut|ascribed|due to|2/2|d/t|second(?:ary|ary) to"
        r"|in (?:the )?setting of|in keeping with|thought to|\blikely\b|i\.e\.|impression|accounts? for"
        r"|accounted for|contribut|provok|precipitat|tipped|trigger|caus(?:e|ed|ing)\b|owing to|explain"
        r"|because|etiolog|induced|associated|mediated|related|meets? .{0,15}criteria|diagnos"
    ),
    # a choice for or against something, and its ground
    "decision": (
        r"not (?:felt|indicated|offered|pursued|given|recommended|attempted|favou?r|a candidate|required|needed)"
        r"|no (?:\w+ )?indication|did not (?:favou?r|feel|recommend|offer)|elected|deferred|unsafe"
        r"|too (?:unstable|high|sick)|prohibitive|contraindicat|decision|reserved|rather than|instead"
        r"|candidate|recommend|advis|prefer|reasonable|benefit"
    ),
    "outlook": (
        r"expect|anticipat|\bodds\b|recover|permanent|improv|resolv|prognos|long.?term|weeks to months"
        r"|should|revers|over (?:the )?(?:ensuing|next|coming|months|weeks)|may (?:take|lag|be|remain|need)"
        r"|return(?:ed)? to|regain"
    ),
    "plan": (
        r"\bplan(?:ned|s)?\b|through (?:at least)?|schedul|booked"
        r"|to (?:be|come|start|restart|begin|finish|stop|complete)\b|will (?:be|need|consider|call|have)"
        r"|revisit|no (?:earlier|sooner) than|contingent|once |until|then |if |when |in \d+"
        r"|\d+[- ](?:wk|week|month|mo|day)s?\b"
    ),
    # somebody's opinion, or what the patient and family were told
    "opinion": (
        r"explain|told|discuss(?:ed)? (?:that|with)|communicat|consult|\(dr"
        r"|\bper (?:\w+ )?(?:oncolog|pulm|cardiol|neurol|surg|renal|nephrol|hem|id|gi|psych|derm|ortho"
        r"|urol|team|primary)"
        r"|(?:surgery|neurology|cardiology|h(?:a)?ematology|heme|ep|id|gi|ir|pulm|pulmonology|renal|nephrology|geriatrics"
        r"|toxicology|psychiatry|endocrine|vascular|oncology|dermatology|they|team) (?:\(.{0,12}\) ?)?"
        r"(?:felt|feels|noted|did|discuss|recommend|explain|agreed|told|advis|communic)"
    ),
    "trend": (r"->|rose|fell|peak|down to|up to|from \d|trend|cleared|gone|normaliz|decreas|increas|reached"),
    "evidence": (
        r"\b(?:ct|mri|cta|ctpa|us|duplex|echo|tte|tee|egd|colonoscopy|angiogra\w+|biops\w+|bx|path\w*"
        r"|eeg|emg|lp|csf|bcx|culture\w*|smear|panel|assay|test\w*|exam|bronch\w*"
        r"|flex sig|x-?ray|cxr|titer\w*|antibod\w+|level)\b"
    ),
    "change": (r"\b(?:stop|discontinu|d/c'?d|held|hold|switch|chang|resum|restart|withdraw|remov)\w*"),
    # what records rather than answers: treatment given, how the patient arrived, standing care
    "given": (
        r"receiv|\bgiven\b|treated|placed|underwent|started|initiated|transfus|\bmg\b|\bgtt\b|admin|load"
        r"|\bdose"
    ),
    "arrival": (
        r"^(?:in the ed|ems|on arrival|initial|presented|p/w|found|transfer|admit)|\bed\b|en route"
        r"|\d+ ?(?:yo|y/o|[mf]\b)|year old"
    ),
    "standing": (
        r"ppx|code status|nutrition|diet|pain (?:control|manag)|insulin|npo|\bpt/ot\b|social work|\bsw\b"
        r"|pending|incidental"
    ),
}
_CUE_PATTERNS = {name: re.compile(pattern) for name, pattern in _CUES.items()}  # of small letters: twice as fast

_ASKED = {
    "reason": (
        r"\bwhy\b|caus|reason|how come|what made|explain|how (?:on earth|can|could|did|do)"
        r"|what (?:is|was|did) (?:this|it)|did (?:the|it|this)|from what|necessary|should|could"
    ),
    "decision": (
        r"why (?:did|not|no|was|were|can|couldn|didn|wasn|they)|instead|choice|option|\bsafe|necessary"
        r"|should|possible to|leave|left|straight"
    ),
    "outlook": (
        r"\bwill\b|\bagain\b|recover|normal|forever|permanent|for life|how long|\bwhen\b|expect|chance"
        r"|go back|better\b|come back|come out|how soon|can (?:i|she|he|they|we)"
    ),
}
_ASKED["plan"] = _ASKED["outlook"]
_ASKED_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _ASKED.items()}
_DEIDENTIFIED = re.compile(r"\[\*\*.*?\*\*\]")

CUES = (*_CUES, *(f"{name}_asked" for name in _ASKED))


@lru_cache(maxsize=20_000)
def count_cues(text: str) -> tuple[int, ...]:
    """0, 1 or 2 (two or more) cues of each kind in a note sentence, in the order of CUES without the "asked" ones."""
    text = _DEIDENTIFIED.sub("", text).lower()
    return tuple(len(list(islice(pattern.finditer(text), 2))) for pattern in _CUE_PATTERNS.values())


def cue_row(text: str, asked: dict[str, bool]) -> list[int]:
    """One row in the order of CUES: the counts, and again those of a kind that the message asks for."""
    counts = count_cues(text)
    by_name = dict(zip(_CUES, counts, strict=True))
    return [*counts, *(by_name[name] * asked[name] for name in _ASKED)]


def what_is_asked(question: str) -> dict[str, bool]:
    """Which kinds of answer the question words ask for."""
    return {name: bool(pattern.search(question)) for name, pattern in _ASKED_PATTERNS.items()}
