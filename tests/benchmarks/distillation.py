"""What a student of an LM is worth: `python -m tests.benchmarks.distillation` lets a scripted LM with a known error
label sample/dev, fits a student on that and one on gold, and measures both on sample/test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from archehr.data.case import Case, Gold
from archehr.data.dataset import read_cases
from archehr.metrics.alignment import alignment_table, count_links
from archehr.metrics.evidence import case_counts, evidence_table
from archehr.optimize.students.examples import labelled_by_run
from archehr.optimize.students.student import PARTS, Student, fit_student
from archehr.program.extractive.fitted.file import shipped
from archehr.program.run.records import CaseRecord
from archehr.program.types import Link

ERRORS = (0.0, 0.1, 0.2, 0.3)


def scripted_record(case: Case, error: float, random: Random) -> CaseRecord:
    """What an LM says of a case that misses each essential sentence and each link with the chance `error`, and puts
    others of the same note in their place."""
    assert case.gold is not None
    ids = [s.id for s in case.sentences]

    def mistaken(right: Sequence[str]) -> list[str]:
        wrong = [i for i in ids if i not in right]
        said = {random.choice(wrong) if random.random() < error else i for i in right}
        return [i for i in ids if i in said]

    links = [Link(answer_id=a.id, evidence_ids=mistaken(a.citations or ())) for a in case.gold.answer_sentences]
    texts = [a.text for a in case.gold.answer_sentences]
    evidence = mistaken([i for i in ids if i in case.gold.essential])
    return CaseRecord(case_id=case.id, evidence=evidence, answer_sentences=texts, answer=" ".join(texts), links=links)


def teacher_f1(cases: Sequence[Case], taught: Sequence[Case]) -> tuple[float, float]:
    """Strict micro F1 of the labels themselves, and micro F1 of the links."""
    gold, said = [c.gold or Gold() for c in cases], [c.gold or Gold() for c in taught]
    ids = [c.id for c in cases]
    evidence = [
        case_counts([i for i in s.relevance or () if i in s.essential], g) for s, g in zip(said, gold, strict=True)
    ]
    links = [count_links(list(s.links or ()), g.links or frozenset()) for s, g in zip(said, gold, strict=True)]
    return (
        evidence_table(ids, evidence).leaderboard()["strict_micro_f1"],
        alignment_table(ids, links).leaderboard()["micro_f1"],
    )


def measured(student: Student, cases: Sequence[Case]) -> tuple[float, float]:
    """Both F1 of a student on cases it was not fitted on."""
    known = {c.id: c for c in cases}
    found = []
    for part in PARTS:
        examples = part.examples(cases)
        table = part.table({e.case_id: getattr(student, part.name) for e in examples}, examples, known).leaderboard()
        found.append(table["strict_micro_f1" if part.subtask == 2 else "micro_f1"])
    return found[0], found[1]


def main() -> None:
    dev, test = read_cases("sample/dev"), read_cases("sample/test")
    start = shipped("extractive-dev")
    print("fitted on              labels' own F1 (ST2, ST4)   student on sample/test (ST2, ST4)")
    for error in (None, *ERRORS):
        taught: list[Case] = dev
        if error is not None:
            random = Random(0)
            records = {c.id: scripted_record(c, error, random) for c in dev}
            taught = labelled_by_run([replace(c, gold=None) for c in dev], records)
        own, worth = teacher_f1(dev, taught), measured(fit_student(taught, taught, start, start), test)
        name = "gold" if error is None else f"an LM {error:.0%} wrong"
        print(f"{name:22} {own[0]:12.1f} {own[1]:6.1f} {worth[0]:24.1f} {worth[1]:6.1f}")


if __name__ == "__main__":
    main()
