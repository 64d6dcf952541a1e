"""What the report says of a run as a whole: sums over its cases, the score table, and what subtask 4 holds."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from archehr.metrics.components import MEAN, SUBTASKS, headline
from archehr.program.run.records import CaseRecord

SUBTASK_4 = {
    "given": "the links of the clinician's answer sentences, which the data gives",
    "own": "the links of the program's own answer, as the data gives no clinician's answer sentences",
    "mixed": "the links of the clinician's answer sentences where given, else of the program's own answer",
    "none": "nothing: no links were made",
}


class Sums:
    """Added up case by case, so that any number of them takes little memory. `cost` is None where unknown."""

    def __init__(self) -> None:
        self.cases = 0
        self.looks: Counter[str] = Counter()  # cases by look; "clear" are those without
        self.notices: Counter[str] = Counter()  # cases by kind of notice
        self.used: Counter[str] = Counter()
        self.cost: float | None = 0.0
        self._seconds = array("d")

    def add(self, record: CaseRecord, looks: Iterable[str]) -> None:
        """Count one case."""
        self.cases += 1
        self.looks.update(list(looks) or ["clear"])
        self.notices.update({n["kind"] for n in record.notices})
        for name in ("calls", "cache_hits", "tokens_in", "tokens_out"):
            self.used[name] += int(record.usage.get(name) or 0)
        cost = record.usage.get("cost", 0.0)
        self.cost = None if self.cost is None or cost is None else self.cost + cost
        self._seconds.append(record.seconds)

    @property
    def median_seconds(self) -> float:
        return median(self._seconds)

    @property
    def longest_seconds(self) -> float:
        return max(self._seconds)


def score_rows(scores: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
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
