"""Optimise a program on labelled cases, and measure honestly what that is worth."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from archehr.data.case import Case
from archehr.metrics.components import headline
from archehr.metrics.intervals import Difference, Interval, paired_difference
from archehr.metrics.leaderboard import CaseTable
from archehr.optimize.calls import BASELINES, base_program, expected_calls, measured_cases, most_calls
from archehr.optimize.cuts import Reliability, fit_cut, reliability
from archehr.optimize.folds import Answering, assemble, split_folds
from archehr.optimize.optimizers.optimizer import Options, Work
from archehr.optimize.scores import case_table, headline_intervals, subtasks_of
from archehr.optimize.search import Fitted, fit, propose
from archehr.optimize.views import voted_by
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program
from archehr.program.prompts.provenance import Provenance
from archehr.program.prompts.show import stage_messages
from archehr.program.run.records import CaseRecord
from archehr.program.settings import PipelineSettings
from archehr.program.stages.limits import estimate_tokens
from archehr.program.stages.registry import PROMPTED, prompted
from archehr.program.stages.score_sentences import select_evidence
from archehr.program.types import StageName

Tables = Mapping[int, CaseTable]


@dataclass(frozen=True)
class Optimised:
    """The program and what it is worth.

    `tables` maps in_sample, out_of_sample, zero_shot and handwritten (and handwritten_cut, the hand-written program
    with only its cut fitted, in the same folds) to per-case tables by subtask. In-sample means that the cases decided
    the choice of demos and cut; even there no case is shown its own demo. `declined` maps the same names to how many
    cases the program declined to answer, each with its own note. `by_votes` is subtask 2 out of sample by the number of
    LM replies that score a note, each with the mixture of views best at that price.
    """

    program: GroundedQA
    fitted: Fitted
    base_provenance: Provenance
    tables: Mapping[str, Tables]
    declined: Mapping[str, int]
    reliability: Sequence[Reliability]
    prompt_tokens: Mapping[StageName, int]
    by_votes: Mapping[int, CaseTable] = field(default_factory=dict)

    def intervals(self, name: str) -> dict[int, tuple[str, Interval]]:
        """subtask -> name and interval of its headline score."""
        return headline_intervals(self.tables[name])

    def gains(self, baseline: str) -> dict[int, Difference]:
        """subtask -> out-of-sample score minus the baseline's, paired by case."""
        found = {}
        for subtask, table in self.tables["out_of_sample"].items():
            differences = paired_difference(table, self.tables[baseline][subtask])
            found[subtask] = differences[headline(subtask, differences)]
        return found


def optimize(options: Options, cases: Sequence[Case], answering: Answering, teacher: Answering) -> Optimised:
    """The optimised program on all of `cases`, and its scores in and out of sample beside the baselines'.

    Out of sample: everything (demos, instructions, cut) is chosen anew without each fold, which it then answers.
    Raises DataError, and what an LM call may raise; replies already paid for are in the cache.
    """
    labelled, base = measured_cases(options, cases), base_program(options)
    folds = []
    if labelled:
        folds = split_folds(labelled, options.folds)
        answering.tell(expected_calls(options, labelled))
        answering.expected_calls = most_calls(options, labelled)
    work = Work(options, base, labelled, answering, teacher)
    answering.tell(f"all {len(labelled)} cases")
    by_votes: dict[int, list[CaseRecord]] = {}
    fitted = fit(work, propose(work, labelled), labelled)
    program = assemble(base, fitted.prompts, fitted.settings)
    records = {"in_sample": answering.held_out(program, labelled, options.stages), "out_of_sample": []}
    for number, fold in enumerate(folds, 1):
        answering.tell(f"fold {number} of {len(folds)}")
        train = [c for c in labelled if c not in fold]
        inside = fit(work, propose(work, train), train)
        unseen = assemble(base, inside.prompts, inside.settings)
        records["out_of_sample"] += answering.held_out(unseen, fold, options.stages)
        if inside.by_votes:
            _vote(by_votes, answering.held_out(assemble(base, inside.prompts, base.settings), fold, {"score"}), inside)
    for name in BASELINES:
        answering.tell(name)
        records[name] = answering.held_out(load_program(name), labelled, options.stages)
    if "score" in options.stages:
        records["handwritten_cut"] = _cut_alone(records["handwritten"], folds, base.settings)
    return Optimised(
        program,
        fitted,
        base.provenance,
        {name: _tables(found, labelled, _told(name, options.stages)) for name, found in records.items()},
        {name: sum(bool(r.declined) for r in found) for name, found in records.items() if name != "handwritten_cut"},
        reliability(records["in_sample"], labelled),
        {s: prompt_tokens(program, s) for s in prompted(program)},
        {votes: case_table(_in_order(found, labelled), labelled, 2) for votes, found in sorted(by_votes.items())},
    )


def _vote(by_votes: dict[int, list[CaseRecord]], answered: Sequence[CaseRecord], inside: Fitted) -> None:
    """Adds the answers of a fold as the best mixture of each number of replies, chosen without it, gives them."""
    for votes, settings in inside.by_votes.items():
        by_votes.setdefault(votes, []).extend(voted_by(record, settings) for record in answered)


def prompt_tokens(program: GroundedQA, stage: StageName) -> int:
    """Estimated tokens of a stage's prompt before a case is filled in."""
    messages = stage_messages(program, stage, dict.fromkeys(PROMPTED[stage].signature.input_fields, ""))
    return estimate_tokens("".join(str(m["content"]) for m in messages))


def _told(name: str, stages: Collection[StageName]) -> list[int]:
    return [2] if name == "handwritten_cut" else subtasks_of(stages)


def _tables(records: Sequence[CaseRecord], cases: Sequence[Case], subtasks: Sequence[int]) -> Tables:
    in_order = _in_order(records, cases)
    return {n: case_table(in_order, cases, n) for n in subtasks}


def _in_order(records: Sequence[CaseRecord], cases: Sequence[Case]) -> list[CaseRecord]:
    order = {c.id: i for i, c in enumerate(cases)}
    return sorted(records, key=lambda r: order[r.case_id])


def _cut_alone(
    records: Sequence[CaseRecord], folds: Sequence[Sequence[Case]], settings: PipelineSettings
) -> list[CaseRecord]:
    """The same scores cut anew: each fold by the cut that is best on the others. No call is made."""
    by_id = {r.case_id: r for r in records}
    recut = []
    for fold in folds:
        train = [c for other in folds if other is not fold for c in other]
        chosen = fit_cut([by_id[c.id] for c in train], train, settings)
        for case in fold:
            record = by_id[case.id]
            evidence, _ = select_evidence(record.scores or [], chosen)
            first_three = [s.id for s in case.sentences[:3]]  # as HeldOut does
            recut.append(record.model_copy(update={"evidence": evidence or first_three}))
    return recut
