"""Stage 5: each answer sentence against the note sentences that it cites: supported, partly, or not, and why."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from archehr.data.case import AnswerSentence, Sentence
from archehr.program.extractive.verify import ExtractiveVerify
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages.ask import Checked, ask
from archehr.program.stages.render import of_ids, render
from archehr.program.stages.stage import Stage
from archehr.program.stages.verify.facts import unfounded
from archehr.program.types import Link, Notice, Verdict, shorten

NO_CITATION = "no note sentence supports it"


class VerifySignature(dspy.Signature):
    """You are an auditor of clinical answers. Judge each answer sentence by the note sentences that it cites, and by
    nothing else.

    supported: the cited sentences state all of it; other words, rounding and written-out abbreviations are no fault.
    partly: they state its main point but not every detail.
    not supported: they state something else, the opposite, another drug, number, date or person, or a cause that the
      note does not give.
    Look at numbers, negations, names and causes one by one. Give the reason in one short sentence.
    Return every answer id exactly once, in order."""

    question: str = dspy.InputField(desc="the question that the answer is for")
    cited_answer: str = dspy.InputField(desc="each answer sentence with its [id], then the note sentences it cites")
    verdicts: list[Verdict] = dspy.OutputField(desc="for every answer id the verdict and its reason")


class Verify(dspy.Module):
    """question, answer_sentences, links, sentences -> verdicts (each answer id once, in order) and notices.

    A sentence without citations is not supported, and no LM is asked about it.
    """

    def __init__(self, settings: PipelineSettings = PRESETS["default"]) -> None:
        super().__init__()
        self.settings = settings
        self.predict = dspy.Predict(VerifySignature)

    def forward(
        self,
        question: str,
        answer_sentences: Sequence[AnswerSentence],
        links: Sequence[Link],
        sentences: Sequence[Sentence],
    ) -> dspy.Prediction:
        cited = {link.answer_id: of_ids(sentences, link.evidence_ids) for link in links}
        open_ones = [a for a in answer_sentences if cited[a.id]]
        found: list[Verdict] = []
        notices: list[Notice] = []
        if open_ones:
            ids = [a.id for a in open_ones]
            reply = ask(
                self.predict,
                lambda made: check_verdicts(made.verdicts, ids),
                "verify",
                self.settings,
                question=question,
                cited_answer="\n\n".join(f"{render([a])}\ncites:\n{render(cited[a.id])}" for a in open_ones),
            )
            notices = reply.notices
            given = {"question": question, "answer_sentences": open_ones, "links": links, "sentences": sentences}
            found = reply.value if reply.value is not None else ExtractiveVerify()(**given).verdicts
        told = {v.answer_id: v for v in found}
        uncited = Verdict(answer_id="", verdict="not supported", reason=NO_CITATION)
        verdicts = [told.get(a.id) or uncited.model_copy(update={"answer_id": a.id}) for a in answer_sentences]
        return dspy.Prediction(verdicts=verdicts, notices=notices)


def check_facts(
    answer_sentences: Sequence[AnswerSentence], links: Sequence[Link], sentences: Sequence[Sentence]
) -> list[Verdict]:
    """The verdict on every answer sentence that cites, but not what it states as number, date or name; of all others
    nothing is said."""
    note = [s.text for s in sentences]
    cited = {link.answer_id: [s.text for s in of_ids(sentences, link.evidence_ids)] for link in links}
    verdicts = []
    for a in answer_sentences:
        if cited.get(a.id) and (facts := unfounded(a.text, cited[a.id], note)):
            reason = f"{', '.join(facts)} {'does' if len(facts) == 1 else 'do'} not stand in what it cites"
            verdicts.append(Verdict(answer_id=a.id, verdict="not supported", reason=reason))
    return verdicts


def check_verdicts(raw: Sequence[Verdict], answer_ids: Sequence[str]) -> Checked[list[Verdict]]:
    """The rule: every answer id once and in order; unknown ids go; of repeats the strictest stays; an answer sentence
    left out is not called supported. Nothing usable at all is a failure."""
    order = ("supported", "partly", "not supported")
    found: dict[str, Verdict] = {}
    for entry in raw or ():
        answer_id = entry.answer_id.strip().strip("[]")
        before = found.get(answer_id)
        if answer_id in answer_ids and (before is None or order.index(entry.verdict) > order.index(before.verdict)):
            found[answer_id] = entry.model_copy(update={"answer_id": answer_id})
    if not found:
        return Checked(None, [Notice("verify", "lm_failed", "no verdict on any answer sentence")], "it gave no verdict")
    missing = [i for i in answer_ids if i not in found]
    left_out = [Verdict(answer_id=i, verdict="partly", reason="the LM gave no verdict") for i in missing]
    told = {v.answer_id: v for v in left_out} | found
    notices = [Notice("verify", "missing_ids", f"{shorten(missing)} left without a verdict")] if missing else []
    fault = f"no verdict on answer sentence {shorten(missing, 50)}" if missing else None
    return Checked([told[i] for i in answer_ids], notices, fault)


STAGE = Stage(name="verify", signature=VerifySignature, module=Verify, twin=lambda settings: ExtractiveVerify())
