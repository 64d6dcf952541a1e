"""Finished cases as Label Studio tasks: spans in the note and the answer, links as relations, and the view for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from archehr.data.case import Case, Relevance

CONFIG = """<View>
  <Header value="Message"/>
  <Text name="narrative" value="$narrative"/>
  <Header value="Question"/>
  <TextArea name="question" toName="narrative" maxSubmissions="1"/>
  <Header value="Note"/>
  <Labels name="relevance" toName="note">
    <Label value="essential" background="#e0a100"/>
    <Label value="supplementary" background="#6b7f99"/>
    <Label value="not-relevant" background="#cccccc"/>
  </Labels>
  <Text name="note" value="$note"/>
  <Header value="Answer"/>
  <Labels name="sentence" toName="answer">
    <Label value="answer sentence" background="#0b57b7"/>
  </Labels>
  <Text name="answer" value="$answer"/>
  <Relations><Relation value="supported by"/></Relations>
  <Choices name="harm" toName="answer" choice="single">
    <Choice value="none"/>
    <Choice value="could mislead"/>
    <Choice value="could harm"/>
  </Choices>
  <TextArea name="remark" toName="answer"/>
</View>
"""


def label_studio_files(cases: Sequence[tuple[Case, Mapping[str, Any]]]) -> tuple[list[dict[str, Any]], str]:
    """The tasks to import, and the labelling view that they are made for.

    The note and the answer are their sentences, one a line; offsets count characters in them, as Label Studio does.
    """
    return [_task(case, facts) for case, facts in cases], CONFIG


def _task(case: Case, facts: Mapping[str, Any]) -> dict[str, Any]:
    gold = case.gold
    assert gold is not None
    note, note_spans = _joined((s.id, s.text) for s in case.sentences)
    answer, answer_spans = _joined((a.id, a.text) for a in gold.answer_sentences)
    result: list[dict[str, Any]] = [_text("question", "narrative", case.clinician_question or "")]
    for sentence_id, label in (gold.relevance or {}).items():
        result.append(_span(f"note-{sentence_id}", "relevance", "note", note, note_spans[sentence_id], label))
    for a in gold.answer_sentences:
        result.append(_span(f"answer-{a.id}", "sentence", "answer", answer, answer_spans[a.id], "answer sentence"))
        result += [_relation(f"answer-{a.id}", f"note-{i}") for i in a.citations or ()]
    if facts["harm"]:
        result.append({**_from("harm", "answer"), "type": "choices", "value": {"choices": [facts["harm"]]}})
    if facts["remark"]:
        result.append(_text("remark", "answer", facts["remark"]))
    return {
        "data": {
            "case_id": case.id,
            "narrative": case.narrative,
            "note": note,
            "answer": answer,
            "note_ids": [s.id for s in case.sentences],
            "reviewer": facts["reviewer"],
        },
        "annotations": [{"result": result, "lead_time": facts["seconds"]}],
    }


def _joined(sentences: Iterable[tuple[str, str]]) -> tuple[str, dict[str, tuple[int, int]]]:
    text, spans = "", {}
    for sentence_id, sentence in sentences:
        text += "\n" if text else ""
        spans[sentence_id] = (len(text), len(text) + len(sentence))
        text += sentence
    return text, spans


def _span(
    name: str, control: str, target: str, text: str, span: tuple[int, int], label: Relevance | str
) -> dict[str, Any]:
    start, end = span
    value = {"start": start, "end": end, "text": text[start:end], "labels": [str(label)]}
    return {"id": name, **_from(control, target), "type": "labels", "value": value}


def _relation(start: str, end: str) -> dict[str, Any]:
    return {"type": "relation", "from_id": start, "to_id": end, "direction": "right", "labels": ["supported by"]}


def _text(control: str, target: str, text: str) -> dict[str, Any]:
    return {**_from(control, target), "type": "textarea", "value": {"text": [text]}}


def _from(control: str, target: str) -> dict[str, Any]:
    return {"from_name": control, "to_name": target}
