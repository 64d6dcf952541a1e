"""The four DSPy signatures; their docstrings are the hand-written instructions.

Personas, scale and limits follow HealthNLP_Retrievers (arXiv 2604.26880), in our own words.
"""

from __future__ import annotations

import dspy

from archehr.program.types import Link, SentenceScore, StageName


class Reformulate(dspy.Signature):
    """You are a clinical administrative assistant. Turn a patient's or relative's message into the one question
    that a clinician would take to the medical record.

    1. Ask what the writer most wants to know about the care, not everything that is mentioned.
    2. At most 15 words, one line, third person ("the patient", "his", "her"), ending with a question mark.
    3. Keep the medical terms of the message; correct their spelling; add no diagnosis of your own.
    4. Give the question alone: no preamble, no greeting, no advice."""

    narrative: str = dspy.InputField(desc="the message as the patient or relative wrote it")
    question: str = dspy.OutputField(desc="the clinician's question, at most 15 words")


class ScoreSentences(dspy.Signature):
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


class Generate(dspy.Signature):
    """You are a clinical documentation specialist. Answer the question for the patient from the evidence alone.

    1. At most 75 words in all, in complete sentences, third person, plain professional language.
    2. State the direct answer first, then the findings and treatment that explain it.
    3. Paraphrase the evidence closely and keep its exact terms, names and numbers.
    4. Take facts from the evidence only; the whole note is there to resolve what the evidence refers to.
    5. No outside knowledge, no advice, no filler, no citations."""

    question: str = dspy.InputField(desc="the clinician's question")
    evidence: str = dspy.InputField(desc="the note sentences to answer from, each with its [id]")
    note: str = dspy.InputField(desc="the whole note excerpt, for reference only")
    answer_sentences: list[str] = dspy.OutputField(desc="the answer, one sentence an entry, at most 75 words in all")


class Align(dspy.Signature):
    """You are a conservative auditor. For each sentence of the answer, name the note sentences that directly
    support it.

    1. Link only what the note sentence itself states; topical closeness is not support.
    2. One answer sentence may rest on several note sentences, and one note sentence may support several.
    3. Judge each answer sentence by itself; a conclusion that no note sentence states gets an empty list.
    4. Never cite a section header.
    Return every answer id exactly once, in order."""

    question: str = dspy.InputField(desc="the question that the answer is for")
    answer_sentences: str = dspy.InputField(desc="the answer, one sentence a line, each with its [id]")
    sentences: str = dspy.InputField(desc="the note excerpt, one sentence a line, each with its [id]")
    links: list[Link] = dspy.OutputField(desc="for every answer id the ids of the supporting note sentences, or []")


SIGNATURES: dict[StageName, type[dspy.Signature]] = {
    "reformulate": Reformulate,
    "score": ScoreSentences,
    "generate": Generate,
    "align": Align,
}
