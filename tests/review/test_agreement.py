"""Agreement of two readings, against figures by hand and scikit-learn's own."""

from __future__ import annotations

import random

import pytest
from sklearn.metrics import cohen_kappa_score

from archehr.data.case import Relevance
from archehr.review.agreement import against_program, agreed, agreement, agreements, differing, disputed
from archehr.review.history import CaseReview, Open
from archehr.review.labels import AnswerLine, Labels

E, S, N = Relevance.ESSENTIAL, Relevance.SUPPLEMENTARY, Relevance.NOT_RELEVANT


def labels(marks: list[Relevance | None], *answer: tuple[str, tuple[str, ...]], **more: object) -> Labels:
    lines = tuple(AnswerLine(id=str(i), text=text, links=links) for i, (text, links) in enumerate(answer, 1))
    return Labels(question="Why?", marks={str(i): m for i, m in enumerate(marks, 1)}, answer=lines, **more)  # type: ignore[arg-type]


def read(given: Labels, said: Labels | None = None, blind: bool = False, seconds: float = 0) -> CaseReview:
    return CaseReview(Open(text="0", start=given, said=said, blind=blind), seconds=seconds)


def test_kappa_and_f1_by_hand() -> None:
    ann = labels([E, E, S, N], ("He fell ill.", ("1", "2")))
    bob = labels([E, S, S, N], ("He fell ill.", ("1", "3")))
    found = agreement("ann", "bob", {"ann": {"7": read(ann)}, "bob": {"7": read(bob)}})
    assert (found.cases, found.sentences) == (["7"], 4)
    assert found.kappa == pytest.approx((0.75 - 0.3125) / (1 - 0.3125))  # 3 of 4 alike; chance 2*1 + 1*2 + 1*1 of 16
    assert found.evidence_f1 == pytest.approx(100 * 2 / 3)
    assert found.links_f1 == pytest.approx(50)
    assert found.differences == {"7": ["sentence 2: essential or supplementary", "links 1 to 2, 1 to 3"]}


def test_kappa_is_that_of_scikit_learn_on_marks_drawn_at_random() -> None:
    draw = random.Random(0)
    marks = {
        name: {str(c): [draw.choice([E, S, N, N]) for _ in range(30)] for c in range(9)} for name in ("ann", "bob")
    }
    reviews = {name: {c: read(labels(m)) for c, m in by_case.items()} for name, by_case in marks.items()}
    found = agreement("ann", "bob", reviews)
    flat = [[str(m) for c in map(str, range(9)) for m in marks[name][c]] for name in ("ann", "bob")]
    assert found.kappa == cohen_kappa_score(*flat)
    assert found.kappa_essential == cohen_kappa_score(*([m == "essential" for m in side] for side in flat))


def test_what_is_not_defined_is_told_as_such_and_never_as_a_number() -> None:
    same = {"ann": {"7": read(labels([N, N]))}, "bob": {"7": read(labels([N, N]))}}
    found = agreement("ann", "bob", same)
    assert (found.kappa, found.evidence_f1, found.links_f1) == (None, None, None)
    assert agreements({"ann": {"7": read(labels([N]))}, "bob": {}}) == []


def test_links_are_compared_between_sentences_that_are_alike_wherever_they_stand() -> None:
    ann = labels([E, E], ("The stone blocked the duct.", ("1",)), ("It was removed on day two.", ("2",)))
    bob = labels([E, E], ("It was removed on day 2.", ("2",)), ("The stone had blocked the duct.", ("1",)))
    found = agreement("ann", "bob", {"ann": {"7": read(ann)}, "bob": {"7": read(bob)}})
    assert found.links_f1 == 100
    other = labels([E, E], ("Nothing of the kind was ever said here.", ("1", "2")))
    found = agreement("ann", "bob", {"ann": {"7": read(ann)}, "bob": {"7": read(other)}})
    assert found.links_f1 == 0


def test_an_answer_against_none_differs_in_all_its_links() -> None:
    ann, bob = labels([E], ("He fell ill.", ("1",))), labels([N], ("He fell ill.", ("1",)), not_answered=True)
    assert differing(ann, bob) == ["sentence 1: essential or not-relevant", "whether the note answers", "links 1 to 1"]


def test_disputed_are_the_cases_that_two_finished_and_read_differently() -> None:
    same, other = labels([E], ("A.", ("1",))), labels([S], ("A.", ("1",)))
    reviews = {
        "ann": {"1": read(same), "2": read(same), "3": read(same)},
        "bob": {"1": read(same.model_copy(update={"remark": "hm", "harm": "could harm"})), "2": read(other)},
    }
    assert list(disputed(reviews)) == ["2"]


def test_an_adjudication_starts_from_what_all_say_alike() -> None:
    ann = labels([E, S, N], ("A.", ("1",)), remark="Too long.")
    bob = labels([E, N, N], ("B.", ("1",)), remark="Wrong dose.")
    start = agreed({"ann": ann, "bob": bob})
    assert start.marks == {"1": E, "2": None, "3": N}
    assert (start.question, start.answer, start.remark) == ("Why?", (), "ann: Too long.\nbob: Wrong dose.")


def test_marks_made_blind_and_in_sight_are_each_held_against_the_programs() -> None:
    said = labels([E, E, N, N])
    blind = read(labels([E, N, N, N]), said, blind=True, seconds=60)
    blind.blind_reading = labels([N, N, N, N])
    reviews = {
        "ann": {"1": read(said, said, seconds=20), "2": read(labels([E, E, N, S]), said, seconds=40)},
        "bob": {"1": blind, "3": read(said)},  # the last was made without a program
    }
    seen, unseen = against_program(reviews)
    assert (seen.cases, seen.sentences, seen.same, seen.seconds) == (2, 8, 7 / 8, 30)
    assert (unseen.cases, unseen.same, unseen.seconds) == (1, 0.5, 60)
    assert unseen.kappa == 0
