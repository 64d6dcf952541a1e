"""What each subtask is scored against: from our Cases, or from a raw key exactly as the official scripts read it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from archehr.data.case import Case, DataError
from archehr.metrics.alignment import Pair
from archehr.metrics.predictions import faults_at


class EvidenceKey(NamedTuple):
    """Key of one case of subtask 2: essential and supplementary sentence ids, and all that exist."""

    essential: frozenset[str]
    supplementary: frozenset[str]
    known: frozenset[str]


class AlignmentKey(NamedTuple):
    """Key of one case of subtask 4: (answer id, evidence id) pairs, and the ids that exist on either side."""

    links: frozenset[Pair]
    answers: frozenset[str]
    known: frozenset[str]


class LabelledInPart(DataError):
    """The answer sentences of a case are labelled in part."""


class TextKey(NamedTuple):
    """Key of one case of subtask 1 or 3: the reference text and SARI's source, the patient's message."""

    reference: str
    source: str | None


# ---------------------------------------------------------------------------------------------------- our records


def key_of(case: Case, subtask: int) -> Any:
    """The EvidenceKey, AlignmentKey or TextKey of a case, or None where the data holds no reference for it.

    Raises LabelledInPart where some answer sentences have citations: scoring them would count the rest as wrong.
    """
    return _OF_CASE[subtask](case)


def labelled_in_part(case: Case, subtask: int) -> bool:
    """Is that why `key_of` gives none?"""
    try:
        key_of(case, subtask)
    except LabelledInPart:
        return True
    return False


def _evidence_of(case: Case) -> EvidenceKey | None:
    relevance = case.gold.relevance if case.gold else None
    if case.gold is None or relevance is None or (not relevance and case.sentences):
        return None
    return EvidenceKey(case.gold.essential, case.gold.supplementary, _note_ids(case))


def _alignment_of(case: Case) -> AlignmentKey | None:
    links = case.gold.links if case.gold else None
    if case.gold is None or links is None:
        return None
    if bare := [s.id for s in case.gold.answer_sentences if s.citations is None]:
        raise LabelledInPart(
            f"case {case.id}: answer sentence {', '.join(bare)} has no citations in the key; label it ([] is none)"
        )
    return AlignmentKey(links, frozenset(s.id for s in case.gold.answer_sentences), _note_ids(case))


def _note_ids(case: Case) -> frozenset[str]:
    """The note sentences that exist, in the data or, read without it, in the key."""
    relevance = case.gold.relevance if case.gold else None
    return frozenset([*(relevance or ()), *(s.id for s in case.sentences)])


def unlabelled(case: Case) -> list[str]:
    """The note sentences that a key leaves out which labels others."""
    relevance = (case.gold.relevance if case.gold else None) or {}
    return [s.id for s in case.sentences if s.id not in relevance] if relevance else []


def _question_of(case: Case) -> TextKey | None:
    return TextKey(case.clinician_question.strip(), case.narrative.strip()) if case.clinician_question else None


def _answer_of(case: Case) -> TextKey | None:
    if case.gold is None or not case.gold.answer:
        return None
    # A key read without its XML has no patient's message, so SARI has no source.
    return TextKey(case.gold.answer.strip(), case.narrative.strip() or None)


_OF_CASE: dict[int, Callable[[Case], Any]] = {1: _question_of, 2: _evidence_of, 3: _answer_of, 4: _alignment_of}


# ---------------------------------------------------------------------------------------------------- as official


def official_keys(subtask: int, key: Any, root: Element | None, wanted: Collection[str] | None) -> dict[Any, Any]:
    """Case id -> key, as `load_key` of the official scripts reads raw JSON (subtasks 2-4) or the XML (subtask 1).

    Faults included: the last of two equal case ids wins, an unknown relevance counts as not relevant, and citations
    kept as a string are read character by character. Raises DataError where the official code raises.
    """
    if subtask == 1:
        return _official_questions(_cases_below(root), wanted)
    if subtask == 3:
        return _official_answers(key, root, wanted)
    read = _official_evidence if subtask == 2 else _official_alignment
    return _official_entries(key, read, wanted)


def _official_entries(key: Any, read: Callable[[Any], Any], wanted: Collection[str] | None) -> dict[Any, Any]:
    keys = {}
    with faults_at("the key"):
        entries = list(enumerate(key, 1))
    for position, entry in entries:
        with faults_at(f"entry {position} of the key"):
            if not wanted or entry["case_id"] in wanted:
                keys[entry["case_id"]] = read(entry)
    return keys


def _official_evidence(entry: dict[str, Any]) -> EvidenceKey:
    labels = [(answer["sentence_id"], answer["relevance"]) for answer in entry.get("answers", [])]
    essential, supplementary = (
        frozenset(i for i, label in labels if label == wanted) for wanted in ("essential", "supplementary")
    )
    return EvidenceKey(essential, supplementary, frozenset(i for i, _ in labels))


def _official_alignment(entry: dict[str, Any]) -> AlignmentKey:
    sentences = [(s["id"], s["citations"]) for s in entry["clinician_answer_sentences"]]
    note_ids = frozenset(answer["sentence_id"] for answer in entry.get("answers", []))
    return AlignmentKey(
        frozenset((i, c) for i, cited in sentences for c in cited), frozenset(i for i, _ in sentences), note_ids
    )


def _cases_below(root: Element | None) -> Sequence[Element]:
    if root is None:
        raise DataError("the official scorer of subtasks 1 and 3 reads the XML; pass --data")
    return root.findall(".//case")


def _official_questions(cases: Sequence[Element], wanted: Collection[str] | None) -> dict[Any, Any]:
    texts = _official_texts(cases, "clinician_question", wanted)
    return {case_id: TextKey(text, None) for case_id, text in texts.items()}


def _official_answers(key: Any, root: Element | None, wanted: Collection[str] | None) -> dict[Any, Any]:
    texts = _official_entries(key, lambda entry: entry["clinician_answer_without_citations"].strip(), wanted)
    sources = _official_texts(_cases_below(root), "patient_narrative", wanted)
    return {case_id: TextKey(text, sources.get(case_id)) for case_id, text in texts.items()}


def _official_texts(cases: Sequence[Element], tag: str, wanted: Collection[str] | None) -> dict[str, str]:
    with faults_at(f"the XML: a case without its id or without text in <{tag}>"):
        chosen = [(c.attrib["id"], c) for c in cases if not wanted or c.attrib["id"] in wanted]
        return {case_id: case.find(tag).text.strip() for case_id, case in chosen}  # type: ignore[union-attr]
