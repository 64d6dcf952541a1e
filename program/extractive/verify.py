"""Stage 5 without an LM: how likely the alignment model takes an answer sentence for what its citations say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import dspy

from archehr.data.case import AnswerSentence, Sentence
from archehr.program.extractive.align import support_chances
from archehr.program.types import Link, Verdict

# Chances from which a sentence is supported, or partly; set with the figures of both samples in view, which
# tests/benchmarks/verify.py prints.
SUPPORTED, PARTLY = 0.3, 0.03


class ExtractiveVerify(dspy.Module):
    """question, answer_sentences, links, sentences -> verdicts (each answer id once, in order)."""

    def forward(
        self,
        question: str,
        answer_sentences: Sequence[AnswerSentence],
        links: Sequence[Link],
        sentences: Sequence[Sentence],
    ) -> dspy.Prediction:
        cited = {link.answer_id: set(link.evidence_ids) for link in links}
        rows = support_chances(answer_sentences, sentences, question)
        verdicts = []
        for a, row in zip(answer_sentences, rows, strict=True):
            chance = max((c for s, c in zip(sentences, row, strict=True) if s.id in cited.get(a.id, ())), default=0.0)
            verdicts.append(Verdict(answer_id=a.id, verdict=_verdict(chance), reason=f"chance {chance:.2f}"))
        return dspy.Prediction(verdicts=verdicts)


def _verdict(chance: float) -> Literal["supported", "partly", "not supported"]:
    return "supported" if chance >= SUPPORTED else "partly" if chance >= PARTLY else "not supported"
