"""What each action does to a case, what is refused, and undo."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from archehr.data.case import Relevance
from archehr.review.actions import Refused
from archehr.review.history import CaseReview, Open, Step
from archehr.review.labels import AnswerLine, Labels, doubts, faults

STEP: TypeAdapter[Any] = TypeAdapter(Step)
START = Labels(
    question="Why?",
    marks={"1": Relevance.ESSENTIAL, "2": None, "10": Relevance.NOT_RELEVANT},
    answer=(
        AnswerLine(id="1", text="He fell ill.", links=("1",)),
        AnswerLine(id="2", text="He got well.", links=("10",)),
    ),
)


def review_of(start: Labels = START, said: Labels | None = None, blind: bool = False) -> CaseReview:
    return CaseReview(Open(text="0", start=start, said=said, blind=blind))


def after(*steps: dict[str, Any], start: Labels = START) -> Labels:
    review = review_of(start)
    for step in steps:
        review = review.after(STEP.validate_python(step))
    return review.labels


def texts(labels: Labels) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(a.id, a.text, a.links) for a in labels.answer]


def test_a_mark_is_set_changed_and_taken_away() -> None:
    assert after({"do": "mark", "sentence": "2", "value": "essential"}).essential == {"1", "2"}
    assert after({"do": "mark", "sentence": "1", "value": None}).marks["1"] is None
    rest = after({"do": "mark_rest"}).marks
    assert rest == {"1": "essential", "2": "not-relevant", "10": "not-relevant"}


def test_a_sentence_is_split_in_two_that_keep_its_links_and_the_ids_are_positions_again() -> None:
    made = after({"do": "split", "answer": "1", "at": 7})
    assert texts(made) == [("1", "He fell", ("1",)), ("2", "ill.", ("1",)), ("3", "He got well.", ("10",))]


def test_sentences_are_joined_with_the_links_of_both_in_note_order() -> None:
    start = after({"do": "link", "answer": "2", "sentence": "2", "value": True})
    assert texts(after({"do": "join", "answer": "1"}, start=start)) == [
        ("1", "He fell ill. He got well.", ("1", "2", "10"))
    ]


def test_sentences_are_added_edited_and_removed() -> None:
    made = after({"do": "add", "after": "1"}, {"do": "edit", "answer": "2", "text": "He slept."})
    assert [text for _, text, _ in texts(made)] == ["He fell ill.", "He slept.", "He got well."]
    assert texts(after({"do": "remove", "answer": "1"})) == [("1", "He got well.", ("10",))]
    assert texts(after({"do": "add"}))[-1] == ("3", "", ())


def test_ids_that_the_data_gave_stay_until_sentences_come_or_go() -> None:
    start = START.model_copy(update={"answer": (AnswerLine(id="a7", text="One two."),)})
    assert texts(after({"do": "edit", "answer": "a7", "text": "Two."}, start=start)) == [("a7", "Two.", ())]


def test_a_link_is_made_and_taken_back() -> None:
    made = after({"do": "link", "answer": "1", "sentence": "10", "value": True})
    assert made.answer[0].links == ("1", "10")
    assert after({"do": "link", "answer": "1", "sentence": "1", "value": False}).answer[0].links == ()


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"do": "mark", "sentence": "3", "value": "essential"}, "no note sentence 3"),
        ({"do": "edit", "answer": "9", "text": "x"}, "no answer sentence 9"),
        ({"do": "link", "answer": "1", "sentence": "4", "value": True}, "no note sentence 4"),
        ({"do": "split", "answer": "1", "at": 0}, "inside the sentence"),
        ({"do": "split", "answer": "1", "at": 99}, "inside the sentence"),
        ({"do": "join", "answer": "2"}, "last answer sentence"),
        ({"do": "undo"}, "nothing to undo"),
        ({"do": "redo"}, "nothing to redo"),
        ({"do": "reveal"}, "Nothing is hidden"),
        ({"do": "finish"}, "1 note sentences are not marked"),
        ({"do": "take_answer", "lines": [{"id": "1", "text": "a", "links": ["7"]}]}, "no note sentence 7"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(step: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        after(step)


@pytest.mark.parametrize("text", ["\x00", "a\x0bb", "\ufffe", "\ud800"])
def test_text_that_the_official_form_cannot_hold_is_no_action(text: str) -> None:
    with pytest.raises(ValidationError):
        STEP.validate_python({"do": "remark", "text": text})


def test_a_case_is_finished_only_when_nothing_is_missing_and_not_any_more_when_something_is() -> None:
    whole = after({"do": "mark_rest"}, {"do": "finish"})
    assert whole.finished
    assert after({"do": "remark", "text": "Good."}, start=whole).finished
    assert not after({"do": "edit", "answer": "1", "text": " "}, start=whole).finished
    assert not after({"do": "finish", "value": False}, start=whole).finished


def test_faults_and_doubts_are_named() -> None:
    empty = Labels(marks={"1": Relevance.ESSENTIAL}, not_answered=True)
    assert faults(empty) == ["The question is empty.", "The note does not answer this, yet 1 is marked essential."]
    assert faults(Labels(question="Why?")) == ["There is no answer sentence."]
    long = START.model_copy(
        update={"question": "why " * 16, "answer": (AnswerLine(id="1", text="so " * 76, links=("10",)),)}
    )
    assert [line.split(";")[0] for line in doubts(long)] == [
        "The question has 16 words",
        "The answer has 76 words",
        "Answer sentence 1 cites 10, marked not relevant.",
    ]


def test_undo_takes_back_one_action_and_what_is_typed_in_a_row_at_once() -> None:
    typed = [{"do": "remark", "text": text} for text in ("N", "No", "No.")]
    assert after(*typed, {"do": "undo"}) == START
    assert after(*typed, {"do": "undo"}, {"do": "redo"}).remark == "No."
    two = after(*typed, {"do": "question", "text": "How?"}, {"do": "remark", "text": "Yes."}, {"do": "undo"})
    assert (two.question, two.remark) == ("How?", "No.")


def test_a_new_action_after_undo_ends_what_could_be_redone() -> None:
    review = review_of()
    for step in ({"do": "mark_rest"}, {"do": "undo"}, {"do": "mark", "sentence": "2", "value": "supplementary"}):
        review = review.after(STEP.validate_python(step))
    assert not review.can_redo and review.version == 3


def test_a_blind_case_shows_the_program_only_after_it_was_marked_and_keeps_the_blind_reading() -> None:
    blank = Labels(question="", marks=dict.fromkeys(START.marks))
    review = review_of(blank, said=START, blind=True)
    with pytest.raises(Refused, match="Mark every note sentence first"):
        review.after(STEP.validate_python({"do": "reveal"}))
    for step in ({"do": "mark_rest"}, {"do": "reveal"}, {"do": "mark", "sentence": "1", "value": "essential"}):
        review = review.after(STEP.validate_python(step))
    assert review.blind_reading is not None and review.blind_reading.essential == frozenset()
    assert review.labels.answer == START.answer and review.labels.essential == {"1"}
    assert not review.hidden
    back = review.after(STEP.validate_python({"do": "undo"}))
    assert not back.hidden and not back.can_undo, "what was seen cannot be unseen"


def some_step() -> st.SearchStrategy[dict[str, Any]]:
    answer, sentence = st.sampled_from(["1", "2", "3", "a"]), st.sampled_from(["1", "2", "10", "11"])
    text = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12)
    kinds: list[dict[str, Any]] = [
        {"do": st.just("mark"), "sentence": sentence, "value": st.sampled_from([None, *Relevance])},
        {"do": st.just("edit"), "answer": answer, "text": text},
        {"do": st.just("split"), "answer": answer, "at": st.integers(0, 15)},
        {"do": st.sampled_from(["join", "remove"]), "answer": answer},
        {"do": st.just("add"), "after": st.none() | answer},
        {"do": st.just("link"), "answer": answer, "sentence": sentence, "value": st.booleans()},
        {"do": st.just("not_answered"), "value": st.booleans()},
        {"do": st.sampled_from(["question", "remark"]), "text": text},
        {"do": st.sampled_from(["undo", "redo", "finish", "mark_rest", "pause"])},
    ]
    return st.one_of(*map(st.fixed_dictionaries, kinds))


@given(st.lists(some_step(), max_size=30))
def test_whatever_is_done_the_labels_stay_whole_and_undo_leads_back_to_the_start(steps: list[dict[str, Any]]) -> None:
    review = review_of()
    for step in steps:
        try:
            review = review.after(STEP.validate_python(step))
        except (Refused, ValidationError):
            continue
        labels = review.labels
        ids = [a.id for a in labels.answer]
        assert ids == [str(i) for i in range(1, len(ids) + 1)]
        assert list(labels.marks) == list(START.marks)
        assert all(list(a.links) == [i for i in labels.marks if i in a.links] for a in labels.answer)
        assert not (labels.finished and faults(labels))
        assert Labels.model_validate_json(labels.model_dump_json()) == labels
    while review.can_undo:
        review = review.after(STEP.validate_python({"do": "undo"}))
    assert review.labels == START
