"""Scores submissions: what `archehr score` prints and `archehr run` writes to scores.json."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from archehr.data.case import Case, DataError, shown_ids
from archehr.data.case_file import FEW, hold_cases, ids_of
from archehr.data.dataset import Dataset, read_dataset, select_cases
from archehr.data.files import read_json, read_xml
from archehr.data.key import read_key
from archehr.data.readers.shared_task import find_key, find_xml
from archehr.data.reading.reader import ReadOptions
from archehr.data.submission import loader_fault, read_submission
from archehr.metrics.components import MEAN, SUBTASKS, Resources, components, headline, mean_of
from archehr.metrics.intervals import Interval, bootstrap
from archehr.metrics.keys import LabelledInPart, key_of, unlabelled
from archehr.metrics.leaderboard import CaseBoards, CaseTable
from archehr.metrics.official import official_case_ids, official_score
from archehr.metrics.predictions import check_cases, read_predictions
from archehr.metrics.tables import Scored, Scorer

_NOTHING = "nothing to score against; pass --data DATA or --key KEY"


class MissingReference(DataError):
    """The data cannot score this subtask."""


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """The scores of one submission. `table` holds the per-case numbers, for intervals and paired comparison.

    `missing` names components that could not be computed and what to install or pass; where they belong to the
    overall score there is no `overall_score`, and `mean` averages the components in `mean_of`. `unscorable` names
    cases for which a formula has no value; they count 0 there. `notes` say what was cut, skipped or normalised.
    """

    subtask: int
    table: CaseTable
    intervals: dict[str, Interval]
    missing: dict[str, str] = field(default_factory=dict)
    unscorable: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def leaderboard(self) -> dict[str, float]:
        """Scores under their official names, 0-100."""
        return {name: score for name, score in self.table.leaderboard().items() if name != MEAN}

    @property
    def mean_of(self) -> list[str]:
        """The components that were averaged; empty for subtasks 2 and 4, which average nothing."""
        return mean_of(self.table.columns, self.subtask)

    @property
    def mean(self) -> float | None:
        """The mean of the components in `mean_of` while some are missing, else None: then see `overall_score`."""
        return self.table.leaderboard().get(MEAN)

    @property
    def per_case(self) -> list[dict[str, float | str]]:
        """One record per case: id, counts or component scores."""
        return self.table.per_case()

    @property
    def headline(self) -> str:
        """The name of the score that the subtask is judged by."""
        return headline(self.subtask, self.intervals or self.table.leaderboard())

    @property
    def components(self) -> list[str]:
        """The components that could be computed, in the order of the leaderboard."""
        return [c.name for c in components(self.subtask) if c.name in self.table.columns]

    def case_scores(self) -> CaseBoards:
        """Case id -> what the case alone would score (0-100): the headline, what stands beside it, each component."""
        return self.table.case_boards([self.headline, *SUBTASKS[self.subtask].beside.values(), *self.components])

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints and scores.json holds; of many cases "case_scores" is a CaseBoards."""
        found: dict[str, Any] = {
            "leaderboard": self.leaderboard,
            "intervals": {name: interval.as_dict() for name, interval in self.intervals.items()},
            "missing": self.missing,
            "cases": len(self.table.case_ids),
        }
        if self.mean is not None:
            found |= {MEAN: self.mean, "mean_of": self.mean_of}
        boards = self.case_scores()
        case_scores = dict(boards) if len(boards) <= FEW else boards
        return found | {"unscorable": self.unscorable, "notes": self.notes, "case_scores": case_scores}

    def rows(self) -> list[tuple[str, str, str]]:
        """Table cells: score name, value, 95 % interval; what is missing last."""
        rows = [
            (self._label(name), f"{score:.2f}", self._bounds(name)) for name, score in self.table.leaderboard().items()
        ]
        return rows + [(name, "-", f"missing: {why}") for name, why in self.missing.items()]

    def _label(self, name: str) -> str:
        return f"mean of {', '.join(self.mean_of)}" if name == MEAN else name

    def _bounds(self, name: str) -> str:
        interval = self.intervals.get(name)
        return f"{interval.low:.2f} to {interval.high:.2f}" if interval else ""


def score_submission(
    submission: Any,
    cases: Sequence[Case],
    subtask: int,
    *,
    wanted: Collection[str] | None = None,
    resources: Resources | None = None,
) -> ScoreResult:
    """Scores the entries of a submission against the gold of `cases`; it must hold each of them that has gold once.

    Entries that are not `wanted` (case ids; None is all) are passed over unread, as in the official scripts.

    Differs from the official script where that is at fault: a case that stands twice and an empty set of cases are
    refused, citations kept as strings are read as lists, an empty text is scored and named. Submitted cases outside
    `cases` are an error; cases without gold are skipped with a note. Raises DataError.
    """
    if not any(key_of(case, subtask) is not None for case in cases):
        raise MissingReference(f"no case has a reference for subtask {subtask}; it needs {SUBTASKS[subtask].reference}")
    ids = ids_of(cases)
    places = {case_id: place for place, case_id in enumerate(ids)}
    scorer, notes = Scorer(subtask, resources or Resources()), list[str]()
    seen, twice, extra, bare, partly = bytearray(len(ids)), set[str](), set[Any](), list[str](), list[str]()
    for case_id, prediction in read_predictions(submission, subtask, wanted=wanted, notes=notes):
        place = places.get(case_id)
        if place is None:
            extra.add(case_id)
        elif seen[place]:
            twice.add(case_id)
        else:
            seen[place] = True
            key = key_of(cases[place], subtask)
            if key is None:
                bare.append(ids[place])
            else:
                scorer.add(ids[place], prediction, key)
                partly += [ids[place]] if subtask == 2 and unlabelled(cases[place]) else []
    if twice:
        raise DataError(
            f"case {', '.join(sorted(twice))} stands twice; keep one (the official script would count both)"
        )
    unanswered = (place for place in range(len(ids)) if not seen[place])
    check_cases(extra, [ids[place] for place in unanswered if key_of(cases[place], subtask) is not None])
    if bare:
        notes.append(f"not scored, the data has no reference for case {shown_ids(sorted(bare), most=40)}")
    if partly:
        notes.append(
            f"case {shown_ids(sorted(partly), most=40)}: sentences that the key leaves out count as not relevant"
        )
    return _result(subtask, scorer.scored(), notes)


def score_file(
    submission: str | Path,
    subtask: int,
    *,
    data: str | Path | Dataset | None = None,
    key: str | Path | None = None,
    cases: str | Collection[str] | None = None,
    as_official: bool = False,
    resources: Resources | None = None,
    options: ReadOptions | None = None,
) -> ScoreResult:
    """The whole of `archehr score`: reads the files, keeps the cases of a list such as "1,4-9" or of these ids, scores.

    `data` is DATA, or what `read_references` read for several submissions. A key alone is enough for subtasks 2 and 4,
    and for all of 3 but SARI. Raises DataError: one line.
    """
    if subtask not in SUBTASKS:
        raise DataError(f"subtask {subtask}: there are subtasks 1, 2, 3 and 4")
    entries = read_submission(submission)
    notes: list[str] = []
    if (fault := loader_fault(submission)) is not None:
        if as_official:
            raise DataError(f"{submission}: {fault}")
        notes.append(f"{submission}: {fault}")
    if as_official:
        assert not isinstance(data, Dataset)  # the official scripts read the files in their own way
        if data is None and key is None:
            raise DataError(_NOTHING)
        listed = official_case_ids(cases.replace(",", " ").split(), subtask) if isinstance(cases, str) else cases
        wanted = set(listed) if listed else None
        raw_key, xml = _raw_key(subtask, data, key)
        with _naming(submission):
            scored = official_score(
                subtask, entries, key=raw_key, xml=xml, wanted=wanted, resources=resources, notes=notes
            )
        return _result(subtask, scored, notes)
    known = data if isinstance(data, Dataset) else read_references(data, key, options)
    chosen = select_cases(known.cases, cases)
    with _naming(submission):
        result = score_submission(
            entries, chosen, subtask, wanted=set(ids_of(chosen)) if cases else None, resources=resources
        )
    return replace(result, notes=[*notes, *known.notes, *result.notes])


def read_references(
    data: str | Path | None, key: str | Path | None = None, options: ReadOptions | None = None
) -> Dataset:
    """What submissions are scored on: DATA with its key, or a key alone, whose cases are their gold. Raises
    DataError."""
    if data is not None:
        return read_dataset(data, key, options)
    if key is None:
        raise DataError(_NOTHING)
    notes: list[str] = []
    golds = read_key(key, notes=notes).items()
    return Dataset(hold_cases(Case(case_id, gold=gold) for case_id, gold in golds), notes=tuple(notes))


def score_run(
    submissions: Mapping[int, Any], cases: Sequence[Case], *, resources: Resources | None = None
) -> dict[str, Any]:
    """scores.json of a run: {"subtask_N": the JSON of its ScoreResult} for every subtask the data can score.

    `submissions` maps subtask -> loaded submission. A subtask whose references the data lacks is listed under
    "not_scored" with the reason. Raises DataError for a faulty submission.
    """
    scores: dict[str, Any] = {}
    not_scored: dict[str, str] = {}
    for subtask, submission in sorted(submissions.items()):
        try:
            scores[f"subtask_{subtask}"] = score_submission(submission, cases, subtask, resources=resources).as_json()
        except MissingReference:
            not_scored[f"subtask_{subtask}"] = f"the data does not hold {SUBTASKS[subtask].reference}"
        except LabelledInPart as error:
            not_scored[f"subtask_{subtask}"] = str(error)
    return scores | ({"not_scored": not_scored} if not_scored else {})


def _result(subtask: int, scored: Scored, notes: list[str]) -> ScoreResult:
    # Only the official mode gets here with no case, and NaN has no interval.
    intervals = bootstrap(scored.table) if scored.table.case_ids and scored.table.columns else {}
    return ScoreResult(subtask, scored.table, intervals, scored.missing, scored.unscorable, notes)


def _raw_key(subtask: int, data: str | Path | None, key: str | Path | None) -> tuple[Any, Element | None]:
    """The parsed key and the XML root, each where the official script of the subtask reads it."""
    path = find_xml(Path(data)) if data is not None else None
    if subtask != 1 and key is None and path is not None:
        key = find_key(path)
        if key is None:
            raise DataError(f"{path}: no key beside it; pass --key")
    raw = read_json(Path(key)) if subtask != 1 and key is not None else None
    if subtask != 1 and key is not None and (fault := loader_fault(key)) is not None:
        raise DataError(f"{key}: {fault}")
    return raw, read_xml(path) if path is not None and subtask in (1, 3) else None


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """Puts the submission's name before what is wrong with it, where it is not there."""
    try:
        yield
    except DataError as error:
        if str(error).startswith(f"{path}: "):
            raise
        raise type(error)(f"{path}: {error}") from error
