"""The cut: the best on labelled cases, the higher of equals."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.data.case import AnswerSentence, Case, Gold, Relevance, Sentence
from archehr.optimize.cuts import LIKERT, fit_cut, reliability, strict_micro_f1
from archehr.program.run.records import CaseRecord
from archehr.program.settings import PRESETS
from archehr.program.types import SentenceScore

LABEL = {"e": Relevance.ESSENTIAL, "s": Relevance.SUPPLEMENTARY, "n": Relevance.NOT_RELEVANT}
Toy = list[tuple[int, str]]


def toy(case_id: str, scored: Toy) -> tuple[CaseRecord, Case]:
    """A case whose sentences got these scores and have these labels."""
    ids = [str(i) for i in range(1, len(scored) + 1)]
    gold = Gold({i: LABEL[label] for i, (_, label) in zip(ids, scored, strict=True)})
    case = Case(
        case_id,
        "m",
        clinician_question="q?",
        sentences=tuple(Sentence(i, "text") for i in ids),
        answer_sentences=(AnswerSentence("1", "a"),),
        gold=gold,
    )
    scores = [SentenceScore(id=i, score=score) for i, (score, _) in zip(ids, scored, strict=True)]
    return CaseRecord(case_id=case_id, scores=scores), case


def fitted(*cases: Toy) -> tuple[int, int]:
    records, known = zip(*(toy(str(k), scored) for k, scored in enumerate(cases)), strict=True)
    chosen = fit_cut(records, known, PRESETS["default"])
    return chosen.cut, chosen.relaxed_cut


def test_the_cut_goes_where_the_essential_sentences_are() -> None:
    assert fitted([(5, "n"), (4, "e"), (3, "n")], [(4, "e"), (4, "e"), (1, "n")])[0] == 4
    assert fitted([(5, "e"), (4, "n"), (4, "n"), (4, "s")])[0] == 5


def test_the_relaxed_cut_serves_cases_where_nothing_reaches_the_cut() -> None:
    strong, weak = [(5, "e"), (3, "n"), (3, "n"), (3, "n")], [(3, "e"), (3, "e"), (1, "n")]
    assert fitted(strong, weak) == (5, 3)


def test_of_equals_the_higher_cuts_stay() -> None:
    assert fitted([(5, "e"), (1, "n")]) == (5, 5)


def test_without_labels_or_scores_nothing_is_fitted() -> None:
    record, case = toy("1", [(2, "e")])
    assert fit_cut([CaseRecord(case_id="1")], [case], PRESETS["seed"]) == PRESETS["seed"]
    assert fit_cut([record], [Case("1", "m")], PRESETS["seed"]) == PRESETS["seed"]


TOYS = st.lists(
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from("esn")), min_size=1, max_size=6), min_size=1, max_size=4
)


@settings(max_examples=40, deadline=None)
@given(TOYS)
def test_no_other_cut_is_better(cases: list[Toy]) -> None:
    pairs = [toy(str(k), scored) for k, scored in enumerate(cases)]
    records, known = zip(*pairs, strict=True)
    base = PRESETS["default"]
    best = strict_micro_f1(pairs, fit_cut(records, known, base))
    for cut in LIKERT:
        for relaxed in range(1, cut + 1):
            other = base.model_copy(update={"cut": cut, "relaxed_cut": relaxed})
            assert best >= strict_micro_f1(pairs, other)


def test_reliability_counts_labels_by_score() -> None:
    record, case = toy("1", [(5, "e"), (5, "s"), (5, "n"), (2, "e")])
    rows = {row.score: row for row in reliability([record], [case])}
    assert list(rows) == [5, 4, 3, 2, 1]
    assert rows[5][1:] == (3, 1, 1)
    assert rows[2][1:] == (1, 1, 0)
    assert rows[4][1:] == (0, 0, 0)
