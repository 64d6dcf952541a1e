"""The LM calls that an optimisation makes: how many at most and what they take, told before the first is paid for, and
later which it is at."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from archehr.data.case import Case
from archehr.optimize.folds import Answering, HeldOut, assemble, split_folds
from archehr.optimize.optimizers.optimizer import Options, Work
from archehr.optimize.optimizers.registry import optimizer_of
from archehr.optimize.search import propose
from archehr.program.lm.ledger import Ledger
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program
from archehr.program.run.estimate import StageEstimate, estimate
from archehr.program.run.job import Job
from archehr.program.settings import PRESETS, ViewUse
from archehr.program.stage_lms import LMs, fitting, with_lms
from archehr.program.stages.registry import PROMPTED, STAGES, has_gold, lm_replies, possible_stages
from archehr.program.types import StageName

EVERY = 10.0  # seconds between two lines of progress: a phase may hold hundreds of calls
BASELINES = ("zero_shot", "handwritten")
TEACHER, CHOICE, SCORED, SEARCH = "teacher", "choice", "in and out of sample", "search"  # beside the baselines
SAMPLE = 24  # cases whose prompts are counted for an estimate

Calls: TypeAlias = "Counter[StageName]"


def expected_calls(options: Options, labelled: Sequence[Case]) -> str:
    """The line for the user. Raises DataError for folds that the cases do not allow."""
    more = ""
    if searched := searching(options, labelled).total():  # it keeps to no number that could be told before
        more = f" and about {searched:,} in {options.optimizer}'s own search"
    return (
        f"at most {most_calls(options, labelled):,} LM calls{more}; "
        "a faulty reply is asked for once more, one already in the cache not at all"
    )


def most_calls(options: Options, labelled: Sequence[Case]) -> int:
    """The most replies asked for, the sum of `planned`."""
    return sum(calls.total() for calls in planned(options, labelled).values())


def planned(options: Options, labelled: Sequence[Case]) -> dict[str, Calls]:
    """By part the most replies asked for: the teacher's, those that choose among candidates and fit the cut, those
    that are scored. Not counted are faulty replies, which are asked for once more, and what mipro and gepa search
    with."""
    optimizer = optimizer_of(options.optimizer)
    candidates = (options.candidates if optimizer.draws else 1) * max(1, len(options.demos_tried))
    weighed = {s.name for s in STAGES.values() if candidates > 1 and s.subtask in options.weights}
    choose_by = {s for s in options.stages if s == "score" or s in weighed}
    # A question that is not optimised is the hand-written program's in all of them.
    asked_once = {"reformulate"} - set(options.stages)
    parts: dict[str, Calls] = {part: Counter() for part in (TEACHER, CHOICE, SCORED, *BASELINES)}
    if optimizer.teaches:
        for case in labelled:
            parts[TEACHER] += _prompts({s for s in options.stages if has_gold(s, case)}, case)
    for case in (case for fit in _fits(options, labelled) for case in fit):
        chosen_by = _prompts(_asked(choose_by, case) - asked_once, case, options.views)
        parts[CHOICE] += _times(candidates, chosen_by)
    for case in labelled:
        asked = _asked(options.stages, case)
        for name in BASELINES:
            parts[name] += _prompts(asked, case)
        parts[SCORED] += _times(2, _prompts(asked - asked_once, case, options.views))  # in and out of sample
        # In sample, what chose it is in the cache.
        parts[SCORED] -= _prompts(_asked(choose_by, case) - asked_once, case, options.views)
    return {part: calls for part, calls in parts.items() if calls}


def searching(options: Options, labelled: Sequence[Case]) -> Calls:
    """About how many replies an optimiser's own search asks for; none for those that do not search."""
    if not optimizer_of(options.optimizer).searches:
        return Counter()
    fits = _fits(options, labelled)
    return Counter(
        {s: options.candidates * sum(has_gold(s, case) for fit in fits for case in fit) for s in options.stages}
    )


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


def _prompts(stages: Collection[StageName], case: Case, views: Sequence[ViewUse] = ()) -> Calls:
    """How many prompts the stages send: two of them read a long note in parts, and every view's replies score it."""
    sent: Calls = Counter({s: STAGES[s].prompts(case, PRESETS["default"]) for s in stages})
    if views and (whole := sent.pop("score", 0)):
        sent += Counter({view.name: whole * lm_replies([view]) for view in views})
    return sent


def _times(number: int, calls: Calls) -> Calls:
    return Counter({stage: number * count for stage, count in calls.items()})


def estimate_optimisation(
    options: Options, cases: Sequence[Case], lms: LMs, teacher_lms: LMs = None
) -> dict[str, dict[StageName, StageEstimate]]:
    """By part and stage what the calls that are `planned` take at most, and the search of mipro and gepa about; nothing
    is sent. `teacher_lms` are those of the teacher where they are others.

    Prompts are counted on up to SAMPLE of the cases, with the demos that `labeled` takes. Raises DataError as the
    optimisation would before its first call.
    """
    labelled = measured_cases(options, cases)
    parts = {**planned(options, labelled), SEARCH: searching(options, labelled)}
    base = base_program(options)
    with_lms(base, lms)  # raises for a stage or view that there is not
    work = Work(replace(options, optimizer="labeled", demos_tried=()), base, labelled, Answering(lms), Answering(lms))
    with_demos = assemble(base, propose(work, labelled)[0], base.settings)
    some = labelled[:: -(-len(labelled) // SAMPLE)]
    programs = {TEACHER: base, SEARCH: base, **{name: load_program(name) for name in BASELINES}}
    return {
        part: _estimated(calls, programs.get(part, with_demos), some, (part == TEACHER and teacher_lms) or lms, options)
        for part, calls in parts.items()
        if calls
    }


def _estimated(
    calls: Calls, program: GroundedQA, cases: Sequence[Case], lms: LMs, options: Options
) -> dict[StageName, StageEstimate]:
    own, lm = with_lms(HeldOut(program), fitting(lms, program))
    chain, align = set(options.stages) - {"align"}, set(options.stages) & {"align"}  # as Answering.held_out asks them
    per_stage: dict[StageName, StageEstimate] = {}
    for stages in (chain, align):
        if stages:
            per_stage |= estimate(Job(own, lm, "own", tuple(stages)), cases)
    return {stage: its.of_calls(calls[stage]) for stage in PROMPTED if (its := per_stage.get(stage)) and calls[stage]}


def measured_cases(options: Options, cases: Sequence[Case]) -> list[Case]:
    """The cases that can measure any of the stages."""
    return [case for case in cases if any(STAGES[stage].measures(case) for stage in options.stages)]


def base_program(options: Options) -> GroundedQA:
    """The hand-written program, with all the views that there are to choose from."""
    base = load_program("default")
    if not options.views:
        return base
    base = load_program("default", base.settings.model_copy(update={"views": options.views}))
    base.fitted = options.fitted
    return base


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
