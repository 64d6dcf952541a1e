"""report.html of one run: every answer beside its note, with the evidence marked and every citation a link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from archehr.data.case import Case
from archehr.data.files import write_private
from archehr.metrics.components import MEAN, SUBTASKS, headline
from archehr.program.pipeline import own_answer_sentences
from archehr.program.run.html import render_page
from archehr.program.run.manifest import Manifest
from archehr.program.run.records import CaseRecord
from archehr.program.types import Link

NOTICES = {
    "lm_failed": "the LM gave no usable reply, and a fallback answered",
    "retried": "the LM was asked again",
    "missing_ids": "the LM left out ids",
    "unknown_ids": "the LM named ids that do not exist; they were dropped",
    "relaxed_cut": "no sentence reached the cut, and the relaxed cut was taken",
    "cut_words": "the text was too long and was cut",
    "empty": "nothing was found",
    "repaired": "the reply was repaired",
    "not_answered": "the note does not answer the question",
    "language": "the note does not look English, which is all that the stages without an LM read",
}
SUBTASK_4 = {
    "given": "the links of the clinician's answer sentences, which the data gives",
    "own": "the links of the program's own answer, as the data gives no clinician's answer sentences",
    "mixed": "the links of the clinician's answer sentences where given, else of the program's own answer",
    "none": "nothing: no links were made",
}


def write_report(
    manifest: Manifest, scores: Mapping[str, Any], cases: Sequence[Case], records: Sequence[CaseRecord], path: Path
) -> None:
    """Write the page, 0600: it holds the notes. `records` are in the order of `cases`. Raises DataError."""
    shown = [_case(number, *pair) for number, pair in enumerate(zip(cases, records, strict=True), 1)]
    page = render_page(
        Path(__file__).with_name("report.html.j2"),
        run=manifest,
        cases=shown,
        scores=list(_scores(scores)),
        not_scored=scores.get("not_scored", {}),
        subtask_4=SUBTASK_4[manifest.subtask_4_links],
        used=_used(records),
        notices=NOTICES,
    )
    write_private(path, page)


def _case(number: int, case: Case, record: CaseRecord) -> dict[str, Any]:
    """What the template shows of one case. Anchors are built of positions: ids may hold any character."""
    anchors = {s.id: f"c{number}-s{i}" for i, s in enumerate(case.sentences, 1)}
    gold = case.gold
    labels: Mapping[str, Any] = (gold.relevance or {}) if gold else {}
    scores = {s.id: s.score for s in record.scores or ()}
    given = [(a.id, a.text) for a in case.answer_sentences]
    own = [(a.id, a.text) for a in own_answer_sentences(record.answer_sentences or [])]
    citations = {a.id: a.citations for a in gold.answer_sentences} if gold else {}
    return {
        "anchor": f"c{number}",
        "case": case,
        "record": record,
        "note": [
            {
                "anchor": anchors[s.id],
                "id": s.id,
                "text": s.text,
                "score": scores.get(s.id),
                "evidence": s.id in (record.evidence or ()),
                "label": labels[s.id].value if s.id in labels else None,
            }
            for s in case.sentences
        ],
        "own": _cited(own, record.links, anchors, {}),
        "given": _cited(given, record.given_links, anchors, citations),
    }


def _cited(
    sentences: Iterable[tuple[str, str]],
    links: Sequence[Link] | None,
    anchors: Mapping[str, str],
    key: Mapping[str, Sequence[str] | None],
) -> list[dict[str, Any]]:
    """Answer sentences with the (note id, anchor) pairs cited; `key` holds the key's, None where unlabelled."""
    cited = {link.answer_id: link.evidence_ids for link in links or ()}
    return [
        {
            "id": answer_id,
            "text": text,
            "linked": links is not None,
            "cited": [(i, anchors[i]) for i in cited.get(answer_id, ()) if i in anchors],
            "key": key.get(answer_id),
        }
        for answer_id, text in sentences
    ]


def _used(records: Sequence[CaseRecord]) -> dict[str, Any]:
    """What the finished cases took: sums of LM use (`cost` None where unknown), and seconds per case."""
    sums = {
        n: sum(int(r.usage.get(n) or 0) for r in records) for n in ("calls", "cache_hits", "tokens_in", "tokens_out")
    }
    costs = [r.usage.get("cost", 0.0) for r in records]
    seconds = [r.seconds for r in records]
    return sums | {
        "cost": None if None in costs else sum(costs),
        "median_seconds": median(seconds),
        "longest_seconds": max(seconds),
    }


def _scores(scores: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """A row per score: subtask, name, value, interval, whether the subtask is judged by it; then what is missing."""
    for number, subtask in SUBTASKS.items():
        found = scores.get(f"subtask_{number}")
        if not found:
            continue
        row = {"subtask": f"{number} {subtask.asks_for}", "value": None, "main": False}
        values = {**found["leaderboard"]} | ({MEAN: found[MEAN]} if MEAN in found else {})
        main = headline(number, values)
        for score, value in values.items():
            label = f"mean of {', '.join(found['mean_of'])}" if score == MEAN else score.replace("_", " ")
            interval = found["intervals"].get(score)
            yield {**row, "score": label, "value": value, "interval": interval, "main": score == main}
        for score, why in found["missing"].items():
            yield {**row, "score": score, "interval": why}
