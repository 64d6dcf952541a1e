"""Reads the shared task's files, in every variant that is about: `read_cases(DATA)` is the way in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from archehr.data.case import AnswerSentence, Case, DataError, Gold, Relevance, Sentence, shown_id
from archehr.data.files import find_key, find_xml, read_json, read_xml

# The layout around a text is stripped, the text itself is not: a non-breaking space is the note's own.
_LAYOUT = " \t\r\n\f\v"
_LONGEST_RANGE = 10_000


def read_cases(path: str | Path, key: str | Path | None = None, *, notes: list[str] | None = None) -> list[Case]:
    """The cases of DATA, in file order, with the key's gold where there is one.

    `path` is a folder holding archehr-qa.xml, an .xml file, or "sample/dev" | "sample/test" (shipped with the
    package; a real path of that name wins). The key is `key`, or archehr-qa_key.json beside the XML, or
    NAME_key.json beside NAME.xml. What had to be normalised on the way (for example citations stored as comma
    strings) is appended to `notes`, once per kind. Raises DataError: one line naming file, case, element and remedy.
    """
    xml_path = find_xml(Path(path))
    cases = _read_xml(xml_path)
    key_path = Path(key) if key is not None else find_key(xml_path)
    if key_path is None:
        return cases
    return _with_gold(cases, read_key(key_path, notes=notes), xml_path, key_path)


def select_cases(cases: Sequence[Case], wanted: str | None) -> list[Case]:
    """The cases named by a list such as "1,4-9", in file order. Raises DataError for an id that is not there."""
    if not wanted:
        return list(cases)
    ids = parse_case_ids(wanted)
    known = {c.id for c in cases}
    if missing := [i for i in ids if i not in known]:
        raise DataError(f"--cases {wanted}: no case {', '.join(missing)} in the data; it has {_shorten(sorted(known))}")
    return [c for c in cases if c.id in set(ids)]


def parse_case_ids(text: str) -> list[str]:
    """ "1,4-6" -> ["1", "4", "5", "6"]. Raises DataError for an empty, reversed or unreadable part."""
    ids: list[str] = []
    for part in text.replace(" ", ",").split(","):
        if not part:
            continue
        span = re.fullmatch(r"(\d{1,9})-(\d{1,9})", part)
        if span is None:
            ids.append(part)
        elif int(span[1]) > int(span[2]):
            raise DataError(f"--cases {text}: the range {part} runs backwards; write {span[2]}-{span[1]}")
        elif int(span[2]) - int(span[1]) > _LONGEST_RANGE:
            raise DataError(f"--cases {text}: the range {part} is longer than any data set; name the cases")
        else:
            ids.extend(str(i) for i in range(int(span[1]), int(span[2]) + 1))
    if not ids:
        raise DataError("--cases names no case; write for example 1,4-9")
    return list(dict.fromkeys(ids))


def read_key(path: str | Path, *, notes: list[str] | None = None) -> dict[str, Gold]:
    """The key file alone: case id -> Gold, in file order. Raises DataError."""
    path = Path(path)
    entries = read_json(path)
    if not isinstance(entries, list):
        raise DataError(f"{path}: a key is a JSON array of cases; this is {type(entries).__name__}")
    golds: dict[str, Gold] = {}
    seen = notes if notes is not None else []
    for position, entry in enumerate(entries, 1):
        case_id = _id(entry, "case_id", f"{path}: entry {position}")
        if case_id in golds:
            raise DataError(f"{path}: case {shown_id(case_id)} stands twice in the key; remove one")
        golds[case_id] = _gold(entry, path, case_id, seen)
    return golds


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


def _read_xml(path: Path) -> list[Case]:
    root = read_xml(path)
    elements = [root] if root.tag == "case" else root.findall("case")
    if not elements:
        raise DataError(f"{path}: no <case> element below <{root.tag[:40]}>; is this a shared-task file?")
    cases: list[Case] = []
    seen: set[str] = set()
    for element in elements:
        case = _case(element, path, len(cases) + 1)
        if case.id in seen:
            raise DataError(f"{path}: case {shown_id(case.id)} stands twice; remove or renumber one")
        seen.add(case.id)
        cases.append(case)
    return cases


# ---------------------------------------------------------------------------------------------------- one case


def _case(element: Element, path: Path, position: int) -> Case:
    case_id = (element.get("id") or "").strip(_LAYOUT)
    if not case_id:
        raise DataError(f"{path}: case number {position} has no id; give its <case> an id attribute")
    where = f"{path}: case {shown_id(case_id)}"
    narrative = _text(element.find("patient_narrative"))
    if not narrative:
        raise DataError(f"{where}: <patient_narrative> is missing or empty; every case needs one")
    answers = [AnswerSentence(sid, text) for sid, text, _ in _sentences(element, "answer_sentences", where)]
    return Case(
        id=case_id,
        narrative=narrative,
        question_phrases=tuple(t for p in element.findall("patient_question/phrase") if (t := _text(p))),
        clinician_question=_text(element.find("clinician_question")) or None,
        specialty=_text(element.find("clinical_specialty")) or None,
        note=_text(element.find("note_excerpt")) or None,
        sentences=tuple(
            Sentence(sid, text, paragraph)
            for sid, text, paragraph in _sentences(element, "note_excerpt_sentences", where)
        ),
        answer_sentences=tuple(answers),
    )


def _sentences(element: Element, container: str, where: str) -> list[tuple[str, str, str | None]]:
    found: list[tuple[str, str, str | None]] = []
    seen: set[str] = set()
    where = f"{where}: <{container}>"
    for position, sentence in enumerate(element.findall(f"{container}/sentence"), 1):
        sid = (sentence.get("id") or "").strip(_LAYOUT)
        if not sid:
            raise DataError(f"{where} sentence number {position} has no id; every sentence needs one")
        if sid in seen:
            raise DataError(f"{where} sentence id {shown_id(sid)} stands twice; ids must be unique within a case")
        text = _text(sentence)
        if not text:
            raise DataError(f"{where} sentence {shown_id(sid)} is empty; remove it or give it its text")
        seen.add(sid)
        found.append((sid, text, sentence.get("paragraph_id")))
    return found


def _text(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip(_LAYOUT)


# ---------------------------------------------------------------------------------------------------- the key


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
    return Gold(relevance, answer.strip(_LAYOUT) if answer else None, sentences)


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
    found: dict[str, AnswerSentence] = {}
    for item in items:
        sid = _id(item, "id", f"{where}: an answer sentence")
        text, value = item.get("text"), item.get("citations")
        if sid in found:
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
        found[sid] = AnswerSentence(sid, (text or "").strip(_LAYOUT), citations)
    return tuple(found.values())


def _with_gold(cases: list[Case], golds: dict[str, Gold], xml_path: Path, key_path: Path) -> list[Case]:
    known = {c.id for c in cases}
    if extra := [i for i in golds if i not in known]:
        raise DataError(
            f"{key_path}: case {_shorten(extra)} is in the key but not in {xml_path.name}; "
            "do the two files belong together?"
        )
    return [_checked(c, golds[c.id], key_path) if c.id in golds else c for c in cases]


def _checked(case: Case, gold: Gold, key_path: Path) -> Case:
    where = f"{key_path}: case {shown_id(case.id)}"
    ids = {s.id for s in case.sentences}
    if case.sentences and (unknown := [i for i in gold.relevance or {} if i not in ids]):
        raise DataError(
            f"{where}: answers label sentence {_shorten(unknown)}, which the note does not have; correct the key"
        )
    for sentence in gold.answer_sentences:
        if case.sentences and (unknown := [i for i in sentence.citations or () if i not in ids]):
            raise DataError(
                f"{where}: answer sentence {shown_id(sentence.id)} cites {_shorten(unknown)}, "
                "which the note does not have; correct the key"
            )
    answer_ids = {s.id for s in case.answer_sentences}
    if answer_ids and (unknown := [s.id for s in gold.answer_sentences if s.id not in answer_ids]):
        raise DataError(
            f"{where}: answer sentence {_shorten(unknown)} is not among the <answer_sentences> of the XML; "
            "correct the key"
        )
    given = case.answer_sentences or tuple(AnswerSentence(s.id, s.text) for s in gold.answer_sentences if s.text)
    return replace(case, answer_sentences=given, gold=gold)


def _shorten(ids: Iterable[str], most: int = 8) -> str:
    listed = list(ids)
    return ", ".join(map(shown_id, listed[:most])) + (f" and {len(listed) - most} more" if len(listed) > most else "")
