"""GroundedQA: the four stages in a row, from a Case to an answer with its evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import dspy

from archehr.data.case import AnswerSentence, Case, DataError
from archehr.program import dspy_state
from archehr.program.declining import NOT_ANSWERED
from archehr.program.extractive import EXTRACTIVE_CUT
from archehr.program.extractive.align import ExtractiveAlign
from archehr.program.extractive.fitted.answerable import AnswerableModel
from archehr.program.extractive.fitted.file import FittedFile, shipped
from archehr.program.extractive.reformulate import ExtractiveReformulate
from archehr.program.extractive.score_sentences import ExtractiveScoreSentences
from archehr.program.language import language_notices
from archehr.program.lm.ledger import at
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages.generate import Generate
from archehr.program.stages.registry import STAGES, added_stages, possible_stages
from archehr.program.stages.render import near, of_ids, render
from archehr.program.stages.score_sentences import select_evidence
from archehr.program.types import Link, Notice, SentenceScore, StageName

QuestionSource = Literal["own", "given"]


class GroundedQA(dspy.Module):
    """Case -> Prediction with question, scores, evidence, answer_sentences, answer, declined, links, given_links,
    notices.

    `links` belong to the program's own answer (ids "1", "2", …); `given_links` to the clinician's answer sentences
    where the case has them (subtask 4). What a case has no input for, or was not asked for, is None. A declined answer
    is NOT_ANSWERED alone, without evidence and links. `added` holds the outputs of stages that were added to the four,
    by stage.

    Each stage is an attribute of its name; `modules` gives some of them, the others ask an LM.

    Example:
        >>> import archehr
        >>> case = archehr.read_cases("sample/test")[0]
        >>> archehr.load_program("extractive")(case=case).links[0].answer_id
        '1'
    """

    def __init__(self, settings: PipelineSettings = PRESETS["default"], **modules: dspy.Module | None) -> None:
        super().__init__()
        self.settings = settings
        self.answerable: AnswerableModel | None = None  # the shipped one
        for name, stage in STAGES.items():
            setattr(self, name, modules[name] if name in modules else stage.module(settings))

    @property
    def asks_lm(self) -> bool:
        """Whether any stage has a prompt to send."""
        return bool(self.predictors())

    def forward(
        self, case: Case, question: QuestionSource = "own", stages: Collection[StageName] | None = None
    ) -> dspy.Prediction:
        """Run the asked stages (None: all) and what they need. `question="given"` lets stages 2-4 use the clinician's
        question; stage 1 never sees it. Raises DataError where the case lacks what was asked for."""
        asked = frozenset(STAGES if stages is None else stages)
        return _Run(self, case, question, asked & possible_stages(case)).result()

    async def aforward(
        self, case: Case, question: QuestionSource = "own", stages: Collection[StageName] | None = None
    ) -> dspy.Prediction:
        """`forward` on a thread that sees the caller's dspy.context: what `await program.acall(case=case)` runs."""
        return await asyncio.to_thread(self.forward, case, question, stages)

    def use_settings(self, settings: PipelineSettings) -> None:
        """Work by other settings from now on, in every stage."""
        self.settings = settings
        for name in STAGES:
            module = getattr(self, name)
            if hasattr(module, "settings"):
                module.settings = settings
            elif isinstance(module, ExtractiveReformulate):
                setattr(self, name, ExtractiveReformulate(settings.question_words))
        if isinstance(self.generate, Generate):
            self.generate.ask_by_settings()

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """What `save` writes: the settings beside DSPy's own state. An LM of make_lm is kept by its name and settings,
        without key and engine."""
        return dspy_state.dump(self, self.settings, json_mode)

    def save(self, path: str | Path, save_program: bool = False, modules_to_serialize: list[Any] | None = None) -> None:
        """As dspy.Module.save, in a file for its owner alone: demos hold note text."""
        super().save(path, save_program=save_program, modules_to_serialize=modules_to_serialize)
        Path(path).chmod(0o700 if save_program else 0o600)

    def load_state(self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False) -> None:
        """Restore what `dump_state` gave, here or from any of DSPy's optimisers; without settings ours stay."""
        settings = dspy_state.read_settings(state) or self.settings
        plain, lms = dspy_state.with_lms(state, allow_unsafe=allow_unsafe_lm_state)
        super().load_state(plain, allow_unsafe_lm_state=allow_unsafe_lm_state)
        for name, predictor in self.named_predictors():
            predictor.lm = lms.get(name, predictor.lm)
        self.use_settings(settings)

    def load(self, path: str | Path, allow_pickle: bool = False, allow_unsafe_lm_state: bool = False) -> None:
        """As dspy.Module.load; reads the program files of archehr too. Raises DataError for one that does not fit."""
        if (state := dspy_state.of_program_file(Path(path))) is not None:
            self.load_state(state)
        else:
            super().load(path, allow_pickle=allow_pickle, allow_unsafe_lm_state=allow_unsafe_lm_state)


def extractive_program(settings: PipelineSettings | None = None, fitted: FittedFile | None = None) -> GroundedQA:
    """The same program without an LM, by the models of `fitted` or the shipped ones."""
    base = settings or PRESETS["default"]
    chosen = base.model_copy(update={"cut": EXTRACTIVE_CUT, "relaxed_cut": EXTRACTIVE_CUT - 1})
    program = GroundedQA(chosen, **{s.name: s.twin(chosen) if s.twin else None for s in STAGES.values()})
    if fitted is not None:
        program.score, program.align = ExtractiveScoreSentences(fitted.evidence), ExtractiveAlign(fitted.alignment)
        program.answerable = fitted.answerable
    return program


class _Run:
    """One case on its way through the stages: each property is computed at first need, and once."""

    def __init__(self, program: GroundedQA, case: Case, source: QuestionSource, stages: frozenset[StageName]) -> None:
        self.program, self.case, self.source, self.stages = program, case, source, stages
        self.notices: list[Notice] = [] if program.asks_lm else language_notices(case)
        self._own: str | None = None
        self._scores: list[SentenceScore] | None = None
        self._evidence: list[str] | None = None
        self._answer: list[str] | None = None
        self._sources: list[list[str]] | None = None
        self._declined = False

    def result(self) -> dspy.Prediction:
        question = self.own_question() if "reformulate" in self.stages else None
        scores = self.scores() if self.stages & {"score", "generate"} else None
        answer = self.answer() if "generate" in self.stages else None
        evidence = self.evidence() if scores is not None else None  # after the answer: a declined one has none
        links = given_links = None
        if "align" in self.stages:
            if self.case.answer_sentences:
                given_links = self.links(self.case.answer_sentences)
            if answer is not None or not self.case.answer_sentences:
                links = self.own_links()
                answer, evidence, scores = self.answer(), self.evidence(), self.scores()
        made = dspy.Prediction(
            question=question,
            scores=scores,
            evidence=evidence,
            answer_sentences=answer,
            answer=" ".join(answer) if answer is not None else None,
            declined=self._declined if answer is not None else None,
            links=links,
            given_links=given_links,
            added={},
            notices=self.notices,
        )
        for stage in added_stages():
            inputs = stage.inputs(self.case, made) if stage.inputs and stage.name in self.stages else None
            if inputs is not None and getattr(self.program, stage.name) is not None:
                outputs = self._call(stage.name, **inputs)
                made.added[stage.name] = {name: outputs.get(name) for name in stage.signature.output_fields}
        return made

    def own_question(self) -> str:
        if self._own is None:
            made = self._call("reformulate", narrative=self.case.narrative, phrases=self.case.question_phrases)
            self._own = made.question
        return self._own

    def question(self) -> str:
        if self.source == "own":
            return self.own_question()
        if not self.case.clinician_question:
            raise DataError(f"case {self.case.id} has no clinician_question; run it with --question own")
        return self.case.clinician_question

    def scores(self) -> list[SentenceScore]:
        if self._scores is None:
            made = self._call(
                "score", question=self.question(), narrative=self.case.narrative, sentences=self.case.sentences
            )
            self._scores = made.scores
        return self._scores

    def evidence(self) -> list[str]:
        if self._evidence is None:
            picked, told = select_evidence(self.scores(), self.program.settings)
            self.notices += told
            self._evidence = picked or self._evidence_on_failure()
        return self._evidence

    def _evidence_on_failure(self) -> list[str]:
        """The failure rule: the seed's first three sentences, or the extractive twin's choice."""
        sentences, settings = self.case.sentences, self.program.settings
        if settings.on_failure == "first_three":
            self.notices.append(Notice("score", "empty", "no evidence; the first three sentences taken"))
            return [s.id for s in sentences[:3]]
        twin = ExtractiveScoreSentences()(
            question=self.question(), narrative=self.case.narrative, sentences=sentences
        ).scores
        self.notices.append(Notice("score", "empty", "no evidence; the extractive choice taken"))
        best = max(s.score for s in twin)
        return [s.id for s in twin if s.score >= min(EXTRACTIVE_CUT, best)][: 3 if best < EXTRACTIVE_CUT else None]

    def answer(self) -> list[str]:
        if self._answer is None:
            chosen = set(self.evidence())
            note = near(self.case.sentences, chosen, self.program.settings.window_chars)
            evidence = of_ids(self.case.sentences, chosen)
            made = self._call("generate", question=self.question(), evidence=evidence, note=render(note))
            self._answer, self._sources = made.answer_sentences, made.get("sources")
            if made.get("declined"):
                self._decline()
            elif not self._answer:  # evidence of white space
                self._decline("the evidence is empty")
            elif self._sources is not None and self.program.settings.abstain and not self._is_answerable():
                self._decline("the note names too little of what is asked")
        return self._answer

    def _is_answerable(self) -> bool:
        model = self.program.answerable or shipped().answerable
        return model.is_answerable(self.question(), self.case.narrative, self.case.sentences)

    def _decline(self, why: str | None = None) -> None:
        """No answer, no citation, no evidence; `why` where nobody has told it yet."""
        if why is not None:
            self.notices.append(Notice("generate", "not_answered", why))
        self._answer, self._sources, self._evidence, self._declined = [NOT_ANSWERED], [[]], [], True

    def own_links(self) -> list[Link]:
        """The links of the program's own answer: known where it was copied from the note, else found by Align."""
        answer = own_answer_sentences(self.answer())
        if self._sources is None:
            return self.links(answer)
        return [Link(answer_id=a.id, evidence_ids=ids) for a, ids in zip(answer, self._sources, strict=True)]

    def links(self, answer: tuple[AnswerSentence, ...]) -> list[Link]:
        made = self._call("align", answer_sentences=answer, sentences=self.case.sentences, question=self.question())
        return made.links

    def _call(self, stage: StageName, **inputs: object) -> dspy.Prediction:
        with at(case_id=self.case.id, stage=stage):
            made = getattr(self.program, stage)(**inputs)
        self.notices += made.get("notices") or []
        return made


def own_answer_sentences(answer: list[str]) -> tuple[AnswerSentence, ...]:
    """The program's answer with ids "1", "2", …"""
    return tuple(AnswerSentence(str(i), text) for i, text in enumerate(answer, 1))
