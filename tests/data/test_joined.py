"""Several DATA as one: nothing counts twice, no id means two cases, and both are told."""

from __future__ import annotations

from dataclasses import replace

from archehr.data.case import Case, Gold, Sentence
from archehr.data.dataset import Dataset, read_dataset
from archehr.data.joined import data_label, join


def case(case_id: str, narrative: str, question: str = "Why?") -> Case:
    return Case(case_id, narrative, clinician_question=question, sentences=(Sentence("1", "Fell ill."),), gold=Gold())


def told_by(*parts: Dataset) -> tuple[Dataset, list[str]]:
    told: list[str] = []
    return join(parts, told.append), told


def test_one_data_stays_as_it_is() -> None:
    dev = read_dataset("sample/dev")
    assert told_by(dev) == (dev, [])


def test_data_without_a_case_in_common_is_put_together_in_order_and_named_without_paths() -> None:
    both, told = told_by(read_dataset("sample/dev"), Dataset((case("x", "A."),), "/home/me/secret/corrected"))
    assert [c.id for c in both.cases] == [*map(str, range(1, 21)), "x"] and told == []
    assert both.name == "sample/dev + corrected" == data_label(both.name)


def test_data_given_twice_counts_once_and_is_told() -> None:
    dev = read_dataset("sample/dev")
    both, told = told_by(dev, dev)
    assert both.cases == dev.cases
    assert told == [
        "sample/dev-2 holds all 20 cases as sample/dev does: each counts once, as it was labelled last, in sample/dev-2"
    ]


def test_of_a_corrected_case_the_correction_counts_wherever_its_id_went() -> None:
    old = Dataset((case("1", "A."), case("2", "B.")), "old")
    new = Dataset((case("other", "A.", question="How?"),), "new")
    both, told = told_by(old, new)
    assert [(c.id, c.clinician_question) for c in both.cases] == [("other", "How?"), ("2", "Why?")]
    assert len(told) == 1 and "new holds all 1 cases as old does" in told[0]


def test_different_cases_with_one_id_are_named_by_their_data() -> None:
    both, told = told_by(Dataset((case("1", "A."), case("2", "B.")), "x/a"), Dataset((case("1", "C."),), "y/a"))
    assert [c.id for c in both.cases] == ["a:1", "2", "a-2:1"]
    assert len(told) == 1 and "1 become NAME:ID" in told[0]
    assert [c.id for c in both.only("a:1").cases] == ["a:1"]


def test_the_same_note_with_another_message_is_another_case() -> None:
    one = case("1", "A.")
    both, told = told_by(Dataset((one,), "a"), Dataset((replace(one, id="2", narrative="B."),), "b"))
    assert len(both.cases) == 2 and told == []
