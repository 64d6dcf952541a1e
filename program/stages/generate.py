"""Stage 3: an answer of at most 75 words from the evidence alone, or that the note does not answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import dspy

from archehr.data.case import Case, Sentence
from archehr.metrics.feedback import GOOD_ENOUGH, answer_score
from archehr.program.declining import NOT_ANSWERED, with_rule, without_declining
from archehr.program.extractive.generate import ExtractiveGenerate
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages.ask import Checked, ask
from archehr.program.stages.limits import count_words, fit_answer, one_line
from archehr.program.stages.render import near, of_ids, render
from archehr.program.stages.stage import Labels, Stage
from archehr.program.types import Notice


class GenerateSignature(dspy.Signature):
    """You are a clinical documentation specialist. Answer the question for the patient from the evidence alone.

    1. At most 75 words in all, in complete sentences, third person, plain professional language.
    2. State the direct answer first, then the findings and treatment that explain it.
    3. Paraphrase the evidence closely and keep its exact terms, names and numbers.
    4. Take facts from the evidence only; the whole note is there to resolve what the evidence refers to. Where the
       answer of an example holds more than its evidence, take its style and length, not this freedom.
    5. No outside knowledge, no advice, no filler, no citations.
    If neither the evidence nor the note says anything on the question, the answer is this one sentence alone:
    The note does not answer this question."""

    question: str = dspy.InputField(desc="the clinician's question")
    evidence: str = dspy.InputField(desc="the note sentences to answer from, each with its [id]")
    note: str = dspy.InputField(desc="the whole note excerpt, for reference only")
    answer_sentences: list[str] = dspy.OutputField(desc="the answer, one sentence an entry, at most 75 words in all")


class Generate(dspy.Module):
    """question, evidence, note -> answer_sentences (1..75 words in all), silent and notices.

    A declined answer is NOT_ANSWERED alone, with a notice and `declined` True. If the LM fails, which is then `silent`,
    the extractive twin answers, and `sources` holds the note ids that each sentence was made from. `sample` asks for
    another reply to the same prompt.
    """

    def __init__(self, settings: PipelineSettings = PRESETS["default"]) -> None:
        super().__init__()
        self.settings = settings
        self.predict = dspy.Predict(GenerateSignature)
        self.ask_by_settings()

    def ask_by_settings(self) -> None:
        """Have the prompt ask for NOT_ANSWERED, and for as many words, as the settings say, whatever file its texts are
        from."""
        signature, words = self.predict.signature, self.settings.answer_words
        texts = with_rule(signature.instructions, self.settings.abstain)
        described = signature.output_fields["answer_sentences"].json_schema_extra["desc"]
        signature = signature.with_instructions(_with_limit(texts, words))
        self.predict.signature = signature.with_updated_fields("answer_sentences", desc=_with_limit(described, words))

    def forward(
        self, question: str, evidence: Sequence[Sentence], note: str, refused: str | None = None, sample: int = 0
    ) -> dspy.Prediction:
        """`refused` tells the LM what a check found wrong with its last answer."""
        reply = ask(
            self.predict if refused is None else self._told(refused),
            self._check,
            "generate",
            self.settings,
            sample,
            question=question,
            evidence=render(evidence),
            note=note,
        )
        if reply.value is None:
            made = ExtractiveGenerate(self.settings)(question=question, evidence=evidence, note=note)
            made.silent, made.notices = True, [*reply.notices, *made.notices]
            return made
        declined = self.settings.abstain and reply.value == [NOT_ANSWERED]
        return dspy.Prediction(answer_sentences=reply.value, declined=declined, silent=False, notices=reply.notices)

    def _told(self, refused: str) -> dspy.Predict:
        signature = self.predict.signature
        predict = dspy.Predict(signature.with_instructions(f"{signature.instructions}\n\n{refused}"))
        predict.demos, predict.lm = self.predict.demos, self.predict.lm
        return predict

    def _check(self, prediction: dspy.Prediction) -> Checked[list[str]]:
        return check_answer(prediction.answer_sentences or [], self.settings)


def _with_limit(text: str, words: int) -> str:
    return re.sub(r"(?<=\bat most )\d+(?= words\b)", str(words), text, flags=re.IGNORECASE)


def check_answer(raw: Sequence[str], settings: PipelineSettings) -> Checked[list[str]]:
    """The rule: no empty sentence, at least one word, at most `answer_words` by the soft cut. If the program may
    abstain, the declining sentence stands alone and as NOT_ANSWERED; beside an answer it goes."""
    sentences = [line for line in (one_line(s) for s in raw) if line]
    if not sentences:
        return Checked(None, [Notice("generate", "empty", "the LM gave no answer")], "the answer was empty")
    repairs: list[Notice] = []
    if settings.abstain and (answer := without_declining(sentences)) != sentences:
        if not answer:
            return Checked([NOT_ANSWERED], [Notice("generate", "not_answered", "the LM found nothing on the question")])
        sentences = answer
        repairs = [Notice("generate", "repaired", "that the note does not answer, beside an answer, dropped")]
    words, limit = sum(count_words(s) for s in sentences), settings.answer_words
    if words <= limit:
        return Checked(sentences, repairs)
    fitted = fit_answer(sentences, limit, settings.soft_cut_share)
    cut = Notice("generate", "cut_words", f"{words} words cut to {sum(count_words(s) for s in fitted)}")
    fault = f"the answer has {words} words, {words - limit} over the limit of {limit}"
    return Checked(fitted, [*repairs, cut], fault)


def _present(case: Case) -> bool:
    gold = case.gold
    asked = gold is not None and bool(case.clinician_question) and bool(case.sentences)
    return asked and gold is not None and bool(gold.essential) and bool(gold.answer) and bool(case.answer_sentences)


def _measured(case: Case) -> bool:
    return case.gold is not None and bool(case.gold.answer) and bool(case.sentences)


def _arguments(case: Case) -> dict[str, Any]:
    assert case.gold is not None
    chosen = set(case.gold.essential)
    note = near(case.sentences, chosen, PRESETS["default"].window_chars)
    return {"question": case.clinician_question, "evidence": of_ids(case.sentences, chosen), "note": render(note)}


def _demo(case: Case) -> dict[str, Any]:
    given = _arguments(case)
    answer = [" ".join(a.text.split()) for a in case.answer_sentences]
    return {**given, "evidence": render(given["evidence"]), "answer_sentences": answer}


def _score(prediction: dspy.Prediction, case: Case, settings: PipelineSettings) -> float:
    return answer_score(" ".join(prediction.answer_sentences), case)


def _feedback(prediction: dspy.Prediction, case: Case, settings: PipelineSettings) -> str:
    assert case.gold is not None
    return f"It scored {_score(prediction, case, settings):.2f} of 1; the clinician answered: {case.gold.answer}"


STAGE = Stage(
    name="generate",
    signature=GenerateSignature,
    module=Generate,
    twin=ExtractiveGenerate,
    subtask=3,
    labels=Labels(
        present=_present,
        field="a clinician_question, essential sentences and a clinician's answer",
        arguments=_arguments,
        demo=_demo,
        score=_score,
        metric="mean of BLEU, ROUGE-Lsum and SARI with the clinician's answer",
        threshold=GOOD_ENOUGH[3],
        feedback=_feedback,
        measured=_measured,
        measured_field="a clinician's answer",
    ),
)
