"""What an optimisation tells: scores beside the baselines, what was gained, what a score value is worth."""

from __future__ import annotations

from collections.abc import Iterator

from archehr.metrics.components import MEAN
from archehr.metrics.intervals import Difference, bootstrap, paired_difference
from archehr.optimize.calls import BASELINES
from archehr.optimize.compare.compare import NOT_SHOWN, verdict
from archehr.optimize.optimize import Optimised
from archehr.program.stages.views.vote import views_in_words

COLUMNS = ("in_sample", "out_of_sample", *BASELINES, "handwritten_cut")


def report(optimised: Optimised) -> str:
    """The closing report, plain text."""
    return "\n".join(
        [
            *_scores(optimised),
            "",
            *_verdicts(optimised),
            "",
            *_votes(optimised),
            *_cut(optimised),
            *_declined(optimised),
            *_sizes(optimised),
        ]
    )


def _scores(optimised: Optimised) -> Iterator[str]:
    columns = {name: optimised.intervals(name) for name in COLUMNS if name in optimised.tables}
    yield " ".join([f"{'subtask, score':<26}", *(f"{name:<21}" for name in columns)]).rstrip()
    for subtask, (score, _) in columns["in_sample"].items():
        cells = [f"{subtask} {score:<24}"]
        for column in columns.values():
            interval = column[subtask][1] if subtask in column else None
            cells.append(f"{interval.value:.1f} ({interval.low:.1f}-{interval.high:.1f})" if interval else "")
        yield " ".join(f"{cell:<21}" for cell in cells).rstrip()
    yield "in_sample may flatter: its cases decided the choice. No case was ever shown its own demo."
    if "handwritten_cut" in columns:
        yield "handwritten_cut: the hand-written prompt with only its cut fitted, out of sample."
    if MEAN in {score for score, _ in columns["in_sample"].values()}:
        yield "mean: of the text scores that need no model; see archehr score for the official overall score."


def _verdicts(optimised: Optimised) -> Iterator[str]:
    for baseline in BASELINES:
        for subtask, gain in optimised.gains(baseline).items():
            cases = len(optimised.tables["out_of_sample"][subtask].case_ids)
            yield f"subtask {subtask}, out of sample against {baseline}: {gain_in_words(gain, cases)}"


def gain_in_words(gain: Difference, cases: int) -> str:
    """A paired difference, called better or worse only where `archehr compare` would."""
    word = verdict(gain, cases)
    word = "not shown to be better" if word == NOT_SHOWN else word
    return f"{word}, {gain.value:+.1f} points (95 % interval {gain.low:+.1f} to {gain.high:+.1f})"


def _votes(optimised: Optimised) -> Iterator[str]:
    """What one more reply buys: subtask 2 out of sample by their number, and the best views of each."""
    tables = optimised.by_votes
    if not tables:
        return
    fewest = min(tables)
    yield "calls a case  strict F1 out of sample  best of so many on all cases"
    for votes, table in tables.items():
        value = bootstrap(table)["strict_micro_f1"]
        text = f"{value.value:.1f} ({value.low:.1f}-{value.high:.1f})"
        yield f"{votes:>12}  {text:<23}  {views_in_words(optimised.fitted.by_votes[votes])}"
    chosen = optimised.fitted.settings.votes
    if chosen > fewest:
        gain = paired_difference(tables[chosen], tables[fewest])["strict_micro_f1"]
        cases = len(tables[chosen].case_ids)
        yield f"{chosen} calls against {fewest}, out of sample: {gain_in_words(gain, cases)}"
    yield ""


def _cut(optimised: Optimised) -> Iterator[str]:
    if not any(row.sentences for row in optimised.reliability):
        return
    settings = optimised.fitted.settings
    if settings.votes > 1:
        yield f"evidence is what these agree on: {views_in_words(settings)}"
        return
    relaxed = f" (where nothing does, {settings.relaxed_cut} or more)" if settings.relaxed_cut < settings.cut else ""
    yield f"evidence is what scores {settings.cut} or more{relaxed}"
    yield "score  sentences  essential  supplementary"
    for row in optimised.reliability:
        share = f"{row.essential / row.sentences:.0%}" if row.sentences else "-"
        also = f"{row.supplementary / row.sentences:.0%}" if row.sentences else "-"
        yield f"{row.score:>5}  {row.sentences:>9}  {share:>9}  {also:>13}"


def _declined(optimised: Optimised) -> Iterator[str]:
    """How often each program said that a note does not answer its own question: mistakes, for each has an answer."""
    if 3 in optimised.tables["in_sample"]:
        cases = len(optimised.tables["in_sample"][3].case_ids)
        counts = ", ".join(f"{name} {count}" for name, count in optimised.declined.items())
        yield f"declined to answer, of {cases} questions with their own note: {counts}"


def _sizes(optimised: Optimised) -> Iterator[str]:
    sizes = ", ".join(f"{s} {optimised.prompt_tokens[s]}" for s in optimised.prompt_tokens)
    yield f"prompt without the case, in tokens (estimated, 4 characters each): {sizes}"
