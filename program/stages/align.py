"""Stage 4: each answer sentence to the note sentences that directly support it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dspy

from archehr.data.case import AnswerSentence, Case, Sentence
from archehr.metrics.alignment import alignment_f1, link_pairs
from archehr.metrics.feedback import GOOD_ENOUGH, alignment_feedback
from archehr.program.extractive.align import ExtractiveAlign
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages.ask import Checked, ask
from archehr.program.stages.render import render, windows
from archehr.program.stages.stage import Fields, Labels, Stage
from archehr.program.types import Link, Notice, shorten


class AlignSignature(dspy.Signature):
    """You are a conservative auditor. For each sentence of the answer, name the note sentences that directly
    support it.

    1. Link only what the note sentence itself states; topical closeness is not support.
    2. One answer sentence may rest on several note sentences, and one note sentence may support several.
    3. Judge each answer sentence by itself. Of one that is supported in part, name what supports that part; a
       conclusion that no note sentence states gets an empty list.
    4. Never cite a section header.
    Return every answer id exactly once, in order."""

    question: str = dspy.InputField(desc="the question that the answer is for")
    answer_sentences: str = dspy.InputField(desc="the answer, one sentence a line, each with its [id]")
    sentences: str = dspy.InputField(desc="the note excerpt, one sentence a line, each with its [id]")
    links: list[Link] = dspy.OutputField(desc="for every answer id the ids of the supporting note sentences, or []")


class Align(dspy.Module):
    """question, answer_sentences, sentences -> links (each answer id once, known note ids in note order), notices.

    Used on the program's own answer and alone on given clinician answer sentences (subtask 4). Long notes are read
    in windows as in ScoreSentences; the links of all windows are joined.
    """

    def __init__(self, settings: PipelineSettings = PRESETS["default"]) -> None:
        super().__init__()
        self.settings = settings
        self.predict = dspy.Predict(AlignSignature)

    def forward(
        self, answer_sentences: Sequence[AnswerSentence], sentences: Sequence[Sentence], question: str
    ) -> dspy.Prediction:
        found: dict[str, set[str]] = {a.id: set() for a in answer_sentences}
        notices: list[Notice] = []
        for window in windows(sentences, self.settings.window_chars, self.settings.window_overlap):
            reply = ask(
                self.predict,
                partial(_check, [a.id for a in answer_sentences], [s.id for s in window]),
                "align",
                self.settings,
                question=question,
                answer_sentences=render(answer_sentences),
                sentences=render(window),
            )
            links = reply.value
            if links is None:
                twin = ExtractiveAlign()(answer_sentences=answer_sentences, sentences=window, question=question)
                links = twin.links
            notices += reply.notices
            for link in links:
                found[link.answer_id].update(link.evidence_ids)
        order = [s.id for s in sentences]
        joined = [Link(answer_id=a, evidence_ids=[i for i in order if i in ids]) for a, ids in found.items()]
        return dspy.Prediction(links=joined, notices=notices)


def _check(answer_ids: list[str], note_ids: list[str], prediction: dspy.Prediction) -> Checked[list[Link]]:
    return check_links(prediction.links, answer_ids, note_ids)


def check_links(raw: Sequence[Link], answer_ids: Sequence[str], note_ids: Sequence[str]) -> Checked[list[Link]]:
    """The rule: every answer id once and in order, note ids known; left-out answer ids get no link, unknown ids
    go, repeats are joined; left-out and unknown ids with a notice. No known answer id at all is a failure."""
    found: dict[str, set[str]] = {}
    known_answers, known_notes = set(answer_ids), set(note_ids)
    unknown = 0
    for link in raw or ():
        answer_id = link.answer_id.strip().strip("[]")
        if answer_id not in known_answers:
            unknown += 1
            continue
        cited = {i.strip().strip("[]") for i in link.evidence_ids}
        unknown += len(cited - known_notes)
        found.setdefault(answer_id, set()).update(cited & known_notes)
    if not found:
        failed = Notice("align", "lm_failed", "no link for any answer sentence")
        return Checked(None, [failed], "it named no answer id of the answer")
    notices: list[Notice] = []
    faults: list[str] = []
    if missing := [a for a in answer_ids if a not in found]:
        notices.append(Notice("align", "missing_ids", f"answer sentence {shorten(missing)} left without links"))
        faults.append(f"answer sentence {shorten(missing, 50)} is missing")
    if unknown:
        notices.append(Notice("align", "unknown_ids", f"{unknown} dropped"))
        faults.append("it has ids that are not in the answer or the note")
    links = [Link(answer_id=a, evidence_ids=[i for i in note_ids if i in found.get(a, ())]) for a in answer_ids]
    return Checked(links, notices, "; ".join(faults) or None)


def _present(case: Case) -> bool:
    return bool(case.clinician_question) and _measured(case)


def _measured(case: Case) -> bool:
    gold = case.gold
    if gold is None or not case.sentences or not case.answer_sentences:
        return False
    return {s.id for s in gold.answer_sentences if s.citations is not None} == {a.id for a in case.answer_sentences}


def _arguments(case: Case) -> dict[str, Any]:
    return {
        "question": case.clinician_question,
        "answer_sentences": case.answer_sentences,
        "sentences": case.sentences,
    }


def _demo(case: Case) -> dict[str, Any]:
    assert case.gold is not None
    cited = {a.id: a.citations or () for a in case.gold.answer_sentences}
    links = [
        {"answer_id": a.id, "evidence_ids": [s.id for s in case.sentences if s.id in cited[a.id]]}
        for a in case.answer_sentences
    ]
    shown = {"answer_sentences": render(case.answer_sentences), "sentences": render(case.sentences)}
    return {"question": case.clinician_question, **shown, "links": links}


def _score(prediction: dspy.Prediction, case: Case, settings: PipelineSettings) -> float:
    assert case.gold is not None
    return alignment_f1(link_pairs(prediction.links), case.gold)


def _feedback(prediction: dspy.Prediction, case: Case, settings: PipelineSettings) -> str:
    assert case.gold is not None
    return alignment_feedback(link_pairs(prediction.links), case.gold)


def _empty_and_rich_first(demos: Sequence[Fields], most: int) -> Sequence[Fields]:
    """First one with an answer sentence that nothing supports, then one with five or more citations of one answer
    sentence or, failing that, the most."""
    empty = [d for d in demos if any(not link["evidence_ids"] for link in d["links"])][:1]
    others = [d for d in demos if d not in empty]
    rich = sorted(others, key=lambda d: -min(5, max(len(link["evidence_ids"]) for link in d["links"])))[:1]
    return [*empty, *rich, *(d for d in others if d not in rich)]


STAGE = Stage(
    name="align",
    signature=AlignSignature,
    module=Align,
    twin=lambda settings: ExtractiveAlign(),
    subtask=4,
    in_windows=True,
    labels=Labels(
        present=_present,
        field="a clinician_question and citations of every answer sentence",
        arguments=_arguments,
        demo=_demo,
        score=_score,
        metric="F1 of the links",
        threshold=GOOD_ENOUGH[4],
        feedback=_feedback,
        arrange=_empty_and_rich_first,
        measured=_measured,
        measured_field="citations of every answer sentence",
    ),
)
