"""The knn LM: learns from the demos of its prompt and from nothing else, and always answers in the shape asked for."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.case import AnswerSentence, Case, Sentence
from archehr.data.dataset import read_cases
from archehr.metrics.intervals import paired_difference
from archehr.metrics.score import ScoreResult, score_submission
from archehr.program.lm import make_lm
from archehr.program.lm.engines import knn
from archehr.program.lm.engines.knn import KnnEngine
from archehr.program.pipeline import GroundedQA
from archehr.program.run.records import submissions
from archehr.program.run.run import run_cases
from archehr.program.settings import PipelineSettings, parse_views
from archehr.program.stages.registry import PROMPTED, STAGES, VIEWS
from archehr.program.stages.render import render
from archehr.program.types import SentenceScore

LABEL = {"essential": 5, "supplementary": 3, "not-relevant": 1}
TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=60)
LIKE_A_LINE = st.builds("[{}] {}".format, st.integers(0, 9), TEXT)

INPUTS = {
    "score": {
        "question": "Why was the drain placed?",
        "narrative": "They put a drain in my mother. Why?",
        "sentences": "[1] Hospital Course:\n[2] The drain was placed for an abscess.\n[3] Diet was regular.",
    },
    "align": {
        "question": "Why was the drain placed?",
        "answer_sentences": "[1] The drain was placed for an abscess.\n[2] She ate.",
        "sentences": "[1] Hospital Course:\n[2] A drain was placed for the large abscess.\n[3] Diet was regular.",
    },
    "generate": {
        "question": "Why was the drain placed?",
        "evidence": "[2] A drain was placed (by radiology) for the abscess.\n[3] Diet was regular.",
        "note": "[1] Course:\n[2] A drain was placed (by radiology) for the abscess.\n[3] Diet was regular.",
    },
    "reformulate": {"narrative": "They put a drain in my mother. I am scared. Why did she need a drain?"},
}


class Listening(KnnEngine):
    """The engine under test; `requests` holds what it was asked."""

    def __init__(self) -> None:
        self.requests: list[lm15.Request] = []

    def complete(self, request: lm15.Request) -> lm15.Response:
        self.requests.append(request)
        return super().complete(request)


def predict(
    signature: Any, inputs: dict[str, str], demos: Sequence[dict[str, Any]] = (), engine: KnnEngine | None = None
) -> dspy.Prediction:
    """One answer through dspy.Predict and JSONAdapter."""
    lm = dspy.LM("knn", engine=engine or KnnEngine(), cache=False)
    program = dspy.Predict(signature)
    program.demos = list(demos)
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter(), disable_history=True):
        return program(**inputs)


def scores_of(prediction: dspy.Prediction) -> dict[str, int]:
    return {s.id: s.score for s in prediction.scores}


def graded(grade: Callable[[int], int], demos: int = 3) -> list[dict[str, Any]]:
    """Score demos of one heading, five lines on the drain and five on the diet; `grade(line number)` is the label."""
    lines = ["Course:", *["The drain was placed."] * 5, *["Diet was advanced slowly to regular."] * 5]
    shown = "\n".join(f"[{i}] {text}" for i, text in enumerate(lines))
    scores = [{"id": str(i), "score": grade(i)} for i in range(len(lines))]
    return [
        {"question": f"Why was drain {n} placed?", "narrative": "Why?", "sentences": shown, "scores": scores}
        for n in range(demos)
    ]


def test_demos_turn_its_scores_round() -> None:
    drain, diet = graded(lambda i: 5 if 1 <= i <= 5 else 1), graded(lambda i: 5 if i > 5 else 1)
    lines = ["Summary:", *["A stent was needed."] * 4, *["Fluids were stopped late in the stay."] * 4]
    sentences = "\n".join(f"[{i}] {text}" for i, text in enumerate(lines))
    inputs = {"question": "Why was a stent needed?", "narrative": "Why?", "sentences": sentences}
    on_drain = scores_of(predict(STAGES["score"].signature, inputs, drain))
    on_diet = scores_of(predict(STAGES["score"].signature, inputs, diet))
    assert list(on_drain.values())[1:] == [5] * 4 + [1] * 4
    assert list(on_diet.values())[1:] == [1] * 4 + [5] * 4


@pytest.mark.parametrize("label", [1, 3, 5])
def test_demos_that_agree_are_followed(label: int) -> None:
    given_scores = scores_of(predict(STAGES["score"].signature, INPUTS["score"], graded(lambda _: label)))
    assert given_scores == {"1": label, "2": label, "3": label}


def test_without_demos_it_counts_shared_words() -> None:
    assert scores_of(predict(STAGES["score"].signature, INPUTS["score"])) == {"1": 1, "2": 5, "3": 2}
    links = {link.answer_id: link.evidence_ids for link in predict(STAGES["align"].signature, INPUTS["align"]).links}
    assert links == {"1": ["2"], "2": []}
    assert predict(STAGES["reformulate"].signature, INPUTS["reformulate"]).question == "Why did she need a drain?"
    answer = predict(STAGES["generate"].signature, INPUTS["generate"]).answer_sentences
    assert answer == ["A drain was placed for the abscess.", "Diet was regular."]


def test_answer_first_cites_what_is_like_the_lines_that_demos_cite() -> None:
    signature = VIEWS["answer_first"].signature
    (alone,) = predict(signature, {**INPUTS["score"], "narrative": ""}).cited_answer[:1]
    assert alone.evidence_ids == ["2"] and alone.sentence == "The drain was placed for an abscess."
    lines = [*["A stent was needed."] * 4, *["Fluids were stopped late in the stay."] * 4]
    sentences = "\n".join(f"[{i}] {text}" for i, text in enumerate(lines, 1))
    inputs = {"question": "Why was a stent needed?", "narrative": "Why?", "sentences": sentences}
    for cited, found in ((range(1, 6), "1234"), (range(6, 11), "5678")):
        parts = [{"sentence": "It is so.", "evidence_ids": [str(i) for i in cited]}]
        demos = [{**demo, "cited_answer": parts} for demo in graded(lambda i: 1)]
        answer = predict(signature, inputs, demos).cited_answer
        assert "".join(i for part in answer for i in part.evidence_ids) == found


def test_a_verdict_is_by_the_words_that_the_cited_lines_hold() -> None:
    cited = (
        "[1] The drain was placed for an abscess.\ncites:\n[2] A drain was placed for the abscess.\n\n"
        "[2] Her kidneys failed.\ncites:\n[3] Diet was regular.\n[4] She walks."
    )
    found = predict(PROMPTED["verify"].signature, {"question": "Why?", "cited_answer": cited}).verdicts
    assert {v.answer_id: v.verdict for v in found} == {"1": "supported", "2": "not supported"}


def test_a_view_and_the_verifier_can_be_tried_without_a_server() -> None:
    program = GroundedQA(PipelineSettings(views=parse_views("score,answer_first"), verify="revise"))
    for record in run_cases(read_cases("sample/test")[:4], program, make_lm("knn")).records:
        assert record.scores and set(record.scores[0].votes) == {"score", "answer_first"}  # type: ignore[union-attr]
        assert not {n["kind"] for n in record.notices} & {"lm_failed", "view_failed"}
        assert record.declined or record.verdicts


def test_text_is_as_long_as_the_nearest_demo_and_ends_like_it() -> None:
    narrative = INPUTS["reformulate"]["narrative"]
    demos = [
        {"narrative": narrative, "question": "Why a drain?"},
        {"narrative": "My son has asthma. Is it safe?", "question": "Is it safe for the patient to go home today?"},
    ]
    question = predict(STAGES["reformulate"].signature, INPUTS["reformulate"], demos).question
    assert len(question.split()) == 3
    assert question.endswith("?")


@pytest.mark.parametrize("demo_words", [0, 30, 200])
def test_an_answer_keeps_to_the_limit_of_the_prompt_and_the_length_of_the_demo(demo_words: int) -> None:
    evidence = "\n".join(f"[{i}] The drain was placed on day {i} and left for some time." for i in range(20))
    inputs = {"question": "Why was the drain placed?", "evidence": evidence, "note": evidence}
    demos = [{**inputs, "answer_sentences": ["drain " * demo_words]}] if demo_words else []
    made = predict(STAGES["generate"].signature, inputs, demos).answer_sentences
    most = 30 if demo_words == 30 else 75
    assert most - 12 < sum(len(text.split()) for text in made) <= most
    (cut,) = predict(
        STAGES["generate"].signature, {**inputs, "evidence": "[1] " + "drain " * 90}, demos
    ).answer_sentences
    assert len(cut.split()) == most


def test_demos_it_cannot_use_are_as_none() -> None:
    bare = predict(STAGES["score"].signature, INPUTS["score"])
    unusable = [
        {"question": "Why?", "scores": [{"id": "1", "score": 5}]},  # DSPy shows it as an incomplete example
        {**INPUTS["score"], "scores": "all of them"},
    ]
    assert predict(STAGES["score"].signature, INPUTS["score"], unusable) == bare


def test_it_follows_changed_instructions_and_other_names() -> None:
    class Rate(dspy.Signature):
        """Whatever an optimiser wrote."""

        asked: str = dspy.InputField()
        lines: str = dspy.InputField()
        marks: list[SentenceScore] = dspy.OutputField()

    made = predict(Rate, {"asked": "Why was the drain placed?", "lines": INPUTS["score"]["sentences"]})
    assert {m.id: m.score for m in made.marks} == {"1": 1, "2": 5, "3": 2}
    told = STAGES["score"].signature.with_instructions("Grade. Answer in French.")
    assert predict(told, INPUTS["score"]) == predict(STAGES["score"].signature, INPUTS["score"])


@pytest.mark.parametrize("stage", STAGES)
def test_it_reads_the_output_fields_from_the_prompt_where_no_schema_is_sent(stage: str) -> None:
    engine = Listening()
    predict(STAGES[stage].signature, INPUTS[stage], engine=engine)
    with_schema = engine.requests[-1]
    without = lm15.Request(model="knn", messages=with_schema.messages, system=with_schema.system)
    assert with_schema.config.response_format
    assert engine.complete(without).message.text == engine.complete(with_schema).message.text


def test_a_prompt_of_another_shape_gets_plain_json() -> None:
    engine = KnnEngine()
    chat = lm15.Request(model="knn", messages=(lm15.Message.user("Improve this instruction."),))
    assert engine.complete(chat).message.text == "{}"
    fields = {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string"}}, "c": {"type": "boolean"}}
    config = lm15.Config(response_format={"type": "json_schema", "schema": {"properties": fields}})
    asked = lm15.Request(model="knn", messages=chat.messages, config=config)
    assert json.loads(engine.complete(asked).message.text or "") == {"a": "", "b": [], "c": False}


def test_usage_is_four_characters_a_token() -> None:
    prompt = lm15.Request(model="knn", messages=(lm15.Message.user("x" * 400),))
    usage = KnnEngine().complete(prompt).usage
    assert (usage.input_tokens, usage.output_tokens) == (100, 0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(TEXT | LIKE_A_LINE, min_size=1, max_size=8),
    st.lists(TEXT, min_size=1, max_size=4),
    TEXT | LIKE_A_LINE,
    st.lists(st.integers(0, 7), max_size=3),
)
def test_it_answers_every_id_once_whatever_the_text(
    note: list[str], answer: list[str], question: str, labels: list[int]
) -> None:
    sentences = render([Sentence(str(i), text) for i, text in enumerate(note)])
    answered = render([AnswerSentence(str(i), text) for i, text in enumerate(answer)])
    ids, answer_ids = [str(i) for i in range(len(note))], [str(i) for i in range(len(answer))]
    inputs = {"question": question, "narrative": question, "sentences": sentences}
    demos = [{**inputs, "scores": [{"id": i, "score": label} for i in ids]} for label in labels]
    scores = predict(STAGES["score"].signature, inputs, demos).scores
    assert [s.id for s in scores] == ids

    inputs = {"question": question, "answer_sentences": answered, "sentences": sentences}
    demos = [
        {**inputs, "links": [{"answer_id": a, "evidence_ids": ids[:label]} for a in answer_ids]} for label in labels
    ]
    links = predict(STAGES["align"].signature, inputs, demos).links
    assert [link.answer_id for link in links] == answer_ids
    assert all(set(link.evidence_ids) <= set(ids) for link in links)

    inputs = {"question": question, "evidence": sentences, "note": sentences}
    made = predict(
        STAGES["generate"].signature, inputs, [{**inputs, "answer_sentences": answer}] * len(labels)
    ).answer_sentences
    assert sum(len(text.split()) for text in made) <= 75
    made = predict(
        STAGES["reformulate"].signature, {"narrative": question}, [{"narrative": answered, "question": question}]
    )
    assert len(made.question.split()) <= 15


def labelled(program: GroundedQA, cases: Sequence[Case]) -> GroundedQA:
    """The program with the gold of `cases` as demos of its score and align stages."""
    golds = [(case, case.gold) for case in cases if case.gold is not None]
    program.score.predict.demos = [
        {
            "question": case.clinician_question,
            "narrative": case.narrative,
            "sentences": render(case.sentences),
            "scores": [{"id": i, "score": LABEL[label.value]} for i, label in (gold.relevance or {}).items()],
        }
        for case, gold in golds
    ]
    program.align.predict.demos = [
        {
            "question": case.clinician_question,
            "answer_sentences": render(gold.answer_sentences),
            "sentences": render(case.sentences),
            "links": [{"answer_id": a.id, "evidence_ids": list(a.citations or ())} for a in gold.answer_sentences],
        }
        for case, gold in golds
    ]
    return program


def results(program: GroundedQA, cases: Sequence[Case]) -> dict[int, ScoreResult]:
    made = submissions(run_cases(cases, program, make_lm("knn", cache=False), workers=2).records)
    links = [
        {"case_id": i, "prediction": [{"answer_id": a, "evidence_id": e} for a, e in pairs]}
        for i, pairs in made[4].items()
    ]
    evidence = [{"case_id": i, "prediction": ids} for i, ids in made[2].items()]
    return {2: score_submission(evidence, cases, 2), 4: score_submission(links, cases, 4)}


def test_labelled_demos_beat_no_demos_on_the_sample_test_set() -> None:
    cases = read_cases("sample/test")
    without = results(GroundedQA(), cases)
    with_demos = results(labelled(GroundedQA(), read_cases("sample/dev")[:8]), cases)
    for subtask, name in ((2, "strict_micro_f1"), (4, "micro_f1")):
        gain = paired_difference(with_demos[subtask].table, without[subtask].table)[name]
        assert gain.value >= 10
        assert gain.low > 0


def test_the_same_prompt_gets_the_same_answer_in_any_thread_and_without_memory() -> None:
    case = read_cases("sample/test")[0]
    program = labelled(GroundedQA(), read_cases("sample/dev")[:2])
    engine = Listening()
    inputs = {"question": "Why?", "narrative": case.narrative, "sentences": render(case.sentences)}
    predict(STAGES["score"].signature, inputs, program.score.predict.demos, engine)
    request = engine.requests[0]
    knn._fit.cache_clear()
    with ThreadPoolExecutor(8) as threads:
        replies = {r.message.text for r in threads.map(KnnEngine().complete, [request] * 16)}
    knn._fit.cache_clear()
    assert replies == {KnnEngine().complete(request).message.text}


@pytest.mark.parametrize("module", ["knn", "neighbours", "prompt_reader"])
def test_it_has_nothing_to_learn_from_but_its_prompt(module: str) -> None:
    path = importlib.import_module(f"archehr.program.lm.engines.{module}").__file__
    assert path is not None
    source = Path(path).read_text(encoding="utf-8")
    imported = {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert not {name.split(".")[0] for name in imported} & {"os", "pathlib", "importlib"}
    assert not [name for name in imported if name.startswith(("archehr.data", "archehr.program.extractive"))]
    assert "open(" not in source
