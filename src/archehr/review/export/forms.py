"""The forms that labelled cases are written in: DATA for the other commands, JSON lines, a table, Label Studio."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from archehr.data.case import DataError
from archehr.data.files import write_private
from archehr.review.export.label_studio import label_studio_files
from archehr.review.export.official import write_official
from archehr.review.export.settle import Reviewed


def export(cases: Sequence[Reviewed], out: Path, form: str) -> list[Path]:
    """Write the labelled cases to `out` and return the files made. Raises DataError."""
    if form not in FORMS:
        raise DataError(f"--format {form}: it is {', '.join(FORMS)}")
    if not cases:
        raise DataError("no finished case to export; finish cases on the page first")
    return FORMS[form](cases, out)


def _data(cases: Sequence[Reviewed], out: Path) -> list[Path]:
    if out.exists() and not out.is_dir():
        raise DataError(f"{out}: is a file; --export names the folder to write for --format data")
    return write_official([r.case for r in cases], [r.facts for r in cases], out)


def _jsonl(cases: Sequence[Reviewed], out: Path) -> list[Path]:
    # In ASCII, for some readers take U+2028 for the end of a line.
    lines = [json.dumps(example_fields(r)) for r in cases]
    return _one_file(out, "\n".join(lines) + "\n")


def example_fields(reviewed: Reviewed) -> dict[str, Any]:
    """A case as the fields of a dspy.Example: what GroundedQA predicts by the names it predicts it under, and the
    case's own parts."""
    case, gold = reviewed.case, reviewed.case.gold
    assert gold is not None
    return {
        "case_id": case.id,
        "narrative": case.narrative,
        "sentences": [{"id": s.id, "text": s.text} for s in case.sentences],
        "question": case.clinician_question,
        "relevance": [{"id": i, "relevance": str(label)} for i, label in (gold.relevance or {}).items()],
        "evidence": [s.id for s in case.sentences if s.id in gold.essential],
        "answer_sentences": [a.text for a in gold.answer_sentences],
        "answer": gold.answer,
        "links": [{"answer_id": a.id, "evidence_ids": list(a.citations or ())} for a in gold.answer_sentences],
        **reviewed.facts,
    }


def _csv(cases: Sequence[Reviewed], out: Path) -> list[Path]:
    """A row a sentence, of note and answer alike; pandas reads it back with dtype=str, keep_default_na=False."""
    import pandas as pd

    buffer = io.StringIO(newline="")
    pd.DataFrame([row for r in cases for row in _rows(r)]).to_csv(buffer, index=False, quoting=1, lineterminator="\n")
    return _one_file(out, buffer.getvalue())


def _rows(reviewed: Reviewed) -> list[dict[str, Any]]:
    case, gold, facts = reviewed.case, reviewed.case.gold, reviewed.facts
    assert gold is not None
    labels = reviewed.review.opened.said
    start = {i: mark for i, mark in labels.marks.items() if mark is not None} if labels else {}
    shared = {"question": case.clinician_question, **facts}
    rows = []
    for s in case.sentences:
        cited_by = " ".join(a.id for a in gold.answer_sentences if s.id in (a.citations or ()))
        marks = {"relevance": (gold.relevance or {}).get(s.id, ""), "program_relevance": start.get(s.id, "")}
        rows.append(
            {"case_id": case.id, "part": "note", "id": s.id, "text": s.text, **marks, "links": cited_by, **shared}
        )
    for a in gold.answer_sentences:
        marks = {"relevance": "", "program_relevance": ""}
        cites = " ".join(a.citations or ())
        rows.append(
            {"case_id": case.id, "part": "answer", "id": a.id, "text": a.text, **marks, "links": cites, **shared}
        )
    return rows


def _label_studio(cases: Sequence[Reviewed], out: Path) -> list[Path]:
    tasks, config = label_studio_files([(r.case, r.facts) for r in cases])
    view = out.with_name(f"{out.stem}.config.xml")
    return [*_one_file(out, json.dumps(tasks, indent=1, ensure_ascii=False) + "\n"), *_one_file(view, config)]


def _one_file(out: Path, text: str) -> list[Path]:
    if out.is_dir():
        raise DataError(f"{out}: is a folder; --export names the file to write for this --format")
    write_private(out, text)
    return [out]


FORMS: dict[str, Callable[[Sequence[Reviewed], Path], list[Path]]] = {
    "data": _data,
    "jsonl": _jsonl,
    "csv": _csv,
    "label-studio": _label_studio,
}
