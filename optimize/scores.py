"""The headline scores of answered cases, per subtask, with intervals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from archehr.data.case import Case, DataError
from archehr.data.submission import submission_entries
from archehr.metrics.components import headline
from archehr.metrics.intervals import Interval, bootstrap
from archehr.metrics.leaderboard import CaseTable
from archehr.metrics.score import score_submission
from archehr.program.run.records import CaseRecord, submissions
from archehr.program.stages.registry import STAGES
from archehr.program.types import StageName


def subtasks_of(stages: Collection[StageName]) -> list[int]:
    """The subtasks that the stages answer."""
    return [s.subtask for s in STAGES.values() if s.name in stages and s.subtask is not None]


def case_table(records: Sequence[CaseRecord], cases: Sequence[Case], subtask: int) -> CaseTable:
    """The per-case table of one subtask, over the records whose case has its gold."""
    stage = next(s for s in STAGES.values() if s.subtask == subtask)
    by_id = {c.id: c for c in cases if stage.measures(c)}
    predictions = submissions([r for r in records if r.case_id in by_id])[subtask]
    return score_submission(submission_entries(subtask, predictions), [by_id[i] for i in predictions], subtask).table


def objective(records: Sequence[CaseRecord], cases: Sequence[Case], weights: Mapping[int, float]) -> float:
    """Weighted mean (0-100) of the headline scores of the whole chain."""
    total = used = 0.0
    for subtask, weight in weights.items():
        if not any(s.subtask == subtask and s.measures(c) for s in STAGES.values() for c in cases):
            continue  # a fold may leave a stage without a labelled case
        table = case_table(records, cases, subtask)
        board = table.leaderboard()
        total += weight * board[headline(subtask, board)]
        used += weight
    return total / used if used else 0.0


def parse_weights(text: str | None, stages: Collection[StageName]) -> dict[int, float]:
    """ "2=1,4=0.5" -> {2: 1.0, 4: 0.5}. Without a text subtasks 2 and 4 count alike, as far as `stages` answer them:
    their scores are clean, those of texts reward wording; if `stages` answer neither, their own count. Raises
    DataError."""
    answered = subtasks_of(stages)
    if text is None:
        return dict.fromkeys([n for n in answered if n in (2, 4)] or answered, 1.0)
    weights: dict[int, float] = {}
    for part in text.split(","):
        subtask, _, value = part.partition("=")
        try:
            weights[int(subtask)] = float(value)
        except ValueError:
            raise DataError(f"--weights {text}: write SUBTASK=WEIGHT, for example 2=1,4=1,3=0.5") from None
    if unknown := [n for n in weights if n not in answered]:
        raise DataError(f"--weights {text}: the stages optimised do not answer subtask {unknown[0]}")
    if not all(0 <= w < float("inf") for w in weights.values()) or not any(weights.values()):
        raise DataError(f"--weights {text}: weights are at least 0, and one is above 0")
    return {n: w for n, w in weights.items() if w}


def headline_intervals(tables: Mapping[int, CaseTable]) -> dict[int, tuple[str, Interval]]:
    """subtask -> name of its headline score, and that score (0-100) with its 95 % interval."""
    headlines = {}
    for subtask, table in tables.items():
        intervals = bootstrap(table)
        score = headline(subtask, intervals)
        headlines[subtask] = (score, intervals[score])
    return headlines
