"""What a student of an LM is worth: `python -m tests.benchmarks.distillation` lets a scripted LM with a known error
label sample/dev, fits a student on that and one on gold, and measures both on sample/test; then what it is worth to
let several replies vote, and to let the labels count as the vote was sure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from archehr.data.case import Case, Gold
from archehr.data.dataset import read_cases
from archehr.metrics.alignment import alignment_table, count_links
from archehr.metrics.evidence import case_counts, evidence_table
from archehr.optimize.students.examples import labelled_by_run, sentences_by_key, sure_by_run, weighed
from archehr.optimize.students.fit import evidence_hits, fit_evidence, pooled_f1
from archehr.optimize.students.student import PARTS, Student, fit_student
from archehr.program.extractive.fitted.file import shipped
from archehr.program.run.records import CaseRecord
from archehr.program.types import AgreedScore, Link

ERRORS = (0.0, 0.1, 0.2, 0.3)
REPLIES, DRAWS = 5, 8
Replies = Callable[[Case, float, Random, int], list[set[str]]]


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


def replies_that_err_together(case: Case, error: float, random: Random, replies: int) -> list[set[str]]:
    """As the replies of one LM do: each sentence is taken with a chance of its own, the same in all of them."""
    assert case.gold is not None
    chances = {}
    for s in case.sentences:
        if s.id in case.gold.essential:
            chances[s.id] = 1 - error + random.gauss(0, 0.25)
        else:
            chances[s.id] = error * (1.2 if s.id in case.gold.supplementary else 0.4) + random.gauss(0, 0.1)
    return [{i for i, chance in chances.items() if random.random() < chance} for _ in range(replies)]


def replies_that_err_apart(case: Case, error: float, random: Random, replies: int) -> list[set[str]]:
    return [set(scripted_record(case, error, random).evidence or ()) for _ in range(replies)]


def voted_record(case: Case, said: Sequence[set[str]]) -> CaseRecord:
    """What most of the replies say, with the agreement on each sentence."""
    shares = {s.id: sum(s.id in one for one in said) / len(said) for s in case.sentences}
    scores = [AgreedScore(id=i, score=5 if share > 0.5 else 1, confidence=share) for i, share in shares.items()]
    return CaseRecord(case_id=case.id, scores=scores, evidence=[i for i, share in shares.items() if share > 0.5])


def voted(dev: Sequence[Case], test: Sequence[Case], error: float, replies: Replies) -> list[float]:
    """Mean strict micro F1 on `test`, over DRAWS, of students of one reply, of the vote of REPLIES, of the same with
    its agreement as weight, and with its agreement as soft label."""
    seen, found = sentences_by_key(test), []
    bare = [replace(c, gold=None) for c in dev]
    for draw in range(DRAWS):
        random = Random(draw)
        said = {c.id: replies(c, error, random, REPLIES) for c in dev}
        one = {c.id: voted_record(c, said[c.id][:1]) for c in dev}
        several = {c.id: voted_record(c, said[c.id]) for c in dev}
        vote = sentences_by_key(labelled_by_run(bare, several))
        shares = {r.case_id: np.array([s.confidence for s in r.scores or ()]) for r in several.values()}
        taught = (
            sentences_by_key(labelled_by_run(bare, one)),
            vote,
            weighed(vote, sure_by_run(several)),
            [replace(e, essential=shares[e.case_id]) for e in vote],
        )
        found.append([100 * pooled_f1([fit_evidence(examples)], [seen], evidence_hits) for examples in taught])
    return [float(mean) for mean in np.mean(found, axis=0)]


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
    for how, replies in {"apart": replies_that_err_apart, "together": replies_that_err_together}.items():
        print(f"\nreplies err {how:13} one reply  vote of {REPLIES}  weighed by agreement  agreement as label (ST2)")
        for error in ERRORS[1:]:
            one, vote, weight, soft = voted(dev, test, error, replies)
            print(f"an LM {error:.0%} wrong {one:18.1f} {vote:10.1f} {weight:21.1f} {soft:19.1f}")


if __name__ == "__main__":
    main()
