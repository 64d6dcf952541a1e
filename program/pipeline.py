"""GroundedQA: the four stages in a row, from a Case to an answer with its evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Literal

import dspy

from archehr.data.case import AnswerSentence, Case, DataError
from archehr.program import dspy_state
from archehr.program.batch import side_by_side
from archehr.program.checking import Answer, check_answer
from archehr.program.declining import NOT_ANSWERED
from archehr.program.extractive import EXTRACTIVE_CUT
from archehr.program.extractive.fitted.answerable import AnswerableModel
from archehr.program.extractive.fitted.file import shipped
from archehr.program.extractive.reformulate import ExtractiveReformulate
from archehr.program.extractive.score_sentences import ExtractiveScoreSentences
from archehr.program.language import language_notices
from archehr.program.lm.ledger import at
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages.generate import Generate
from archehr.program.stages.registry import STAGES, added_stages, held, possible_stages
from archehr.program.stages.render import near, of_ids, render
from archehr.program.stages.score_sentences import select_evidence
from archehr.program.stages.stage import has_prompt
from archehr.program.stages.verify.verify import check_facts
from archehr.program.stages.views.consensus import most_like_the_others
from archehr.program.stages.views.vote import count_votes
from archehr.program.types import Link, Notice, SentenceScore, StageName, Verdict

QuestionSource = Literal["own", "given"]


class GroundedQA(dspy_state.Saved):
    """Case -> Prediction with question, scores, evidence, answer_sentences, answer, declined, links, given_links,
    notices.

    `links` belong to the program's own answer (ids "1", "2", …); `given_links` to the clinician's answer sentences
    where the case has them (subtask 4). What a case has no input for, or was not asked for, is None. A declined answer
    is NOT_ANSWERED alone, without evidence and links. `verdicts` say of the sentences of the program's own answer
    whether what they cite supports them. `added` holds the outputs of stages that were added to the four,
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
        for stage in held(settings):
            module = modules[stage.name] if stage.name in modules else stage.module(settings)
            setattr(self, stage.name, module)

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
        """Work by other settings from now on, in every stage; views and checks that they ask for are made, without an
        LM no views. Raises DataError for a view that is not there."""
        if not (asks_lm := self.asks_lm):
            settings = settings.model_copy(update={"views": PRESETS["default"].views})
        self.settings = settings
        for stage in held(settings):
            if not hasattr(self, stage.name):
                made = stage.module if asks_lm else stage.twin
                setattr(self, stage.name, made(settings) if made else None)
            module = getattr(self, stage.name)
            if hasattr(module, "settings"):
                module.settings = settings
            elif isinstance(module, ExtractiveReformulate):
                setattr(self, stage.name, ExtractiveReformulate(settings.question_words))
        if isinstance(self.generate, Generate):
            self.generate.ask_by_settings()


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
        links = given_links = verdicts = None
        if "align" in self.stages:
            if self.case.answer_sentences:
                given_links = self.links(self.case.answer_sentences)
            if answer is not None or not self.case.answer_sentences:
                links, verdicts = self.checked_links()
                answer, evidence, scores = self.answer(), self.evidence(), self.scores()
        made = dspy.Prediction(
            question=question,
            scores=scores,
            evidence=evidence,
            answer_sentences=answer,
            answer=" ".join(answer) if answer is not None else None,
            declined=self._declined if answer is not None else None,
            links=links,
            verdicts=verdicts,
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
            given = {"narrative": self.case.narrative, "phrases": self.case.question_phrases}
            self._own = self._consensus("reformulate", lambda made: str(made.question), **given).question
        return self._own

    def question(self) -> str:
        if self.source == "own":
            return self.own_question()
        if not self.case.clinician_question:
            raise DataError(f"case {self.case.id} has no clinician_question; run it with --question own")
        return self.case.clinician_question

    def scores(self) -> list[SentenceScore]:
        if self._scores is None:
            views, case = self.program.settings.views, self.case
            wanted = [(view.name, k) for view in views for k in range(view.samples)]
            given = {"question": self.question(), "narrative": case.narrative, "sentences": case.sentences}
            self._scores, told = count_votes([n for n, _ in wanted], self._replies(wanted, **given), views)
            self.notices += told
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
            made = self._consensus("generate", lambda made: " ".join(made.answer_sentences), **self._to_generate())
            self._answer, self._sources = made.answer_sentences, made.get("sources")
            if made.get("declined"):
                self._decline()
            elif not self._answer:  # evidence of white space
                self._decline("the evidence is empty")
            elif self._sources is not None and self.program.settings.abstain and not self._is_answerable():
                self._decline("the note names too little of what is asked")
        return self._answer

    def _to_generate(self) -> dict[str, Any]:
        chosen = set(self.evidence())
        note = near(self.case.sentences, chosen, self.program.settings.window_chars)
        evidence = of_ids(self.case.sentences, chosen)
        return {"question": self.question(), "evidence": evidence, "note": render(note)}

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

    def checked_links(self) -> tuple[list[Link], list[Verdict]]:
        """The links of the program's own answer and the verdicts on it, after it was mended as the settings say."""
        links = self.own_links()
        if self._declined:
            return links, []
        how = self.program.settings.verify
        made, verdicts, told = check_answer(Answer(self.answer(), links), how, self._judge, self._rewrite)
        self.notices += told
        if not made.sentences:
            self._decline("no sentence of the answer was supported")
            return self.own_links(), []
        self._answer = list(made.sentences)
        return list(made.links), verdicts

    def _judge(self, answer: Answer) -> list[Verdict]:
        """On every answer sentence, or without verification on those alone whose numbers, dates or names are wrong:
        that check always runs, and no LM overrules it."""
        given: dict[str, Any] = {"answer_sentences": own_answer_sentences(answer.sentences), "links": answer.links}
        given["sentences"] = self.case.sentences
        wrong = {v.answer_id: v for v in check_facts(**given)}
        if self.program.settings.verify == "off":
            return list(wrong.values())
        made = self._call("verify", question=self.question(), **given)
        return [wrong.get(v.answer_id, v) for v in made.verdicts]

    def _rewrite(self, refused: str) -> Answer | None:
        """The answer written again by the LM; None without one, or where it failed, which leaves the first."""
        if not has_prompt(self.program.generate):
            return None
        made = self._call("generate", **self._to_generate(), refused=refused)
        if made.get("sources") is not None:
            return None
        if made.get("declined"):
            return Answer([], [])
        return Answer(made.answer_sentences, self.links(own_answer_sentences(made.answer_sentences)))

    def links(self, answer: tuple[AnswerSentence, ...]) -> list[Link]:
        made = self._call("align", answer_sentences=answer, sentences=self.case.sentences, question=self.question())
        return made.links

    def _consensus(self, stage: StageName, text: Callable[[dspy.Prediction], str], **inputs: object) -> dspy.Prediction:
        """The reply of a stage or, of as many as the settings ask for, the one whose text is most like the others."""
        asks_lm = has_prompt(getattr(self.program, stage))
        samples = getattr(self.program.settings.samples, stage) if asks_lm else 1
        replies = self._replies([(stage, k) for k in range(samples)], **inputs)
        reply = most_like_the_others(replies, text) if samples > 1 else replies[0]
        self.notices += reply.get("notices") or []
        return reply

    def _call(self, stage: StageName, **inputs: object) -> dspy.Prediction:
        (made,) = self._replies([(stage, 0)], **inputs)
        self.notices += made.get("notices") or []
        return made

    def _replies(self, wanted: Sequence[tuple[StageName, int]], **inputs: object) -> list[dspy.Prediction]:
        """What these stages or views reply, a sample each, asked side by side."""

        def ask(stage: StageName, sample: int) -> dspy.Prediction:
            with at(case_id=self.case.id, stage=stage):
                return getattr(self.program, stage)(**inputs, **({"sample": sample} if sample else {}))

        return side_by_side([partial(ask, *which) for which in wanted])


def own_answer_sentences(answer: Sequence[str]) -> tuple[AnswerSentence, ...]:
    """The program's answer with ids "1", "2", …"""
    return tuple(AnswerSentence(str(i), text) for i, text in enumerate(answer, 1))
