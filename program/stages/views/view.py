"""View: one way of asking an LM for evidence, the base of every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import dspy

from archehr.data.case import Sentence
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages.ask import Checked, ask
from archehr.program.stages.render import render, windows
from archehr.program.types import Notice, SentenceScore


class View(dspy.Module):
    """question, narrative, sentences -> scores (each id once, note order), silent, notices.

    A view of one's own is a subclass with `name`, a `signature` that takes `sentences` and, as it likes, `question`
    and `narrative`, and `read`, which makes scores of a reply. A note longer than `window_chars` is read in
    overlapping windows; a sentence in two windows keeps its higher score (recall first). `silent` holds the ids of
    sentences that the LM said nothing usable on: they have the score of `fall_back`, which is no vote. `sample` asks
    for another reply to the same prompt. A voter with a name of its own has that as `name`.
    """

    name: str
    signature: ClassVar[type[dspy.Signature]]

    def __init__(self, settings: PipelineSettings = PRESETS["default"]) -> None:
        super().__init__()
        self.settings = settings
        self.predict = dspy.Predict(self.signature)

    def read(self, ids: Sequence[str], prediction: dspy.Prediction) -> Checked[list[SentenceScore]]:
        """The scores of the sentences `ids` that a reply gives; those it leaves out count as 1."""
        raise NotImplementedError

    def fall_back(self, question: str, narrative: str, window: Sequence[Sentence]) -> Sequence[SentenceScore]:
        """Scores where the LM failed; by default none."""
        return []

    def forward(self, question: str, narrative: str, sentences: Sequence[Sentence], sample: int = 0) -> dspy.Prediction:
        best: dict[str, int] = {}
        heard: set[str] = set()
        notices: list[Notice] = []
        wanted = self.predict.signature.input_fields
        for window in windows(sentences, self.settings.window_chars, self.settings.window_overlap):
            ids = [s.id for s in window]
            told = {"question": question, "narrative": narrative, "sentences": render(window)}
            inputs: Any = {name: text for name, text in told.items() if name in wanted}
            reply = ask(self.predict, partial(self.read, ids), self.name, self.settings, sample, **inputs)
            notices += [replace(notice, stage=self.name) for notice in reply.notices]
            if reply.value is not None:
                heard.update(ids)
            scores = reply.value if reply.value is not None else self.fall_back(question, narrative, window)
            for s in scores:
                best[s.id] = max(best.get(s.id, 1), s.score)
        return dspy.Prediction(
            scores=[SentenceScore(id=s.id, score=best.get(s.id, 1)) for s in sentences],
            silent=[s.id for s in sentences if s.id not in heard],
            notices=notices,
        )
