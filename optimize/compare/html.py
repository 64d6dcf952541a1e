"""The comparison as one HTML page: plots, table, where the programs differ, and their prompts side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archehr.data.files import write_private
from archehr.metrics.alignment import link_pairs, scored_links
from archehr.metrics.components import SUBTASKS
from archehr.optimize.compare.cases import Beside, CaseDifference, case_differences
from archehr.optimize.compare.compare import Comparison
from archehr.optimize.compare.plot import WIDTH, plots
from archehr.optimize.compare.prompts import prompt_differences
from archehr.optimize.compare.tables import cell, component_rows, heading, signed, took_cells
from archehr.program.run.html import render_page

TEMPLATE = Path(__file__).with_name("compare.html.j2")


def write_page(comparison: Comparison, path: Path) -> None:
    """Write the page, 0600: it holds the notes. Raises DataError."""
    letters = {row.label: letter(i) for i, row in enumerate(comparison.rows)}
    page = render_page(
        TEMPLATE,
        TEMPLATE.with_name("compare.js").read_text(encoding="utf-8"),
        comparison=comparison,
        letters=letters,
        subtasks=SUBTASKS,
        headings={n: heading(comparison, n) for n in SUBTASKS},
        cell=cell,
        components=component_rows(comparison),
        took=took_cells,
        signed=signed,
        plots=plots(comparison, letters),
        plot_width=WIDTH,
        cases=[_case(difference) for difference in case_differences(comparison)],
        prompts=prompt_differences(comparison),
    )
    write_private(path, page)


def letter(number: int) -> str:
    """A, B, …, Z, A2, …: what a row is called in narrow columns."""
    return chr(ord("A") + number % 26) + (str(number // 26 + 1) if number >= 26 else "")


def _case(difference: CaseDifference) -> dict[str, Any]:
    case, gold = difference.case, difference.case.gold
    labels: Mapping[str, Any] = (gold.relevance or {}) if gold else {}
    citations = {a.id: a.citations for a in gold.answer_sentences} if gold else {}
    scores = [{s.id: s.score for s in a.record.scores or ()} for a in difference.answers]
    return {
        "case": case,
        "difference": difference,
        "note": [
            {
                "id": s.id,
                "text": s.text,
                "label": labels[s.id].value if s.id in labels else None,
                "marks": [_mark(s.id, a, by_id.get(s.id)) for a, by_id in zip(difference.answers, scores, strict=True)],
            }
            for s in case.sentences
        ],
        "links": [
            {
                "id": a.id,
                "text": a.text,
                "key": citations.get(a.id),
                "cited": [_cited(a.id, answer, citations.get(a.id)) for answer in difference.answers],
            }
            for a in case.answer_sentences
        ],
    }


def _mark(sentence_id: str, answer: Beside, score: int | None) -> dict[str, Any]:
    return {"evidence": sentence_id in (answer.record.evidence or ()), "score": score}


def _cited(answer_id: str, answer: Beside, key: tuple[str, ...] | None) -> list[tuple[str, str]]:
    """(note id, "right" | "wrong" | "missed" | "") for the links made and, of the key's, those not made."""
    links = [i for a, i in link_pairs(scored_links(answer.record)) if a == answer_id]
    if key is None:
        return [(i, "") for i in links]
    return [(i, "right" if i in key else "wrong") for i in links] + [(i, "missed") for i in key if i not in links]
