import json
import math
from dataclasses import replace

import pytest

from archehr.data.case import AnswerSentence, Case, DataError, Gold, Relevance
from archehr.data.dataset import read_cases
from archehr.metrics.intervals import paired_difference
from archehr.metrics.score import score_file, score_run, score_submission

E, S, N = Relevance.ESSENTIAL, Relevance.SUPPLEMENTARY, Relevance.NOT_RELEVANT


def case(case_id, labels, citations):
    return Case(
        id=case_id,
        narrative="My father was given a stent. Why?",
        clinician_question="Why was a stent placed?",
        gold=Gold(
            relevance={str(i): label for i, label in enumerate(labels, 1)},
            answer="A stent was placed to open the duct.",
            answer_sentences=tuple(AnswerSentence(str(i), "", c) for i, c in enumerate(citations, 1)),
        ),
    )


CASES = [case("1", [E, E, S, N], [("1", "2"), ()]), case("2", [N, E, N, N], [("2",)])]


def entry(case_id, prediction):
    return {"case_id": case_id, "prediction": prediction}


def test_two_cases_worked_out_in_the_open():
    """Case 1: picks 1, 3 of essential 1, 2: one hit. Case 2: picks 2, 3, 4 of essential 2: one hit.

    Strict micro: 2 hits of 5 picks and of 3 gold: P 40, R 66.67, F1 2*2/(5+3) = 50. Macro F1: (1/2 + 1/2)/2 = 50.
    Lenient leaves out the supplementary 3 of case 1: 2 of 4, F1 4/7 = 57.14; macro (2/3 + 1/2)/2 = 58.33.
    """
    result = score_submission([entry("1", ["1", "3"]), entry("2", ["2", "3", "4"])], CASES, 2)
    board = result.leaderboard
    assert board["strict_micro_precision"] == pytest.approx(40)
    assert board["strict_micro_recall"] == pytest.approx(66.6666667)
    assert board["strict_micro_f1"] == board["overall_score"] == pytest.approx(50)
    assert board["strict_macro_f1"] == pytest.approx(50)
    assert board["lenient_micro_f1"] == pytest.approx(57.1428571)
    assert board["lenient_macro_f1"] == pytest.approx(58.3333333)
    assert [(c["case_id"], c["strict_tp"], c["strict_n_pred"], c["strict_n_gold"]) for c in result.per_case] == [
        ("1", 1, 2, 2),
        ("2", 1, 3, 1),
    ]
    low, value, high = (getattr(result.intervals["overall_score"], x) for x in ("low", "value", "high"))
    assert low <= value <= high


def test_links_worked_out_in_the_open():
    """Case 1: gold 1-1, 1-2; predicted 1-1, 2-1: one hit. Case 2: gold 1-2; predicted 1-2. Micro 2 of 3 and of 3."""
    submission = [
        entry("1", [{"answer_id": "1", "evidence_id": ["1"]}, {"answer_id": "2", "evidence_id": ["1"]}]),
        entry("2", [{"answer_id": "1", "evidence_id": ["2"]}]),
    ]
    board = score_submission(submission, CASES, 4).leaderboard
    assert board["micro_f1"] == board["overall_score"] == pytest.approx(200 / 3)
    assert board["macro_f1"] == pytest.approx(75)


def test_what_is_missing_is_named_and_leaves_no_overall():
    texts = [entry(c.id, "A stent was placed to open the duct.") for c in CASES]
    result = score_submission(texts, CASES, 3)
    assert set(result.missing) == {"bertscore", "medcon", "alignscore"}
    assert "overall_score" not in result.leaderboard and "overall_score" not in result.intervals
    assert result.mean_of == ["bleu", "rougeLsum", "sari"] and result.mean == pytest.approx(100)
    assert result.leaderboard["bleu"] == pytest.approx(100) and "bertscore" not in result.leaderboard
    assert any(row[0] == "bertscore" and row[1] == "-" for row in result.rows())
    found = json.loads(json.dumps(result.as_json()))
    assert found["mean_of"] == result.mean_of and set(found["missing"]) == set(result.missing)


def test_texts_that_break_the_official_script_are_named_not_fatal():
    result = score_submission([entry("1", "<skipped>"), entry("2", "")], CASES, 3)
    assert set(result.unscorable) == {"case 1: bleu", "case 2: bleu"}
    assert result.leaderboard["bleu"] == 0
    assert any("case 2" in note and "empty" in note for note in result.notes)


def test_long_texts_are_cut_and_said_so():
    cut = score_submission([entry("1", "Why was a stent placed? " + "x " * 12), entry("2", "Why?")], CASES, 1)
    assert any("case 1: 17 words, cut to 15" in note for note in cut.notes)
    assert cut.per_case[0]["rouge1"] == pytest.approx(2 * 5 / (15 + 5))


def test_paired_difference_of_two_results():
    better = score_submission([entry("1", ["1", "2"]), entry("2", ["2"])], CASES, 2)
    worse = score_submission([entry("2", ["3"]), entry("1", ["1"])], CASES, 2)
    assert paired_difference(better.table, worse.table)["overall_score"].value == pytest.approx(100 - 100 * 2 / 5)


@pytest.mark.parametrize(
    ("submission", "said"),
    [
        ([entry("1", [])], "case 2"),
        ([entry("1", []), entry("2", []), entry("3", [])], "case 3"),
        ([entry("1", []), entry("2", []), entry("2", [])], "case 2 stands twice"),
        ([entry("1", ["9"]), entry("2", [])], "case 1: no sentence 9"),
        ([entry("1", [1]), entry("2", [])], "strings"),
        ([entry(1, []), entry("2", [])], "not a string"),
    ],
)
def test_faults_of_a_submission_are_refused(submission, said):
    with pytest.raises(DataError, match=said) as refused:
        score_submission(submission, CASES, 2)
    assert "\n" not in str(refused.value)


def test_errors_never_repeat_a_sentence_of_the_note():
    with pytest.raises(DataError) as refused:
        score_submission([entry("1", ["Her secret diagnosis is gout"]), entry("2", [])], CASES, 2)
    assert "gout" not in str(refused.value)


def test_cases_without_reference_are_skipped_aloud_and_none_at_all_is_an_error():
    bare = Case("3", narrative="n")
    result = score_submission([entry("1", []), entry("2", []), entry("3", ["77"])], [*CASES, bare], 2)
    assert result.table.case_ids == ("1", "2") and any("case 3" in note for note in result.notes)
    with pytest.raises(DataError, match="no case has a reference"):
        score_submission([entry("3", [])], [bare], 2)


def test_half_labelled_citations_are_refused():
    half = case("1", [E], [("1",), None])
    with pytest.raises(DataError, match="answer sentence 2"):
        score_submission([entry("1", [])], [half], 4)


# ------------------------------------------------------------------------------------------------ files


@pytest.fixture
def files(tmp_path):
    key = [
        {
            "case_id": case_id,
            "answers": [{"sentence_id": str(i), "relevance": "essential"} for i in range(1, 13)],
            "clinician_answer_without_citations": "A stent was placed.",
            "clinician_answer_sentences": [{"id": "1", "text": "A stent was placed.", "citations": "12,5"}],
        }
        for case_id in ("1", "2")
    ]
    (tmp_path / "key.json").write_text(json.dumps(key))
    links = [entry(i, [{"answer_id": "1", "evidence_id": ["12", "5"]}]) for i in ("1", "2")]
    (tmp_path / "links.json").write_text(json.dumps(links))
    return tmp_path


def test_a_key_alone_is_enough_and_string_citations_are_read_as_meant(files):
    result = score_file(files / "links.json", 4, key=files / "key.json")
    assert result.leaderboard["overall_score"] == 100
    assert any("citations" in note for note in result.notes)
    # The official reading is by character: gold 1, 2, "," and 5, so of 12 and 5 only 5 is there.
    official = score_file(files / "links.json", 4, key=files / "key.json", as_official=True)
    assert official.leaderboard["overall_score"] == pytest.approx(100 * 2 * 1 / (2 + 4))
    assert any("character by character" in note for note in official.notes)


def test_a_key_alone_scores_answers_but_for_sari(files):
    (files / "answers.json").write_text(json.dumps([entry(i, "A stent was placed.") for i in ("1", "2")]))
    result = score_file(files / "answers.json", 3, key=files / "key.json")
    assert result.leaderboard["bleu"] == pytest.approx(100) and "--data" in result.missing["sari"]


def test_a_filter_leaves_the_rest_unread(files):
    (files / "some.json").write_text(json.dumps([entry("1", ["3"]), entry("2", "nonsense"), entry("x", None)]))
    result = score_file(files / "some.json", 2, key=files / "key.json", cases="1")
    assert result.table.case_ids == ("1",) and result.leaderboard["strict_micro_precision"] == 100


def test_a_filter_that_matches_nothing(files):
    with pytest.raises(DataError, match="no case 77"):
        score_file(files / "links.json", 4, key=files / "key.json", cases="77")
    (files / "ids.json").write_text(json.dumps([entry(i, ["3"]) for i in ("1", "2")]))
    official = score_file(files / "ids.json", 2, key=files / "key.json", cases="77", as_official=True)
    assert official.leaderboard["overall_score"] == 100 and math.isnan(official.leaderboard["strict_macro_f1"])
    assert official.intervals == {}


def test_a_backwards_range_is_refused_but_scores_everything_officially(files):
    (files / "ids.json").write_text(json.dumps([entry(i, ["3"]) for i in ("1", "2")]))
    with pytest.raises(DataError, match="backwards"):
        score_file(files / "ids.json", 2, key=files / "key.json", cases="2-1")
    official = score_file(files / "ids.json", 2, key=files / "key.json", cases="2-1", as_official=True)
    assert len(official.table.case_ids) == 2


def test_faults_name_the_file(files):
    (files / "ids.json").write_text(json.dumps([entry("1", ["99"]), entry("2", [])]))
    with pytest.raises(DataError, match=r"ids\.json: case 1"):
        score_file(files / "ids.json", 2, key=files / "key.json")
    with pytest.raises(DataError, match="--data DATA or --key KEY"):
        score_file(files / "ids.json", 2)
    with pytest.raises(DataError, match="No such file"):
        score_file(files / "none.json", 2, key=files / "key.json")
    with pytest.raises(DataError, match="subtask 5"):
        score_file(files / "ids.json", 5, key=files / "key.json")


def test_the_gold_of_the_sample_scores_100(tmp_path):
    cases = read_cases("sample/dev")
    gold = {
        1: [entry(c.id, c.clinician_question) for c in cases],
        2: [entry(c.id, sorted(c.gold.essential)) for c in cases],
        4: [
            entry(c.id, [{"answer_id": s.id, "evidence_id": list(s.citations)} for s in c.gold.answer_sentences])
            for c in cases
        ],
    }
    for subtask, headline in ((1, "rougeLsum"), (2, "overall_score"), (4, "overall_score")):
        (tmp_path / "s.json").write_text(json.dumps(gold[subtask]))
        ours, official = (
            score_file(tmp_path / "s.json", subtask, data="sample/dev", as_official=o) for o in (False, True)
        )
        assert ours.leaderboard[headline] == pytest.approx(100), ours.notes
        if subtask == 4:
            # The sample key keeps citations as strings, like the released one, so the official reading breaks them.
            assert official.leaderboard[headline] < 100
        else:
            assert official.leaderboard[headline] == pytest.approx(100)
    assert score_run(gold, cases)["subtask_4"]["leaderboard"]["overall_score"] == pytest.approx(100)


def test_a_run_says_what_its_data_cannot_score():
    run = score_run({1: [], 2: [entry("1", []), entry("2", [])]}, [Case(c.id, gold=c.gold) for c in CASES])
    assert run["subtask_2"]["cases"] == 2 and "clinician questions" in run["not_scored"]["subtask_1"]


def test_what_the_key_labels_in_part_ends_no_run_and_is_said():
    """A case whose sentences have no label is not scored, sentences left out count as not relevant, and an answer
    sentence without citations leaves out its subtask."""
    whole = read_cases("sample/dev")[0]
    ids = [sentence.id for sentence in whole.sentences]
    made = {2: [entry("1", ids)], 4: [entry("1", [{"answer_id": "1", "evidence_id": ids}])]}

    def scores(**gold):
        return score_run(made, [replace(whole, gold=replace(whole.gold, **gold))])

    few = scores(relevance=dict(list(whole.gold.relevance.items())[:3]))
    assert few["subtask_2"]["notes"] == ["case 1: sentences that the key leaves out count as not relevant"]
    assert few["subtask_2"]["leaderboard"]["lenient_micro_precision"] <= 100 * 3 / len(ids)
    none = scores(relevance={})
    assert "subtask_2" in none["not_scored"] and none["subtask_4"]["leaderboard"] == few["subtask_4"]["leaderboard"]
    first, *others = whole.gold.answer_sentences
    bare = scores(answer_sentences=(replace(first, citations=None), *others))
    assert "answer sentence 1 has no citations in the key" in bare["not_scored"]["subtask_4"]
    with pytest.raises(DataError, match="no sentence 99"):
        score_run({2: [entry("1", ["99"])]}, [whole])
