"""Takes the predictions out of a submission, with the checks of the official loaders."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from archehr.data.case import DataError, shown_id

WORD_LIMIT = {1: 15, 3: 75}

# One case's prediction as scored: text (1, 3), ids (2), or (answer id, evidence ids) in file order (4).
Prediction = Any


def read_predictions(
    submission: Any, subtask: int, *, wanted: Collection[str] | None, notes: list[str] | None = None
) -> Iterator[tuple[str, Prediction]]:
    """(case id, prediction) in file order, without the cases that are not `wanted`, which are not checked either; they
    are read one at a time.

    Follows `load_submission` of the official scoring_subtask_N.py: ids stay the strings they are, texts are stripped
    and cut at 15 (subtask 1) or 75 (subtask 3) words. Cut and empty texts are named in `notes`. Raises DataError for
    the first fault.
    """
    for position, entry in _enumerated(submission):
        with faults_at(f"entry {position} of the submission"):
            case_id = entry["case_id"]
            if wanted and case_id not in wanted:
                continue
            hash(case_id)
            prediction = entry["prediction"]
        where = f"case {shown_id(case_id)}"
        if subtask == 2:
            yield case_id, _ids(prediction, where)
        elif subtask == 4:
            yield case_id, [_link(item, where) for item in _list(prediction, where, "alignment objects")]
        else:
            yield case_id, _text(prediction, where, WORD_LIMIT[subtask], notes if notes is not None else [])


def cut_words(text: str, limit: int) -> str:
    """The text without outer whitespace, and without the words after `limit`, as the official loaders cut it."""
    words = text.split()
    # Joining with blanks loses line breaks, which changes rougeLsum; so does the official script.
    return " ".join(words[:limit]) if len(words) > limit else text.strip()


def check_cases(submitted: Collection[Any], expected: Collection[Any]) -> None:
    """Raises DataError unless both name the same cases, as the official scorers demand."""
    missing, extra = set(expected) - set(submitted), set(submitted) - set(expected)
    faults = []
    if missing:
        faults.append(f"no prediction for case {_listed(missing)}")
    if extra:
        faults.append(f"case {_listed(extra)} is not in the key")
    if faults:
        raise DataError(
            f"{'; '.join(faults)}; a submission holds every case of the key once (or score some with --cases)"
        )


def check_known(case_id: str, kind: str, used: Collection[Any], known: Collection[Any]) -> list[str]:
    """One line of fault when `used` has ids the case does not have, else none."""
    unknown = set(used) - set(known)
    if not unknown:
        return []
    have = f"it has {_listed(known)}" if known else "the key lists none"
    return [f"case {shown_id(case_id)}: no {kind} {_listed(unknown)} ({have})"]


@contextmanager
def faults_at(where: str) -> Iterator[None]:
    """Turns what Python says of a missing field or a wrong type into one line that names the place."""
    try:
        yield
    except KeyError as error:
        raise DataError(f"{where}: {error} is missing; add it") from error
    except (TypeError, AttributeError) as error:
        raise DataError(f"{where}: a value has the wrong type; compare it with the official format") from error


def _enumerated(submission: Any) -> Iterator[tuple[int, Any]]:
    with faults_at("the submission"):
        return enumerate(submission, 1)


def _list(value: Any, where: str, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise DataError(f"{where}: prediction must be a list of {what}")
    return value


def _ids(prediction: Any, where: str) -> frozenset[str]:
    ids = _list(prediction, where, "sentence ids")
    if not all(isinstance(i, str) for i in ids):
        raise DataError(f'{where}: sentence ids must be strings ("5", not 5)')
    return frozenset(ids)


def _link(item: Any, where: str) -> tuple[str, list[str]]:
    if not isinstance(item, dict) or "answer_id" not in item or "evidence_id" not in item:
        raise DataError(f"{where}: each alignment must be an object with answer_id and evidence_id")
    answer_id, evidence = item["answer_id"], item["evidence_id"]
    if not isinstance(answer_id, str):
        raise DataError(f'{where}: answer_id must be a string ("1", not 1)')
    if not isinstance(evidence, list) or not all(isinstance(i, str) for i in evidence):
        raise DataError(f"{where}: evidence_id must be a list of strings")
    return answer_id, evidence


def _text(prediction: Any, where: str, limit: int, notes: list[str]) -> str:
    if not isinstance(prediction, str):
        raise DataError(f"{where}: prediction must be a string")
    words = len(prediction.split())
    if not words:
        notes.append(f"{where}: the prediction is empty; the official script would refuse the whole submission")
    if words > limit:
        notes.append(f"{where}: {words} words, cut to {limit} as the official script does")
    return cut_words(prediction, limit)


def _listed(ids: Collection[Any], most: int = 40) -> str:
    names = sorted(map(shown_id, ids), key=lambda i: (len(i), i))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
