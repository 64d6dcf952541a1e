"""Writes submissions, and says without a key whether the organisers would accept one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archehr.data.case import Case, DataError, shown_id
from archehr.data.case_file import ids_of
from archehr.data.files import private_file
from archehr.data.json_stream import json_array

SUBTASKS = (1, 2, 3, 4)
WORD_LIMITS = {1: 15, 3: 75}
_PIECE = 1 << 20  # characters


@dataclass(slots=True)
class Validation:
    """`faults` make a submission unacceptable; `warnings` are what the official scorer changes without a word."""

    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.faults


def write_submission(path: str | Path, subtask: int, predictions: Mapping[str, Any]) -> None:
    """Write {case id: prediction} as the official JSON array, 0600, whole or not at all. Raises DataError.

    A prediction is text (subtasks 1, 3), a list of note ids (2), or a list of (answer id, note ids) pairs (4).
    """
    with submission_file(path, subtask) as add:
        for case_id, prediction in predictions.items():
            add(case_id, prediction)


@contextmanager
def submission_file(path: str | Path, subtask: int) -> Iterator[Callable[[str, Any], None]]:
    """`write_submission` case by case: what it gives takes a case id and its prediction. Raises DataError."""
    with private_file(Path(path)) as out:
        before = "[\n "

        def add(case_id: str, prediction: Any) -> None:
            nonlocal before
            entry = json.dumps(_entry(subtask, case_id, prediction), indent=1, ensure_ascii=False)
            out.write((before + entry.replace("\n", "\n ")).encode())
            before = ",\n "

        yield add
        out.write(b"[]\n" if before.startswith("[") else b"\n]\n")


def submission_entries(subtask: int, predictions: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The official JSON array of {case id: prediction}, predictions as `write_submission` takes them."""
    return [_entry(subtask, case_id, prediction) for case_id, prediction in predictions.items()]


def read_submission(path: str | Path) -> Iterator[Any]:
    """The entries of a submission file one at a time, unchecked beyond its being a JSON array. Raises DataError."""
    return json_array(Path(path), "a submission")


def loader_fault(path: str | Path) -> str | None:
    """Why the organisers' loader, json.load(open(path)), refuses the bytes of a JSON file that we can read, else None.
    Raises DataError for a file that cannot be read."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as text:
            if text.read(1) == "\ufeff":
                return "begins with a byte order mark, which the official loader refuses; save it as UTF-8 without BOM"
            text.seek(0)
            while piece := text.read(_PIECE):
                if "\0" in piece:  # UTF-16 and UTF-32 without a mark are valid UTF-8, full of NUL
                    return "not plain UTF-8 text, which the official loader refuses; save it as UTF-8"
    except UnicodeDecodeError:
        return "not UTF-8 but in another encoding, which the official loader refuses; save it as UTF-8"
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from error
    return None


def validate_submission(submission: Iterable[Any], cases: Sequence[Case], subtask: int) -> Validation:
    """Check the entries of a submission against the cases; no key needed.

    Beyond the official check: every case exactly once, and in subtask 4 every given answer sentence present.
    """
    if subtask not in SUBTASKS:
        raise DataError(f"subtask {subtask}: there are subtasks 1, 2, 3 and 4")
    report = Validation()
    places = {case_id: place for place, case_id in enumerate(ids_of(cases))}
    seen: set[str] = set()
    for position, entry in enumerate(submission, 1):
        case_id = entry.get("case_id") if isinstance(entry, dict) else None
        if not isinstance(case_id, str):
            report.faults.append(f'entry {position}: needs a "case_id" that is a string')
        elif case_id not in places:
            report.faults.append(f"case {shown_id(case_id)}: not in the data")
        elif case_id in seen:
            report.faults.append(f"case {case_id}: stands twice")
        elif "prediction" not in entry:
            report.faults.append(f'case {case_id}: has no "prediction"')
        else:
            _check_prediction(entry["prediction"], cases[places[case_id]], subtask, report)
        if isinstance(case_id, str):
            seen.add(case_id)
    report.faults += [f"case {i}: missing from the submission" for i in places if i not in seen]
    return report


def _check_prediction(prediction: Any, case: Case, subtask: int, report: Validation) -> None:
    if subtask in WORD_LIMITS:
        _check_text(prediction, case, WORD_LIMITS[subtask], report)
    elif not isinstance(prediction, list):
        report.faults.append(f"case {case.id}: the prediction must be an array")
    elif subtask == 2:
        _check_note_ids(prediction, case, "prediction", report)
    else:
        _check_links(prediction, case, report)


def _check_text(prediction: Any, case: Case, limit: int, report: Validation) -> None:
    if not isinstance(prediction, str):
        report.faults.append(f"case {case.id}: the prediction must be a string")
    elif not prediction.strip():
        report.faults.append(f"case {case.id}: the prediction is empty")
    elif (words := len(prediction.split())) > limit:
        report.warnings.append(f"case {case.id}: {words} words; the official scorer cuts at {limit}")


def _check_note_ids(ids: Any, case: Case, where: str, report: Validation) -> None:
    if not isinstance(ids, list) or not all(isinstance(i, str) for i in ids):
        report.faults.append(f"case {case.id}: {where} must be an array of sentence ids that are strings")
        return
    note_ids = {s.id for s in case.sentences}
    if not note_ids:
        report.warnings.append(f"case {case.id}: the data has no note sentences, so {where} was not checked")
    elif unknown := sorted({i for i in ids if i not in note_ids}):
        report.faults.append(f"case {case.id}: {where} has ids that the note does not have: {_listed(unknown)}")
    if len(set(ids)) < len(ids):
        report.warnings.append(f"case {case.id}: {where} repeats an id; repeats do not count")


def _check_links(links: list[Any], case: Case, report: Validation) -> None:
    answer_ids = {a.id for a in case.answer_sentences}
    seen: set[str] = set()
    for link in links:
        answer_id = link.get("answer_id") if isinstance(link, dict) else None
        if not isinstance(answer_id, str) or not answer_id:
            report.faults.append(f'case {case.id}: a link needs an "answer_id" that is a string')
            continue
        if answer_ids and answer_id not in answer_ids:
            report.faults.append(f"case {case.id}: answer id {shown_id(answer_id)} is not in the data")
        if answer_id in seen:
            report.warnings.append(
                f"case {case.id}: answer id {shown_id(answer_id)} stands twice; the links are joined"
            )
        seen.add(answer_id)
        _check_note_ids(link.get("evidence_id"), case, f"evidence_id of answer {shown_id(answer_id)}", report)
    if missing := sorted(answer_ids - seen):
        report.faults.append(f"case {case.id}: answer sentence {_listed(missing)} is missing")
    if not answer_ids:
        report.warnings.append(f"case {case.id}: the data has no answer sentences, so answer ids were not checked")


def _listed(ids: Sequence[str], most: int = 5) -> str:
    return ", ".join(map(shown_id, ids[:most])) + (" and more" if len(ids) > most else "")


def _entry(subtask: int, case_id: str, prediction: Any) -> dict[str, Any]:
    return {"case_id": case_id, "prediction": _as_json(subtask, prediction)}


def _as_json(subtask: int, prediction: Any) -> Any:
    if subtask in WORD_LIMITS:
        return str(prediction)
    if subtask == 2:
        return list(prediction)
    return [{"answer_id": a, "evidence_id": list(ids)} for a, ids in prediction]
