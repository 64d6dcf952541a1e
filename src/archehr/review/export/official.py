"""Writes cases in the official form: archehr-qa.xml and archehr-qa_key.json, as read_cases takes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from archehr.data.case import Case, DataError
from archehr.data.files import KEY_NAME, XML_NAME, write_private
from archehr.review.actions import unwritable


def write_official(cases: Sequence[Case], reviews: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Write `cases`, whose gold is their key, and below each key entry its `review`. Raises DataError for a text that
    XML cannot hold, before anything is written."""
    for case in cases:
        _check(case)
    texts = {
        folder / XML_NAME: official_xml(cases),
        folder / KEY_NAME: json.dumps(
            [_key(c, r) for c, r in zip(cases, reviews, strict=True)], indent=2, ensure_ascii=False
        )
        + "\n",
    }
    for path, text in texts.items():
        write_private(path, text)
    return list(texts)


def official_xml(cases: Sequence[Case]) -> str:
    """The XML without any gold but the answer sentences, which are an input of subtask 4. Texts stand between their
    tags without layout, so that reading gives back every character."""
    lines = ["<?xml version='1.0' encoding='UTF-8'?>", "<annotations>"]
    for case in cases:
        lines += [f"<case id={_quoted(case.id)}>", *_elements(case), "</case>"]
    return "\n".join([*lines, "</annotations>"]) + "\n"


def _elements(case: Case) -> Iterator[str]:
    if case.specialty:
        yield _element("clinical_specialty", case.specialty)
    yield _element("patient_narrative", case.narrative)
    if case.question_phrases:
        yield "<patient_question>"
        for number, phrase in enumerate(case.question_phrases):
            yield _element("phrase", phrase, id=str(number), start_char_index=case.narrative.find(phrase))
        yield "</patient_question>"
    if case.clinician_question:
        yield _element("clinician_question", case.clinician_question)
    if case.note:
        yield _element("note_excerpt", case.note)
    if case.sentences:
        yield "<note_excerpt_sentences>"
        place = 0
        for s in case.sentences:
            start = (case.note or "").find(s.text, place) if s.start is None else s.start
            place = max(place, start)
            yield _element(
                "sentence", s.text, id=s.id, paragraph_id=s.paragraph_id, start_char_index=start, length=len(s.text)
            )
        yield "</note_excerpt_sentences>"
    if case.answer_sentences:
        yield "<answer_sentences>"
        for a in case.answer_sentences:
            yield _element("sentence", a.text, id=a.id)
        yield "</answer_sentences>"


def _element(tag: str, text: str, **attributes: str | int | None) -> str:
    """An element; an attribute without a value, or a place that was not found (-1), is left out."""
    values = {k: str(v) for k, v in attributes.items() if v is not None and v != -1}
    return f"<{tag}{''.join(f' {k}={_quoted(v)}' for k, v in values.items())}>{_escaped(text)}</{tag}>"


def _escaped(text: str) -> str:
    # A parser makes a line feed of a carriage return that is not escaped.
    return escape(text, {"\r": "&#13;"})


def _quoted(text: str) -> str:
    return quoteattr(text)


def _key(case: Case, review: dict[str, Any]) -> dict[str, Any]:
    gold = case.gold
    assert gold is not None
    cited = [f"{a.text} [{','.join(a.citations)}]" if a.citations else a.text for a in gold.answer_sentences]
    return {
        "case_id": case.id,
        "answers": [{"sentence_id": i, "relevance": str(label)} for i, label in (gold.relevance or {}).items()],
        "clinician_answer": " ".join(cited),
        "clinician_answer_without_citations": gold.answer,
        "clinician_answer_sentences": [
            {"id": a.id, "text": a.text, "citations": list(a.citations or ())} for a in gold.answer_sentences
        ],
        "review": review,
    }


def _check(case: Case) -> None:
    texts = [case.id, case.narrative, case.specialty, *case.question_phrases, case.clinician_question, case.note]
    texts += [part for s in case.sentences for part in (s.id, s.text, s.paragraph_id)]
    texts += [part for a in case.answer_sentences for part in (a.id, a.text)]
    if any(text and unwritable(text) for text in texts):
        raise DataError(
            f"case {case.id!r}: holds a control character, which the official form cannot hold; "
            "leave it out with --cases, or export with --format jsonl"
        )
