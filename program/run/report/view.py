"""One case as the report shows it: texts, marks, citations with anchors, and its line in the list of cases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from archehr.data.case import Case
from archehr.program.extractive.fitted.at_work import at_work
from archehr.program.extractive.fitted.file import FittedFile
from archehr.program.extractive.why import what_weighed
from archehr.program.pipeline import own_answer_sentences
from archehr.program.run.records import CaseRecord
from archehr.program.run.report.looks import CLEAR, LOOKS, CaseScores, confidence_of, declines, looks_of, unreached
from archehr.program.types import AgreedScore, Link

Shown = dict[str, Any]

_WORD = re.compile(r"\w+(?:[-'.]\w+)*")


def view_of(number: int, case: Case, record: CaseRecord, scores: CaseScores, reasons: Mapping[str, list[str]]) -> Shown:
    """What the templates show of case `number` of the report. Anchors are built of positions: ids may hold any
    character. `reasons` are by note sentence id."""
    anchors = {s.id: f"c{number}-s{i}" for i, s in enumerate(case.sentences, 1)}
    gold = case.gold
    labels: Mapping[str, Any] = (gold.relevance or {}) if gold else {}
    found = {s.id: s for s in record.scores or ()}
    verdicts = {v.answer_id: v for v in record.verdicts or ()}
    given = [(a.id, a.text) for a in case.answer_sentences]
    own = [(a.id, a.text) for a in own_answer_sentences(record.answer_sentences or [])]
    key = {a.id: a.citations for a in gold.answer_sentences} if gold else {}
    answers = {
        "own": _cited(own, record.links, anchors, {}, f"c{number}-a"),
        "given": _cited(given, record.given_links, anchors, key, f"c{number}-g"),
    }
    cited_by = _cited_by(answers)
    looks = looks_of(record, scores.is_lowest(case.id))
    return {
        "number": number,
        "anchor": f"c{number}",
        "case": case,
        "record": record,
        "question": question_of(case, record),
        "mark": LOOKS[looks[0]] if looks else CLEAR,
        "looks": looks,
        "declined": declines(record),
        "unreached": unreached(record),
        "scores": scores.of(case.id),
        "score": scores.mean(case.id),
        "confidence": confidence_of(record),
        "note": [
            {
                "anchor": anchors[s.id],
                "id": s.id,
                "text": s.text,
                "score": found[s.id].score if s.id in found else None,
                "agreed": agreed if isinstance(agreed := found.get(s.id), AgreedScore) else None,
                "evidence": s.id in (record.evidence or ()),
                "label": labels[s.id].value if s.id in labels else None,
                "cited_by": cited_by.get(s.id, ()),
                "reasons": reasons.get(s.id, ()),
            }
            for s in case.sentences
        ],
        "verdicts": verdicts,
        **answers,
    }


def question_of(case: Case, record: CaseRecord) -> str:
    """The question that a case's header shows: the program's own, else the clinician's, else how the message begins."""
    return record.question or case.clinician_question or " ".join(case.narrative.split()[:15])


def _cited(
    sentences: Iterable[tuple[str, str]],
    links: Sequence[Link] | None,
    anchors: Mapping[str, str],
    key: Mapping[str, Sequence[str] | None],
    anchor: str,
) -> list[Shown]:
    """Answer sentences with the (note id, anchor) pairs cited; `key` holds the key's, None where unlabelled."""
    cited = {link.answer_id: link.evidence_ids for link in links or ()}
    return [
        {
            "anchor": f"{anchor}{place}",
            "id": answer_id,
            "text": text,
            "linked": links is not None,
            "cited": [(i, anchors[i]) for i in cited.get(answer_id, ()) if i in anchors],
            "key": key.get(answer_id),
        }
        for place, (answer_id, text) in enumerate(sentences, 1)
    ]


def _cited_by(answers: Mapping[str, Sequence[Shown]]) -> dict[str, list[tuple[str, str]]]:
    """Note sentence id -> (what to call it, anchor) of each answer sentence that cites it: the ways back."""
    ways: dict[str, list[tuple[str, str]]] = {}
    for name, sentences in answers.items():
        for s in sentences:
            called = f"answer {s['id']}" if name == "own" else f"clinician's {s['id']}"
            for note_id in dict.fromkeys(i for i, _ in s["cited"]):
                ways.setdefault(note_id, []).append((called, s["anchor"]))
    return ways


def why_scored(
    case: Case, record: CaseRecord, extractive: bool, given: bool, fitted: FittedFile | None
) -> dict[str, list[str]]:
    """Evidence sentence id -> what weighed most in its extractive score by the models `fitted` of the program, or those
    that stand in for an LM; nothing where an LM gave the scores."""
    fell_back = "score" in unreached(record) or any(
        n["kind"] == "lm_failed" and n["stage"] == "score" for n in record.notices
    )
    if not (extractive or fell_back) or not record.evidence or not record.scores:
        return {}
    question = (case.clinician_question if given else record.question) or ""
    wanted = {i for i, s in enumerate(case.sentences) if s.id in record.evidence}
    with at_work(fitted, case):
        weighed = what_weighed(question, case.narrative, [s.text for s in case.sentences], wanted)
    return {case.sentences[i].id: words for i, words in weighed.items()}


def list_line(shown: Shown, href: str) -> str:
    """The case's line in the list's data, as JSON that can stand in a page: what is shown, filtered and sorted by."""
    case, record = shown["case"], shown["record"]
    line = {
        "id": case.id,
        "question": shown["question"],
        "href": href,
        "looks": shown["looks"],
        "notices": sorted({n["kind"] for n in record.notices}),
        "confidence": _rounded(shown["confidence"], 3),
        "score": _rounded(shown["score"], 1),
    }
    return in_page(line)


def with_words(line: str, words: str) -> str:
    """A line of the list's data with the words that a search looks through."""
    return f'{line[:-1]},"words":{in_page(words)}}}'


def words_of(shown: Shown) -> str:
    """The words of id, question, message and answer, each once."""
    case, record = shown["case"], shown["record"]
    texts = (case.id, shown["question"], case.clinician_question or "", case.narrative, record.answer or "")
    return " ".join(dict.fromkeys(w for text in texts for w in _WORD.findall(text.lower())))


def in_page(value: Any) -> str:
    """JSON without a character that could end the element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
