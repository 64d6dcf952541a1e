"""Stage 2: every note sentence gets a score from 1 to 5, and a cut turns scores into evidence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import dspy

from archehr.data.case import Case, Relevance, Sentence
from archehr.metrics.evidence import strict_f1
from archehr.metrics.feedback import GOOD_ENOUGH, evidence_feedback
from archehr.program.extractive import EXTRACTIVE_CUT
from archehr.program.extractive.score_sentences import ExtractiveScoreSentences
from archehr.program.settings import PipelineSettings
from archehr.program.stages.ask import Checked
from archehr.program.stages.limits import estimate_tokens
from archehr.program.stages.render import render
from archehr.program.stages.stage import Fields, Labels, Stage
from archehr.program.stages.views.view import View
from archehr.program.types import AgreedScore, Notice, SentenceScore, shorten


class ScoreSentencesSignature(dspy.Signature):
    """You are a clinical evidence grader. Score every sentence of the note excerpt for whether the answer to the
    question needs it.

    5 essential: the answer rests on it; it states the finding, cause, decision, treatment or outcome asked about.
    3 supplementary: it makes that clearer, but the answer stands without it: background, timing, setting.
    1 not relevant: routine findings, other problems, section headers, options that were only considered.
    4 or 2 only when torn between two of these.

    A question with two parts needs evidence for each.
    A negative finding that decides the question is essential; a routine one is not.
    Of a fact told twice, the fullest telling is essential.
    Where a sentence was torn in two, as after "Dr.", and the statement runs over both halves, both have its score.
    Return every id exactly once, in order."""

    question: str = dspy.InputField(desc="the clinician's question")
    narrative: str = dspy.InputField(desc="the patient's own message, for what lies behind the question")
    sentences: str = dspy.InputField(desc="the note excerpt, one sentence a line, each with its [id]")
    scores: list[SentenceScore] = dspy.OutputField(desc="one entry for every id, score 1 to 5")


class ScoreSentences(View):
    """question, narrative, sentences -> scores (each id once, note order), silent and notices.

    A window that the LM failed on gets the extractive twin's scores, or, under the seed's `first_three` rule, none:
    then the first three sentences of the note are the evidence if nothing else is.
    """

    name = "score"
    signature = ScoreSentencesSignature

    def read(self, ids: Sequence[str], prediction: dspy.Prediction) -> Checked[list[SentenceScore]]:
        return check_scores(prediction.scores, ids)

    def fall_back(self, question: str, narrative: str, window: Sequence[Sentence]) -> Sequence[SentenceScore]:
        if self.settings.on_failure == "first_three":
            return []
        twin = ExtractiveScoreSentences()(question=question, narrative=narrative, sentences=window)
        return at_cut(twin.scores, self.settings)


def at_cut(twin_scores: Sequence[SentenceScore], settings: PipelineSettings) -> list[SentenceScore]:
    """The extractive twin's choice in terms of `settings.cut` (its own cut is EXTRACTIVE_CUT)."""
    below = max(1, settings.relaxed_cut - 1)
    return [
        SentenceScore(id=s.id, score=settings.cut if s.score >= EXTRACTIVE_CUT else min(s.score, below))
        for s in twin_scores
    ]


def check_scores(raw: Sequence[SentenceScore], ids: Sequence[str]) -> Checked[list[SentenceScore]]:
    """The rule: every id of the note once and in order; left-out ids get 1, unknown ids go, of repeats the highest
    stays; each with a notice. Nothing usable at all is a failure."""
    known = set(ids)
    best: dict[str, int] = {}
    repeated: set[str] = set()
    unknown: list[str] = []
    for entry in raw or ():
        sid = entry.id.strip().strip("[]")
        if sid not in known:
            unknown.append(sid)
        elif sid in best and best[sid] != entry.score:
            repeated.add(sid)
        if sid in known:
            best[sid] = max(best.get(sid, 1), entry.score)
    if not best:
        failed = Notice("score", "lm_failed", "no score for any sentence id of the note")
        return Checked(None, [failed], "it scored no sentence id of the note")
    notices: list[Notice] = []
    faults: list[str] = []
    if missing := [i for i in ids if i not in best]:
        notices.append(Notice("score", "missing_ids", f"{shorten(missing)} scored 1"))
        faults.append(f"no score for sentence {shorten(missing, 50)}")
    if unknown:
        notices.append(Notice("score", "unknown_ids", f"{len(unknown)} dropped"))
        faults.append("it has ids that the note does not have")
    if repeated:
        notices.append(Notice("score", "repaired", f"{shorten(sorted(repeated))} scored twice, the higher kept"))
    scores = [SentenceScore(id=i, score=best.get(i, 1)) for i in ids]
    return Checked(scores, notices, "; ".join(faults) or None)


def select_evidence(scores: Sequence[SentenceScore], settings: PipelineSettings) -> tuple[list[str], list[Notice]]:
    """Ids scored at least `cut`, else at least `relaxed_cut` with a notice, else none; note order. Where several
    views or samples voted: ids agreed on by at least `agreement`, else by the most with a notice, else none."""
    agreed = {s.id: s.confidence for s in scores if isinstance(s, AgreedScore)}
    if agreed:
        most = max(agreed.values())
        if picked := [i for i, share in agreed.items() if share >= settings.agreement - 1e-6]:
            return picked, []
        told = [Notice("score", "relaxed_cut", f"no agreement of {settings.agreement:g}; the most, {most:g}, taken")]
        return ([i for i, share in agreed.items() if share == most], told) if most else ([], [])
    if picked := [s.id for s in scores if s.score >= settings.cut]:
        return picked, []
    picked = [s.id for s in scores if s.score >= settings.relaxed_cut]
    told = [Notice("score", "relaxed_cut", f"nothing scored {settings.cut}; {settings.relaxed_cut} taken")]
    return picked, told if picked else []


# The key's three labels on the 1..5 scale that the stage answers in. 4 and 2 are never gold: the key does not grade
# that finely.
GOLD_SCORE = {Relevance.ESSENTIAL: 5, Relevance.SUPPLEMENTARY: 3, Relevance.NOT_RELEVANT: 1}


def _present(case: Case) -> bool:
    return bool(case.clinician_question) and _measured(case)


def _measured(case: Case) -> bool:
    """A cut can be fitted on the program's own question; a demo needs the clinician's."""
    labels = case.gold.relevance if case.gold is not None else None
    return bool(case.sentences) and set(labels or ()) == {s.id for s in case.sentences}


def _arguments(case: Case) -> dict[str, Any]:
    return {"question": case.clinician_question, "narrative": case.narrative, "sentences": case.sentences}


def _demo(case: Case) -> dict[str, Any]:
    labels = (case.gold and case.gold.relevance) or {}
    scores = [{"id": s.id, "score": GOLD_SCORE[labels[s.id]]} for s in case.sentences]
    return {**_arguments(case), "sentences": render(case.sentences), "scores": scores}


def _score(prediction: dspy.Prediction, case: Case, settings: PipelineSettings) -> float:
    assert case.gold is not None
    return strict_f1(select_evidence(prediction.scores, settings)[0], case.gold)


def _feedback(prediction: dspy.Prediction, case: Case, settings: PipelineSettings) -> str:
    assert case.gold is not None
    return evidence_feedback(select_evidence(prediction.scores, settings)[0], case.gold)


def _short_to_long(demos: Sequence[Fields], most: int) -> Sequence[Fields]:
    """`most` demos at even steps through the lengths of their notes, then the rest from short to long."""
    by_length = sorted(demos, key=lambda d: estimate_tokens(json.dumps(d, ensure_ascii=False)))
    last = len(by_length) - 1
    steps = [round(last * (2 * k + 1) / (2 * most)) for k in range(most)] if by_length else []
    picked = list(dict.fromkeys(steps))
    return [by_length[i] for i in picked] + [d for i, d in enumerate(by_length) if i not in picked]


STAGE = Stage(
    name="score",
    signature=ScoreSentencesSignature,
    module=ScoreSentences,
    twin=lambda settings: ExtractiveScoreSentences(),
    subtask=2,
    in_windows=True,
    labels=Labels(
        present=_present,
        field="a clinician_question and a label of every note sentence",
        arguments=_arguments,
        demo=_demo,
        score=_score,
        metric="strict F1 of the evidence",
        threshold=GOOD_ENOUGH[2],
        feedback=_feedback,
        arrange=_short_to_long,
        measured=_measured,
        measured_field="a label of every note sentence",
    ),
)
