"""The shared task's XML, in every variant that is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from archehr.data.case import AnswerSentence, Case, DataError, Sentence, shown_id
from archehr.data.files import KEY_NAME, LAYOUT, XML_NAME, decoded_head, located, unpacked_head, xml_cases
from archehr.data.reading.reader import Reader, Reading, Source
from archehr.data.reading.texts import refuse_other_standards
from archehr.data.splitter.headers import Span
from archehr.data.splitter.locate import locate


def find_xml(path: Path) -> Path:
    """The XML file DATA means: a folder that holds one, the file itself, or a shipped sample. Raises DataError."""
    path = located(path)
    if not path.is_dir():
        return path
    xml = path / XML_NAME
    if xml.exists():
        return xml
    others = sorted(path.glob("*.xml"))
    if len(others) == 1:
        return others[0]
    what = f"has {len(others)} .xml files; name one" if others else f"holds no {XML_NAME}; name the .xml file"
    raise DataError(f"{path}: the folder {what}")


def find_key(path: Path) -> Path | None:
    """The key beside the XML file that DATA means, if there is one."""
    path = find_xml(path)
    key = path.with_name(f"{path.stem}_key.json")
    if not key.exists() and list(path.parent.glob("*.xml")) == [path]:
        key = path.with_name(KEY_NAME)  # it can belong to no other XML
    return key if key.exists() else None


def _reads(source: Source) -> bool:
    if source.is_folder:
        return any(source.path.glob("*.xml"))
    return source.path.suffix == ".xml" or source.text.lstrip().startswith(("<?xml", "<annotations", "<case"))


def _title(path: Path) -> str:
    return path.parent.name if path.name == XML_NAME else path.name.removesuffix(".xml")


def _cases(reading: Reading) -> Iterator[Case]:
    path = find_xml(reading.path)
    refuse_other_standards(decoded_head(unpacked_head(path)), str(path))
    for position, element in enumerate(xml_cases(path), 1):
        yield _case(element, path, position)


def _case(element: Element, path: Path, position: int) -> Case:
    case_id = (element.get("id") or "").strip(LAYOUT)
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
        sentences=_note_sentences(element, where),
        answer_sentences=tuple(answers),
    )


def _note_sentences(element: Element, where: str) -> tuple[Sentence, ...]:
    container = "note_excerpt_sentences"
    sentences = _sentences(element, container, where)
    hints = [_hint(sentence) for sentence in element.findall(f"{container}/sentence")]
    spans = locate(_text(element.find("note_excerpt")), [text for _, text, _ in sentences], hints)
    return tuple(
        Sentence(sid, text, paragraph, *(span or (None, None)))
        for (sid, text, paragraph), span in zip(sentences, spans, strict=True)
    )


def _hint(sentence: Element) -> Span | None:
    start, length = sentence.get("start_char_index", ""), sentence.get("length", "")
    if not re.fullmatch(r"\d{1,9}", start) or not re.fullmatch(r"\d{1,9}", length):
        return None
    return int(start), int(start) + int(length)


def _sentences(element: Element, container: str, where: str) -> list[tuple[str, str, str | None]]:
    sentences: list[tuple[str, str, str | None]] = []
    seen: set[str] = set()
    where = f"{where}: <{container}>"
    for position, sentence in enumerate(element.findall(f"{container}/sentence"), 1):
        sid = (sentence.get("id") or "").strip(LAYOUT)
        if not sid:
            raise DataError(f"{where} sentence number {position} has no id; every sentence needs one")
        if sid in seen:
            raise DataError(f"{where} sentence id {shown_id(sid)} stands twice; ids must be unique within a case")
        text = _text(sentence)
        if not text:
            raise DataError(f"{where} sentence {shown_id(sid)} is empty; remove it or give it its text")
        seen.add(sid)
        sentences.append((sid, text, sentence.get("paragraph_id")))
    return sentences


def _text(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip(LAYOUT)


READER = Reader(
    name="archehr",
    what=f"a folder with {XML_NAME}, an .xml file of the shared task",
    reads=_reads,
    cases=_cases,
    find_key=find_key,
    title=_title,
)
