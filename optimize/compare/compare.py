"""Programs side by side on the same cases: official scores, paired differences in one plain word, what each took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archehr.data.case import Case, DataError
from archehr.data.submission import submission_entries
from archehr.metrics.components import SUBTASKS, Resources, mean_of
from archehr.metrics.intervals import Difference, Interval, paired_difference
from archehr.metrics.keys import key_of, labelled_in_part
from archehr.metrics.score import ScoreResult, score_submission
from archehr.optimize.compare.fairness import check_same_task, demo_overlap, in_sample, setup_differences
from archehr.optimize.compare.program_run import ProgramRun
from archehr.program.run.records import submissions

# Under six cases all may favour one program by chance alone more than once in 20 times (2 / 2**5 = 0.06).
FEWEST_CASES = 6
BETTER, WORSE, NOT_SHOWN = "better", "worse", "not shown"


@dataclass(frozen=True)
class Took:
    """What the program takes by itself: calls, tokens, US dollars (None: unknown) and notices by kind, summed over the
    compared cases; wall seconds of the whole run. Of the calls, `cache_hits` were not sent but answered from the cache,
    where another run may have left the reply: they count as what they took when they were made (`untold`: of so many
    that is not known), and `spent` is the cost without them."""

    calls: int
    cache_hits: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    spent: float | None
    untold: int
    seconds: float
    notices: Mapping[str, int]


@dataclass(frozen=True)
class Row:
    """One program with one LM. `differences` are its scores minus those of the row called `against` (None: this is
    what the others are compared with), by subtask and score name. `flags` must be seen beside every number."""

    run: ProgramRun
    scores: Mapping[int, ScoreResult]
    against: str | None
    differences: Mapping[int, Mapping[str, Difference]]
    took: Took
    flags: Sequence[str] = ()

    @property
    def label(self) -> str:
        return self.run.label

    def main(self, subtask: int) -> tuple[str, Interval] | None:
        """The name and value of the score that the subtask is judged by, or None where there is none."""
        if subtask not in self.scores:
            return None
        name = self.scores[subtask].headline
        return name, self.scores[subtask].intervals[name]

    def case_scores(self, subtask: int) -> dict[str, float]:
        """Case id -> the main score of that case alone."""
        result = self.scores[subtask]
        return {case_id: scores[result.headline] for case_id, scores in result.case_scores().items()}

    def difference(self, subtask: int) -> Difference | None:
        """The paired difference of the main score."""
        main = self.main(subtask)
        return self.differences.get(subtask, {}).get(main[0]) if main else None

    def verdict(self, subtask: int) -> str:
        """better, worse or not shown; "" where nothing is compared."""
        difference = self.difference(subtask)
        return verdict(difference, len(self.scores[subtask].table.case_ids)) if difference else ""


@dataclass(frozen=True)
class Comparison:
    """Rows over the same `cases`; `excluded` cases stand in the demos of a program. `notes` belong under every table.
    `setup` lists what the runs do not have in common: setting -> value per row."""

    data: str
    cases: Sequence[Case]
    rows: Sequence[Row]
    excluded: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    setup: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """The notes that are flags of a row."""
        return [f"{row.label}: {flag}" for row in self.rows for flag in row.flags]

    @property
    def against(self) -> str:
        """What the differences are from, in words; "" where nothing is compared."""
        pairs = {row.label: row.against for row in self.rows if row.against}
        if len(set(pairs.values())) < 2:
            return "".join(f"differences are from {label}" for label in set(pairs.values()))
        return "differences are of " + "; of ".join(f"{label} from {other}" for label, other in pairs.items())

    def row(self, label: str) -> Row:
        return next(r for r in self.rows if r.label == label)


def compare(
    cases: Sequence[Case],
    runs: Sequence[ProgramRun],
    *,
    baseline: str | None = None,
    keep_demo_cases: bool = False,
    resources: Resources | None = None,
) -> Comparison:
    """Score `runs` on `cases` and set each beside its baseline.

    `baseline` is a row's label, or a program, which then stands for its run with the same LM; without it the first
    row's program or, where all are of one program, the first row. Cases that stand in a program's demos are left out
    for everyone, unless `keep_demo_cases` or none would be left. Raises DataError where the runs did not do the same
    task.
    """
    check_same_task(cases, runs)
    overlaps = {run.label: demo_overlap(run, cases) for run in runs}
    compared = _without_demos(cases, overlaps.values(), keep_demo_cases)
    excluding = len(compared) < len(cases)
    scored = {run.label: _scores(run, compared, resources) for run in runs}
    rows = []
    for run in runs:
        against = _baseline_of(run, runs, baseline)
        differences = {} if against is run else _differences(scored[run.label], scored[against.label])
        flags = _flags(run, compared, overlaps[run.label], excluding)
        label = None if against is run else against.label
        rows.append(Row(run, scored[run.label], label, differences, _took(run, compared), flags))
    left_out = {c.id for c in cases} - {c.id for c in compared}
    excluded = {c.id: [label for label, ids in overlaps.items() if c.id in ids] for c in cases if c.id in left_out}
    notes = _notes(rows, compared, excluded)
    return Comparison(runs[0].manifest.data, compared, rows, excluded, notes, setup_differences(runs))


def _without_demos(
    cases: Sequence[Case], overlaps: Iterable[Mapping[str, Sequence[str]]], keep_demo_cases: bool
) -> list[Case]:
    demo_ids = {case_id for ids in overlaps for case_id in ids}
    rest = [c for c in cases if c.id not in demo_ids]
    return rest if rest and not keep_demo_cases else list(cases)


def verdict(difference: Difference, cases: int) -> str:
    """A paired difference in a word: better or worse only where its 95 % interval leaves out 0."""
    if cases < FEWEST_CASES or (difference.low <= 1e-9 and difference.high >= -1e-9):
        return NOT_SHOWN
    return BETTER if difference.low > 0 else WORSE


def _scores(run: ProgramRun, cases: Sequence[Case], resources: Resources | None) -> dict[int, ScoreResult]:
    """The official scores of every subtask that the run answered and the data has a key for."""
    scores = {}
    for subtask, predictions in submissions([run.records[c.id] for c in cases]).items():
        keyed = [c for c in cases if not labelled_in_part(c, subtask) and key_of(c, subtask) is not None]
        if keyed:
            entries = submission_entries(subtask, {c.id: predictions[c.id] for c in keyed})
            scores[subtask] = score_submission(entries, keyed, subtask, resources=resources)
    return scores


def _differences(ours: Mapping[int, ScoreResult], theirs: Mapping[int, ScoreResult]) -> dict[int, Any]:
    return {n: paired_difference(ours[n].table, theirs[n].table) for n in ours if n in theirs}


def _baseline_of(run: ProgramRun, runs: Sequence[ProgramRun], baseline: str | None) -> ProgramRun:
    """The run that `run` is compared with."""
    if by_label := [r for r in runs if r.label == baseline]:
        return by_label[0]
    programs = list(dict.fromkeys(r.program for r in runs))
    if baseline is not None and baseline not in programs:
        labels = "; ".join(dict.fromkeys([*(r.label for r in runs), *programs]))
        raise DataError(f"--baseline {baseline}: it is none of what is compared; give one of {labels}")
    if len(programs) == 1:
        return runs[0]
    of_program = [r for r in runs if r.program == (baseline or runs[0].program)]
    return next((r for r in of_program if r.lm == run.lm), of_program[0])


def _took(run: ProgramRun, cases: Sequence[Case]) -> Took:
    records = [run.records[c.id] for c in cases]

    def total(name: str) -> int:
        return sum(int(r.usage.get(name) or 0) for r in records)

    hits = [r.usage for r in records if r.usage.get("cache_hits")]
    spent = _sum_known(r.usage.get("cost", 0.0) for r in records)
    saved = _sum_known(used.get("hit_cost") for used in hits)
    return Took(
        total("calls") + total("cache_hits"),
        total("cache_hits"),
        total("tokens_in") + total("hit_tokens_in"),
        total("tokens_out") + total("hit_tokens_out"),
        _sum_known([spent, saved]),
        spent,
        sum(int(used["cache_hits"]) for used in hits if not used.get("hit_tokens_in")),
        sum(session.seconds for session in run.manifest.sessions),
        dict(Counter(n["kind"] for r in records for n in r.notices).most_common()),
    )


def _sum_known(costs: Iterable[float | None]) -> float | None:
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def _flags(run: ProgramRun, cases: Sequence[Case], overlap: Mapping[str, Sequence[str]], excluding: bool) -> list[str]:
    """What makes this run's scores mean less than they seem to."""
    flags = []
    if flag := in_sample(run, cases):
        flags.append(flag)
    if overlap:
        what = "left out for every program" if excluding else "STILL COUNTED: its scores there are memory"
        flags.append(f"DEMOS ARE TEST CASES: {', '.join(overlap)} ({what})")
    if run.unknown:
        flags.append(f"DEMOS UNKNOWN: {run.unknown}, so whether they are among the cases was not checked")
    if failed := sum(any(n["kind"] == "lm_failed" for n in run.records[c.id].notices) for c in cases):
        flags.append(f"LM FAILED on {failed} of {len(cases)} cases: their answers are partly the fallback's")
    return flags


def _notes(rows: Sequence[Row], cases: Sequence[Case], excluded: Mapping[str, Sequence[str]]) -> list[str]:
    """What must be known to read the numbers, a sentence each."""
    notes = [f"{row.label}: {flag}" for row in rows for flag in row.flags]
    if excluded:
        notes.append(f"{len(cases)} cases compared; left out, as demos of a program: {', '.join(excluded)}")
    if not any(row.scores for row in rows):
        notes.append("the data has no key, so nothing is scored: the answers stand side by side, no more")
    elif len(cases) < FEWEST_CASES:
        notes.append(
            f"fewer than {FEWEST_CASES} cases can show no difference, whatever they score; here are {len(cases)}"
        )
    for subtask in SUBTASKS:
        if partly := [c.id for c in cases if labelled_in_part(c, subtask)]:
            notes.append(
                f"ST{subtask} leaves out case {', '.join(partly)}, whose answer sentences are labelled in part"
            )
    notes += _missing(rows)
    notes += _from_cache(rows)
    if any(len(row.run.records) > len(cases) for row in rows):
        notes.append("seconds are of whole runs, which answered more cases than are compared")
    judged = sum(row.difference(n) is not None for row in rows for n in SUBTASKS)
    if judged > 1:
        notes.append(
            f"{judged} differences are judged, each by its own 95 % interval, without correction for their number"
        )
    return notes


def _from_cache(rows: Sequence[Row]) -> list[str]:
    """What the runs really sent, where the cache answered some calls."""
    found = []
    for row in rows:
        if (took := row.took).cache_hits:
            spent = "" if took.spent is None else f", ${took.spent:.4f}"
            untold = f", the tokens of {took.untold:,} replies are not known" if took.untold else ""
            found.append(f"{row.label}: {took.calls - took.cache_hits:,} of {took.calls:,} calls{spent}{untold}")
    if not found:
        return []
    said = "replies from the cache count as when they were made, in all but the seconds; really sent were "
    return [said + "; ".join(found)]


def _missing(rows: Sequence[Row]) -> list[str]:
    """Which components could not be computed, and what the subtask is judged by instead."""
    notes = []
    for subtask in SUBTASKS:
        results = [row.scores[subtask] for row in rows if subtask in row.scores]
        missing = {name: why for result in results for name, why in result.missing.items()}
        if lacking := mean_of(missing, subtask):
            notes.append(
                f"ST{subtask} is the mean of {', '.join(results[0].mean_of)} only; missing: {', '.join(lacking)}"
            )
        notes += [f"ST{subtask} {name} is missing: {why}" for name, why in missing.items() if name not in lacking]
    return notes
