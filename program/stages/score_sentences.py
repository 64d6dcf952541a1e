"""Stage 2: every note sentence gets a score from 1 to 5, and a cut turns scores into evidence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import dspy

from archehr.data.case import Case, Relevance, Sentence
from archehr.metrics.evidence import strict_f1
from archehr.metrics.feedback import GOOD_ENOUGH, evidence_feedback
from archehr.program.extractive import EXTRACTIVE_CUT
from archehr.program.extractive.score_sentences import ExtractiveScoreSentences
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages.ask import Checked, ask
from archehr.program.stages.limits import estimate_tokens
from archehr.program.stages.render import render, windows
from archehr.program.stages.stage import Fields, Labels, Stage
from archehr.program.types import Notice, SentenceScore, shorten


class ScoreSentencesSignature(dspy.Signature):
    """You are a clinical evidence grader. Score every sentence of the note excerpt for how much the answer to the
    question needs it.

    5 critical: answers the question directly, states the confirmed diagnosis or cause asked about, or the
      treatment and its outcome.
    4 high context: qualifies a finding that the answer needs, such as the setting or timing of a result.
    3 relevant: background such as history or admission dates.
    2 or 1 irrelevant: normal findings, other organ systems, section headers.
    Miss nothing that the answer would rest on: when torn between two scores, give the higher.
    Return every id exactly once, in order."""

    question: str = dspy.InputField(desc="the clinician's question")
    narrative: str = dspy.InputField(desc="the patient's own message, for what lies behind the question")
    sentences: str = dspy.InputField(desc="the note excerpt, one sentence a line, each with its [id]")
    scores: list[SentenceScore] = dspy.OutputField(desc="one entry for every id, score 1 to 5")


class ScoreSentences(dspy.Module):
    """question, narrative, sentences -> scores (each id once, note order) and notices.

    A note longer than `window_chars` is scored in overlapping windows; a sentence in two windows keeps its higher
    score (recall first). A window that the LM failed on gets the extractive twin's scores, or, under the seed's
    `first_three` rule, none: then the first three sentences of the note are the evidence if nothing else is.
    """

    def __init__(self, settings: PipelineSettings = PRESETS["default"]) -> None:
        super().__init__()
        self.settings = settings
        self.predict = dspy.Predict(ScoreSentencesSignature)

    def forward(self, question: str, narrative: str, sentences: Sequence[Sentence]) -> dspy.Prediction:
        best: dict[str, int] = {}
        notices: list[Notice] = []
        for window in windows(sentences, self.settings.window_chars, self.settings.window_overlap):
            reply = ask(
                self.predict,
                partial(_check, [s.id for s in window]),
                "score",
                self.settings,
                question=question,
                narrative=narrative,
                sentences=render(window),
            )
            notices += reply.notices
            scores = reply.value if reply.value is not None else self._fall_back(question, narrative, window)
            for s in scores:
                best[s.id] = max(best.get(s.id, 1), s.score)
        return dspy.Prediction(
            scores=[SentenceScore(id=s.id, score=best.get(s.id, 1)) for s in sentences], notices=notices
        )

    def _fall_back(self, question: str, narrative: str, window: list[Sentence]) -> list[SentenceScore]:
        if self.settings.on_failure == "first_three":
            return []
        twin = ExtractiveScoreSentences()(question=question, narrative=narrative, sentences=window)
        return at_cut(twin.scores, self.settings)


def _check(ids: list[str], prediction: dspy.Prediction) -> Checked[list[SentenceScore]]:
    return check_scores(prediction.scores, ids)


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
    """Ids scored at least `cut`, else at least `relaxed_cut` with a notice, else none; note order."""
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
