"""How a program says that a note does not answer: the sentence, the rule an LM is given, and how a reply is read."""

from __future__ import annotations

import re
from collections.abc import Sequence

NOT_ANSWERED = "The note does not answer this question."

# The end of the Generate signature's docstring; taken out where every case has an answer (abstain False).
RULE = f"""If neither the evidence nor the note says anything on the question, the answer is this one sentence alone:
{NOT_ANSWERED}"""

_SENTENCE = re.compile(
    r"(?:^|(?<=[.!?;:]\s))[\W_]*(?:answer:[\W_]*)?"
    r"\b(?:the|this) note (?:does not|doesn['’]t) answer (?:this|the) question\b"
    r"[\"'”’*_`)\]\s]*(?:[.!]|$)[\"'”’*_`)\]\s]*",
    re.IGNORECASE,
)


def with_rule(instructions: str, abstain: bool) -> str:
    """`instructions` that ask for the sentence if `abstain`, and do not if not."""
    bare = instructions.replace(f"\n{RULE}", "")
    return f"{bare}\n{RULE}" if abstain and NOT_ANSWERED not in bare else bare


def without_declining(sentences: Sequence[str]) -> list[str]:
    """What is left of an answer when the declining sentence is taken out, in whatever case, quotes or punctuation it
    stands: nothing of a declined answer, everything of any other."""
    left = ((s, _SENTENCE.sub("", s).strip()) for s in sentences)
    return [rest for s, rest in left if rest == s or re.search(r"\w", rest)]
