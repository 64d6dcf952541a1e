"""Reads a key: case id to gold, in every variant that is about, and lays it on the cases it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from archehr.data.case import AnswerSentence, Case, DataError, Gold, Relevance, shown_id, shown_ids
from archehr.data.case_file import hold_golds
from archehr.data.files import LAYOUT
from archehr.data.json_stream import json_array

_LONGEST_RANGE = 10_000


def read_key(path: str | Path, *, notes: list[str] | None = None) -> Mapping[str, Gold]:
    """The key file alone: case id -> Gold, in file order. Raises DataError."""
    return hold_golds(_golds(Path(path), notes if notes is not None else []))


def _golds(path: Path, notes: list[str]) -> Iterator[tuple[str, Gold]]:
    seen: set[str] = set()
    for position, entry in enumerate(json_array(path, "a key"), 1):
        case_id = _id(entry, "case_id", f"{path}: entry {position}")
        if case_id in seen:
            raise DataError(f"{path}: case {shown_id(case_id)} stands twice in the key; remove one")
        seen.add(case_id)
        yield case_id, _gold(entry, path, case_id, notes)


def parse_citations(value: object) -> tuple[str, ...] | None:
    """Citations in any shipped form: list, "2,5", "[1, 4]", "19-25", "", int or null (null means not labelled).

    Order is kept and repeats go. Raises ValueError for anything else. The official ST4 scorer splits a string by
    character; we read it as its writers meant it (notes/metrics.md, section 3).
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, list, tuple)):
        raise ValueError(f"citations of type {type(value).__name__}")
    if isinstance(value, int):
        return (str(value),)
    if isinstance(value, str):
        parts: Iterable[str] = re.split(r"[,;\s]+", re.sub(r"\s*[-–]\s*", "-", value.strip().strip("[]|")))
        return tuple(dict.fromkeys(i for part in parts if part for i in _expand(part)))
    ids: list[str] = []
    for item in value:
        if isinstance(item, (list, tuple)) or item is None:
            raise ValueError("citations nested in citations")
        ids.extend(parse_citations(item) or ())
    return tuple(dict.fromkeys(ids))


def _expand(part: str) -> list[str]:
    span = re.fullmatch(r"(\d{1,6})-(\d{1,6})", part)
    if span is None:
        return [part.strip("[]|\"'")]
    first, last = int(span[1]), int(span[2])
    if not first <= last <= first + _LONGEST_RANGE:
        raise ValueError(f"citation range {part}")
    return [str(i) for i in range(first, last + 1)]


def _id(item: Any, name: str, where: str) -> str:
    """The id an entry of the key holds under `name`: a string, or a number read as one."""
    value = item.get(name) if isinstance(item, dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise DataError(f"{where} has no {name}; every one needs it, as a string")
    return str(value)


def _gold(entry: dict[str, Any], path: Path, case_id: str, notes: list[str]) -> Gold:
    where = f"{path}: case {shown_id(case_id)}"
    relevance = _relevance(entry["answers"], where) if entry.get("answers") is not None else None
    answer = entry.get("clinician_answer_without_citations")
    cited = entry.get("clinician_answer")
    if not all(text is None or isinstance(text, str) for text in (answer, cited)):
        raise DataError(f"{where}: clinician_answer and clinician_answer_without_citations must be strings")
    if answer is None and cited is not None:
        answer = re.sub(r"\s*[\[|][\d,;\s–-]+[\]|]", "", cited)
    sentences = _answer_sentences(entry.get("clinician_answer_sentences"), where, notes)
    return Gold(relevance, answer.strip(LAYOUT) if answer else None, sentences, _remark(entry.get("review"), where))


def _remark(review: Any, where: str) -> str | None:
    """What a reviewer remarked, in a key that archehr review has exported."""
    remark = review.get("remark") if isinstance(review, dict) else None
    if not isinstance(remark, str | None):
        raise DataError(f"{where}: the remark in review must be a string")
    return remark or None


def _relevance(answers: Any, where: str) -> dict[str, Relevance]:
    if not isinstance(answers, list):
        raise DataError(f"{where}: answers must be an array of {{sentence_id, relevance}}")
    labels: dict[str, Relevance] = {}
    for item in answers:
        sid, label = _id(item, "sentence_id", f"{where}: an entry of answers"), item.get("relevance")
        if sid in labels:
            raise DataError(f"{where}: sentence {shown_id(sid)} is labelled twice in answers; keep one label")
        try:
            labels[sid] = Relevance(str(label))
        except ValueError:
            raise DataError(
                f"{where}: sentence {shown_id(sid)} has relevance {str(label)[:30]!r}; "
                "use essential, supplementary or not-relevant"
            ) from None
    return labels


def _answer_sentences(items: Any, where: str, notes: list[str]) -> tuple[AnswerSentence, ...]:
    if items is None:
        return ()
    if not isinstance(items, list):
        raise DataError(f"{where}: clinician_answer_sentences must be an array of {{id, text, citations}}")
    sentences: dict[str, AnswerSentence] = {}
    for item in items:
        sid = _id(item, "id", f"{where}: an answer sentence")
        text, value = item.get("text"), item.get("citations")
        if sid in sentences:
            raise DataError(f"{where}: answer sentence {shown_id(sid)} stands twice; ids must be unique within a case")
        if text is not None and not isinstance(text, str):
            raise DataError(f"{where}: answer sentence {shown_id(sid)}: text must be a string")
        try:
            citations = parse_citations(value)
        except ValueError as error:
            raise DataError(f"{where}: answer sentence {shown_id(sid)}: {error}; use a list of sentence ids") from None
        note = f"{where.split(': case')[0]}: citations stored as strings or numbers were read as lists of ids"
        if isinstance(value, (str, int)) and note not in notes:
            notes.append(note)
        sentences[sid] = AnswerSentence(sid, (text or "").strip(LAYOUT), citations)
    return tuple(sentences.values())


def with_gold(cases: Iterable[Case], golds: Mapping[str, Gold], data: Path, key: Path) -> Iterator[Case]:
    """The cases with their gold. Raises DataError where the key of file `key` does not fit the cases of `data`."""
    ids: set[str] = set()
    for case in cases:
        ids.add(case.id)
        yield _checked(case, golds[case.id], key) if case.id in golds else case
    if extra := [i for i in golds if i not in ids]:
        raise DataError(
            f"{key}: case {shown_ids(extra)} is in the key but not in {data.name}; do the two files belong together?"
        )


def _checked(case: Case, gold: Gold, key_path: Path) -> Case:
    where = f"{key_path}: case {shown_id(case.id)}"
    ids = {s.id for s in case.sentences}
    if case.sentences and (unknown := [i for i in gold.relevance or {} if i not in ids]):
        raise DataError(
            f"{where}: answers label sentence {shown_ids(unknown)}, which the note does not have; correct the key"
        )
    for sentence in gold.answer_sentences:
        if case.sentences and (unknown := [i for i in sentence.citations or () if i not in ids]):
            raise DataError(
                f"{where}: answer sentence {shown_id(sentence.id)} cites {shown_ids(unknown)}, "
                "which the note does not have; correct the key"
            )
    answer_ids = {s.id for s in case.answer_sentences}
    if answer_ids and (unknown := [s.id for s in gold.answer_sentences if s.id not in answer_ids]):
        raise DataError(
            f"{where}: answer sentence {shown_ids(unknown)} is not among the <answer_sentences> of the XML; "
            "correct the key"
        )
    sentences = case.answer_sentences or tuple(AnswerSentence(s.id, s.text) for s in gold.answer_sentences if s.text)
    return replace(case, answer_sentences=sentences, gold=gold)
