"""Fit a student on labelled cases, and measure it out of sample beside the shipped program on the same cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archehr.data.case import Case, DataError
from archehr.metrics.alignment import alignment_table, count_links
from archehr.metrics.components import headline
from archehr.metrics.evidence import case_counts, evidence_table
from archehr.metrics.intervals import Difference, Interval, paired_difference
from archehr.metrics.leaderboard import CaseTable
from archehr.optimize.scores import headline_intervals
from archehr.optimize.students.examples import Pairs, Sentences, pairs_by_key, sentences_by_key, weighed
from archehr.optimize.students.fit import FOLDS, choose_alignment, choose_evidence
from archehr.program.extractive.fitted.file import WholeFile
from archehr.program.extractive.fitted.models import AlignmentModel, EvidenceModel

FEWEST = 5  # cases

Models = Mapping[str, Any]  # case id -> the model that judges the case


@dataclass(frozen=True)
class Part:
    """One of the two models: how its examples are made, its constants chosen and its judgement scored."""

    name: str
    subtask: int
    labels: str
    examples: Callable[[Sequence[Case]], Sequence[Any]]
    choose: Callable[[Sequence[Any], Any], Any]
    table: Callable[[Models, Sequence[Any], Mapping[str, Case]], CaseTable]


@dataclass(frozen=True)
class Student:
    """The models and what they are worth.

    `tables` maps in_sample, out_of_sample and shipped to per-case tables by subtask; a subtask without enough labels
    has none and no model, as `left` says.
    """

    evidence: EvidenceModel | None
    alignment: AlignmentModel | None
    tables: Mapping[str, Mapping[int, CaseTable]]
    left: Sequence[str]

    def intervals(self, name: str) -> dict[int, tuple[str, Interval]]:
        """subtask -> name and interval of its headline score."""
        return headline_intervals(self.tables[name])

    def gains(self) -> dict[int, Difference]:
        """subtask -> out-of-sample score minus the shipped program's, paired by case."""
        found = {}
        for subtask, table in self.tables["out_of_sample"].items():
            differences = paired_difference(table, self.tables["shipped"][subtask])
            found[subtask] = differences[headline(subtask, differences)]
        return found


def fit_student(
    taught: Sequence[Case],
    judged: Sequence[Case],
    beside: WholeFile,
    start: WholeFile,
    also: Sequence[Case] = (),
    sure: Mapping[str, Any] = {},
) -> Student:
    """The student of the labels of `taught`, and of the cases `also`, which are in no fold.

    `sure` says of some cases how much the label of each note sentence counts. `judged` are the same cases with the
    labels that it is measured by. Out of sample: everything is chosen anew without each fifth, which is then judged.
    Raises DataError where neither model has labels enough.
    """
    models: dict[str, Any] = dict.fromkeys(part.name for part in PARTS)
    tables: dict[str, dict[int, CaseTable]] = {"in_sample": {}, "out_of_sample": {}, "shipped": {}}
    left = []
    for part in PARTS:
        examples = [e for e in part.examples(taught) if _teaches(e)]
        examples = weighed(examples, sure) if part.name == "evidence" else examples
        if len(examples) < FEWEST:
            left.append(f"{len(examples)} cases have {part.labels}, and {FEWEST} are needed for {part.name}")
            continue
        more, first = list(part.examples(also)), getattr(start, part.name)
        models[part.name] = part.choose([*more, *examples], first)
        folds = [examples[k::FOLDS] for k in range(FOLDS)]
        unseen: dict[str, Any] = {}
        for fold in folds:
            model = part.choose([*more, *(e for other in folds if other is not fold for e in other)], first)
            unseen |= {e.case_id: model for e in fold}
        known = {c.id: c for c in judged}
        seen = [e for e in part.examples(judged) if e.case_id in unseen]
        if seen:
            ids = [e.case_id for e in seen]
            tables["out_of_sample"][part.subtask] = part.table(unseen, seen, known)
            for name, model in (("in_sample", models[part.name]), ("shipped", getattr(beside, part.name))):
                tables[name][part.subtask] = part.table(dict.fromkeys(ids, model), seen, known)
    if len(left) == len(PARTS):
        raise DataError("; ".join(left) + "; label more cases")
    return Student(models["evidence"], models["alignment"], tables, left)


def _teaches(example: Sentences | Pairs) -> bool:
    """Whether a case has a yes and a no, so that any few of such cases can be learned from."""
    labels = example.essential if isinstance(example, Sentences) else example.linked
    return bool(labels.max() > 0.5 > labels.min())


def _evidence_scores(models: Models, examples: Sequence[Sentences], cases: Mapping[str, Case]) -> CaseTable:
    counts = []
    for e in examples:
        model, case = models[e.case_id], cases[e.case_id]
        chances = model.judge(e.rows, e.concepts, e.asked)
        chosen = [s.id for s, c in zip(case.sentences, chances, strict=True) if c >= model.edges[2]]
        assert case.gold is not None
        counts.append(case_counts(chosen, case.gold))
    return evidence_table([e.case_id for e in examples], counts)


def _link_scores(models: Models, examples: Sequence[Pairs], cases: Mapping[str, Case]) -> CaseTable:
    counts = []
    for e in examples:
        model, case = models[e.case_id], cases[e.case_id]
        assert case.gold is not None
        answers = [a.id for a in case.gold.answer_sentences if a.citations is not None]
        chances = model.judge(e.rows, len(answers))
        links = [
            (a, s.id)
            for a, row in zip(answers, chances, strict=True)
            for s, c in zip(case.sentences, row, strict=True)
            if c >= model.cut
        ]
        counts.append(count_links(links, case.gold.links or frozenset()))
    return alignment_table([e.case_id for e in examples], counts)


PARTS = (
    Part(
        "evidence",
        2,
        "note sentences that are labelled essential and others that are not",
        sentences_by_key,
        choose_evidence,
        _evidence_scores,
    ),
    Part("alignment", 4, "answer sentences with citations", pairs_by_key, choose_alignment, _link_scores),
)
