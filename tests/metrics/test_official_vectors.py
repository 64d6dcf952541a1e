"""The official scorers' own results, recorded: tests/vectors/README.md says how."""

import json
import math
from pathlib import Path

import pytest
from defusedxml.ElementTree import fromstring

from archehr.data.case import DataError
from archehr.metrics import official
from archehr.metrics.keys import official_keys
from archehr.metrics.predictions import read_predictions

VECTORS = Path(__file__).parents[1] / "vectors"


def load(name):
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def same(got, expected):
    return got == pytest.approx(expected, abs=1e-12, rel=0, nan_ok=True)


@pytest.mark.parametrize("subtask", [2, 4])
def test_leaderboards_and_refusals(subtask):
    score = {2: official.official_subtask2, 4: official.official_subtask4}[subtask]
    vectors = load(f"subtask{subtask}")["vectors"]
    assert len(vectors) > 50
    for vector in vectors:
        expected = vector["expected"]
        call = (vector["submission"], vector["key"], vector["case_ids_to_score"])
        if "error" in expected:
            with pytest.raises(DataError) as refused:
                score(*call)
            assert len(str(refused.value).splitlines()) == 1, vector["name"]
        else:
            got = score(*call)
            assert list(got) == list(expected["leaderboard"]), vector["name"]
            assert same(got, expected["leaderboard"]), vector["name"]


def test_case_ranges():
    for vector in load("misc_validation")["parse_case_ids"]:
        if "error" in vector["expected"]:
            with pytest.raises(DataError):
                official.official_case_ids(vector["args"])
        else:
            expected = vector["expected"]["value"]
            assert official.official_case_ids(vector["args"]) == (None if expected is None else set(expected)), vector


def test_subtask_1_does_not_know_ranges():
    assert official.official_case_ids(["1-3", "5"], subtask=1) == {"1-3", "5"}


def test_loading_of_texts():
    for vector in load("misc_validation")["load_submission"]:
        wanted, expected = vector["case_ids_to_score"], vector["expected"]
        if "value" in expected:
            got = list(read_predictions(vector["submission"], vector["subtask"], wanted=wanted))
            assert got == [(e["case_id"], e["prediction"]) for e in expected["value"]]
        else:
            keys = [
                {"case_id": e.get("case_id"), "clinician_answer_without_citations": "x"} for e in vector["submission"]
            ]
            xml = fromstring("<annotations/>")
            with pytest.raises(DataError):
                official.official_score(vector["subtask"], vector["submission"], key=keys, xml=xml, wanted=wanted)


def test_validation_of_texts():
    for vector in load("misc_validation")["score_submission_validation"]:
        call = {"key": vector["key"], "xml": fromstring(vector["xml"])}
        if "error" in vector["expected"]:
            with pytest.raises(DataError) as refused:
                official.official_score(vector["subtask"], vector["submission"], **call)
            assert len(str(refused.value).splitlines()) == 1
        else:
            scored = official.official_score(vector["subtask"], vector["submission"], **call)
            assert scored.table.case_ids == tuple(e["case_id"] for e in vector["submission"])


def test_text_leaderboards():
    for vector in load("misc_validation")["get_leaderboard"]:
        if "error" in vector["expected"]:
            with pytest.raises(DataError):
                official.official_leaderboard(vector["scores"], vector["subtask"])
        else:
            got = official.official_leaderboard(vector["scores"], vector["subtask"])
            assert list(got) == list(vector["expected"]["value"])
            assert same(got, vector["expected"]["value"])


def test_no_case_is_nan_in_subtask_2_and_0_in_subtask_4():
    two, four = official.official_subtask2([], []), official.official_subtask4([], [])
    assert math.isnan(two["strict_macro_f1"]) and two["overall_score"] == 100
    assert four["macro_f1"] == four["overall_score"] == 0


def test_string_citations_are_read_character_by_character():
    entry = {"case_id": "1", "clinician_answer_sentences": [{"id": "1", "citations": "12,5"}], "answers": []}
    assert {evidence for _, evidence in official_keys(4, [entry], None, None)["1"].links} == {"1", "2", ",", "5"}


@pytest.mark.parametrize(
    ("submission", "key"),
    [
        ("nonsense", []),
        (None, []),
        ([["1"]], []),
        ([{"case_id": ["1"], "prediction": []}], []),
        ([], [{"answers": []}]),
        ([], [{"case_id": "1", "answers": None}]),
        ([], [{"case_id": "1", "answers": [{"sentence_id": "1"}]}]),
    ],
)
def test_other_malformed_input_is_one_line_too(submission, key):
    with pytest.raises(DataError):
        official.official_subtask2(submission, key)
