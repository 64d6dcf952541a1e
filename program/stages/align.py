"""Stage 4: each answer sentence to the note sentences that directly support it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import dspy

from archehr.data.case import AnswerSentence, Sentence
from archehr.program.extractive.align import ExtractiveAlign
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages import signatures
from archehr.program.stages.ask import Checked, ask
from archehr.program.stages.render import render, windows
from archehr.program.types import Link, Notice, shorten


class Align(dspy.Module):
    """question, answer_sentences, sentences -> links (each answer id once, known note ids in note order), notices.

    Used on the program's own answer and alone on given clinician answer sentences (subtask 4). Long notes are read
    in windows as in ScoreSentences; the links of all windows are joined.
    """

    def __init__(self, settings: PipelineSettings = PRESETS["default"]) -> None:
        super().__init__()
        self.settings = settings
        self.predict = dspy.Predict(signatures.Align)

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
