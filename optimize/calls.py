"""How many LM calls an optimisation makes: the most, told before the first is paid for, and later which it is at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from archehr.data.case import Case
from archehr.optimize.folds import split_folds
from archehr.optimize.optimizers.optimizer import Options
from archehr.optimize.optimizers.registry import optimizer_of
from archehr.program.lm.ledger import Ledger
from archehr.program.settings import PRESETS, ViewUse
from archehr.program.stages.registry import STAGES, has_gold, lm_replies, possible_stages
from archehr.program.types import StageName

EVERY = 10.0  # seconds between two lines of progress: a phase may hold hundreds of calls
BASELINES = ("zero_shot", "handwritten")


def expected_calls(options: Options, labelled: Sequence[Case]) -> str:
    """The line for the user. Raises DataError for folds that the cases do not allow."""
    more = ""
    if optimizer_of(options.optimizer).searches:  # these keep to no number that could be told before
        fits = _fits(options, labelled)
        searched = options.candidates * sum(has_gold(s, c) for fit in fits for c in fit for s in options.stages)
        more = f" and about {searched:,} in {options.optimizer}'s own search"
    return (
        f"at most {most_calls(options, labelled):,} LM calls{more}; "
        "a faulty reply is asked for once more, one already in the cache not at all"
    )


def most_calls(options: Options, labelled: Sequence[Case]) -> int:
    """The most replies asked for: the teacher's, those that choose among candidates and fit the cut, those that are
    scored. Not counted are faulty replies, which are asked for once more, and what mipro and gepa search with."""
    optimizer = optimizer_of(options.optimizer)
    candidates = (options.candidates if optimizer.draws else 1) * max(1, len(options.demos_tried))
    weighed = {s.name for s in STAGES.values() if candidates > 1 and s.subtask in options.weights}
    choose_by = {s for s in options.stages if s == "score" or s in weighed}
    fits = _fits(options, labelled)
    taught = options.stages if optimizer.teaches else ()
    # A question that is not optimised is the hand-written program's in all of them.
    asked_once = {"reformulate"} - set(options.stages)
    total = sum(_prompts({s}, case) for case in labelled for s in taught if has_gold(s, case))
    votes = lm_replies(options.views) if options.views else 1
    total += candidates * sum(
        _prompts(_asked(choose_by, case) - asked_once, case, votes) for fit in fits for case in fit
    )
    for case in labelled:
        asked = _asked(options.stages, case)
        total += len(BASELINES) * _prompts(asked, case)
        total += 2 * _prompts(asked - asked_once, case, votes)  # in and out of sample
        total -= _prompts(_asked(choose_by, case) - asked_once, case, votes)  # in sample, what chose it is in the cache
    return total


def affordable(options: Options, labelled: Sequence[Case], tell: Callable[[str], None]) -> Options:
    """`options` with fewer samples, then fewer views to choose from, where the trial of all may take more than
    `max_calls`; what is tried instead is told."""
    if options.max_calls is None or not options.views:
        return options
    for tried in _fewer(options.views):
        smaller = replace(options, views=tried)
        if (calls := most_calls(smaller, labelled)) <= options.max_calls:
            break
    if tried != options.views or calls > options.max_calls:
        named, wanted = (",".join(map(str, views)) for views in (tried, options.views))
        instead = f" in place of {wanted}" if tried != options.views else ""
        end = "" if calls <= options.max_calls else ", so that it stops there and the same command goes on"
        tell(f"--max-calls {options.max_calls}: the views tried are {named}{instead}, at most {calls:,} calls{end}")
    return smaller


def _fewer(views: tuple[ViewUse, ...]) -> Iterator[tuple[ViewUse, ...]]:
    """All of them, with ever fewer samples, then ever fewer of them: another way of asking is worth more than another
    sample of one."""
    for most in range(max(view.samples for view in views), 0, -1):
        yield tuple(view.model_copy(update={"samples": min(view.samples, most)}) for view in views)
    for number in range(len(views) - 1, 0, -1):
        yield tuple(view.model_copy(update={"samples": 1}) for view in views[:number])


def _fits(options: Options, labelled: Sequence[Case]) -> list[Sequence[Case]]:
    """The cases of every choice that is made: all of them, and those outside of each fold."""
    folds = split_folds(labelled, options.folds)
    return [labelled, *([c for c in labelled if c not in fold] for fold in folds)]


def _asked(stages: Collection[StageName], case: Case) -> set[StageName]:
    """`stages` and what they need, for a case answered from a question of its own."""
    wanted = set(stages) & possible_stages(case)
    if "align" in wanted and not case.answer_sentences:
        wanted.add("generate")
    if "generate" in wanted:
        wanted.add("score")
    return {*wanted, "reformulate"} if wanted else wanted


def _prompts(stages: Collection[StageName], case: Case, votes: int = 1) -> int:
    """How many prompts the stages send: two of them read a long note in parts, and `votes` replies score it."""
    return sum(STAGES[s].prompts(case, PRESETS["default"]) * (votes if s == "score" else 1) for s in stages)


@contextmanager
def calls_told(ledger: Ledger | None, expected: Callable[[], int], tell: Callable[[str], None]) -> Iterator[None]:
    """While inside, `tell` gets a line every EVERY seconds in which calls are made. `expected` is how many there may
    be in all, 0 while that is unknown; a search may make more."""
    if ledger is None:
        yield
        return
    lock, told_at = threading.Lock(), time.monotonic()

    def heard(stage: str | None) -> None:
        nonlocal told_at
        with lock:
            if time.monotonic() < told_at + EVERY:
                return
            told_at = time.monotonic()
            tell(calls_in_words(ledger, expected(), stage))

    before, ledger.on_entry = ledger.on_entry, heard
    try:
        yield
    finally:
        ledger.on_entry = before


def calls_in_words(ledger: Ledger, expected: int, stage: str | None) -> str:
    """The line: calls made, replies from the cache, the stage asked last, and the cost where it is known."""
    used = ledger.totals()
    calls, cached = int(used["calls"] or 0) - int(used["retries"] or 0), int(used["cache_hits"] or 0)
    parts = [f"call {calls:,}" + (f" of at most {expected:,}" if calls <= expected else "")]
    parts += [f"{cached:,} replies from the cache"] if cached else []
    parts += [f"stage {stage}"] if stage else []
    parts += [f"${used['cost']:.4f} so far"] if used["cost"] else []
    return "  " + ", ".join(parts)
