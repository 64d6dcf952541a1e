"""The rules that code keeps whatever an LM says: pure functions, no LM."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archehr.data.case import Sentence
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.stages.align import check_links
from archehr.program.stages.generate import check_answer
from archehr.program.stages.limits import count_words, cut_question, fit_answer, one_line
from archehr.program.stages.reformulate import check_question
from archehr.program.stages.render import near, render, windows
from archehr.program.stages.score_sentences import at_cut, check_scores, select_evidence
from archehr.program.types import Link, SentenceScore

IDS = st.lists(st.integers(0, 30).map(str), unique=True, min_size=1)
SCORES = st.lists(st.builds(SentenceScore, id=st.integers(0, 40).map(str), score=st.integers(1, 5)))
LINKS = st.lists(
    st.builds(Link, answer_id=st.integers(0, 6).map(str), evidence_ids=st.lists(st.integers(0, 40).map(str)))
)


def kinds(notices: list) -> list[str]:
    return [n.kind for n in notices]


@given(st.text(), st.integers(1, 20))
def test_a_question_is_one_line_within_its_limit_or_refused(text: str, limit: int) -> None:
    checked = check_question(text, limit)
    if checked.value is None:
        assert not one_line(text) and checked.fault
        return
    assert 1 <= count_words(checked.value) <= limit
    assert "\n" not in checked.value
    checked.value.encode()
    assert ("cut_words" in kinds(checked.notices)) == (count_words(text) > limit)


def test_a_cut_question_keeps_its_question_mark() -> None:
    assert cut_question("one two, three?", 2) == "one two?"
    assert cut_question("one two three?", 3) == "one two three?"
    assert cut_question("one two three", 2) == "one two"


@given(st.lists(st.text()), st.integers(1, 30), st.floats(0, 1))
def test_an_answer_is_within_its_limit_or_refused(raw: list[str], limit: int, soft: float) -> None:
    checked = check_answer(raw, PipelineSettings(answer_words=limit, soft_cut_share=soft))
    total = sum(count_words(s) for s in raw)
    if checked.value is None:
        assert total == 0 or not any(one_line(s) for s in raw)
        return
    assert 1 <= sum(count_words(s) for s in checked.value) <= limit
    assert all(checked.value)
    assert ("cut_words" in kinds(checked.notices)) == (sum(count_words(one_line(s)) for s in raw) > limit)


def sentence(words: int, end: str = ".") -> str:
    return " ".join(["word"] * words) + end


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([40, 35], [40, 35]),  # exactly the limit
        ([45, 35], [45]),  # 45 words are 60 % of 75: the soft cut stands
        ([44, 35], [44, 31]),  # 44 are not: cut hard at 75
        ([80], [75]),
        ([10, 20, 30, 40], [10, 20, 30]),
    ],
)
def test_the_seeds_soft_cut(sizes: list[int], kept: list[int]) -> None:
    fitted = fit_answer([sentence(n) for n in sizes], 75, 0.6)
    assert [count_words(s) for s in fitted] == kept
    assert all(s.endswith(".") for s in fitted)


def test_a_hard_cut_ends_in_one_full_stop() -> None:
    assert fit_answer(["a b, c d"], 2, 0.6) == ["a b."]


@given(SCORES, IDS)
def test_every_id_gets_one_score_in_note_order(raw: list[SentenceScore], ids: list[str]) -> None:
    checked = check_scores(raw, ids)
    given_ids = {s.id for s in raw}
    if not given_ids & set(ids):
        assert checked.value is None and kinds(checked.notices) == ["lm_failed"]
        return
    assert checked.value is not None
    assert [s.id for s in checked.value] == ids
    for s in checked.value:
        assert s.score == max((r.score for r in raw if r.id == s.id), default=1)
    assert ("missing_ids" in kinds(checked.notices)) == bool(set(ids) - given_ids)
    assert ("unknown_ids" in kinds(checked.notices)) == bool(given_ids - set(ids))
    assert bool(checked.fault) == bool(given_ids ^ set(ids))


def test_ids_in_brackets_and_numbers_are_the_same_ids() -> None:
    raw = [SentenceScore.model_validate({"id": 1, "score": "5"}), SentenceScore(id="[2]", score=3)]
    checked = check_scores(raw, ["1", "2"])
    assert checked.value == [SentenceScore(id="1", score=5), SentenceScore(id="2", score=3)]
    assert checked.notices == []


@given(LINKS, IDS, IDS)
def test_every_answer_id_is_linked_once_to_known_ids(raw: list[Link], answers: list[str], notes: list[str]) -> None:
    checked = check_links(raw, answers, notes)
    if not {link.answer_id for link in raw} & set(answers):
        assert checked.value is None
        return
    assert checked.value is not None
    assert [link.answer_id for link in checked.value] == answers
    for link in checked.value:
        said = {i for r in raw if r.answer_id == link.answer_id for i in r.evidence_ids}
        assert link.evidence_ids == [i for i in notes if i in said]
    assert ("missing_ids" in kinds(checked.notices)) == bool(set(answers) - {r.answer_id for r in raw})


def scores(*values: int) -> list[SentenceScore]:
    return [SentenceScore(id=str(i), score=v) for i, v in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("preset", "values", "picked", "told"),
    [
        ("seed", (5, 4, 3, 1), ["1", "2"], []),
        ("seed", (3, 2, 3), ["1", "3"], ["relaxed_cut"]),
        ("seed", (2, 1), [], []),
        ("default", (5, 4, 5), ["1", "3"], []),
        ("default", (4, 3, 4), ["1", "3"], ["relaxed_cut"]),
        ("default", (3, 3), [], []),
    ],
)
def test_the_cut(preset: str, values: tuple[int, ...], picked: list[str], told: list[str]) -> None:
    found, notices = select_evidence(scores(*values), PRESETS[preset])
    assert (found, kinds(notices)) == (picked, told)


@given(st.lists(st.integers(1, 5), min_size=1), st.sampled_from(sorted(PRESETS)))
def test_the_twins_choice_survives_any_cut(values: list[int], preset: str) -> None:
    settings = PRESETS[preset]
    found, _ = select_evidence(at_cut(scores(*values), settings), settings)
    assert found == [str(i) for i, v in enumerate(values, 1) if v >= 4]


def test_settings_refuse_a_relaxed_cut_above_the_cut() -> None:
    with pytest.raises(ValueError, match="above cut"):
        PipelineSettings(cut=3, relaxed_cut=4)


@given(st.lists(st.integers(0, 400), max_size=60), st.integers(200, 1000), st.integers(0, 5))
def test_windows_cover_the_note_in_order_and_fit(sizes: list[int], most: int, overlap: int) -> None:
    note = [Sentence(str(i), "x" * n) for i, n in enumerate(sizes)]
    made = list(windows(note, most, overlap))
    seen = [s.id for w in made for s in w]
    assert list(dict.fromkeys(seen)) == [s.id for s in note]
    assert all(len(w) == 1 or sum(len(s.text) + 8 for s in w) <= most for w in made)
    for before, after in itertools.pairwise(made):
        assert int(before[0].id) < int(after[0].id) <= int(before[-1].id) + 1


def test_windows_of_a_long_note_share_their_overlap() -> None:
    note = [Sentence(str(i), "x" * 92) for i in range(10)]
    assert [[int(s.id) for s in w] for w in windows(note, 400, 1)] == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]


@given(st.lists(st.integers(0, 300), max_size=40), st.integers(200, 2000), st.sets(st.integers(0, 39)))
def test_the_note_for_reference_fits_and_keeps_its_order(sizes: list[int], most: int, chosen: set[int]) -> None:
    note = [Sentence(str(i), "x" * n) for i, n in enumerate(sizes)]
    kept = near(note, {str(i) for i in chosen}, most)
    assert sum(len(s.text) + 8 for s in kept) <= most
    assert [int(s.id) for s in kept] == sorted(int(s.id) for s in kept)


def test_a_rendered_sentence_is_one_line() -> None:
    assert render([Sentence("7", "a\nb  c")]) == "[7] a b c"
