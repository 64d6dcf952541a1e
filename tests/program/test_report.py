"""The report's files: what needs a look, why a sentence was scored so, pages for many cases, and text kept as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from archehr.data.case import Case, Sentence
from archehr.program.extractive import why
from archehr.program.extractive.fitted.features import NAMES
from archehr.program.extractive.fitted.file import shipped
from archehr.program.run.records import CaseRecord
from archehr.program.run.report import write
from archehr.program.run.report.looks import CaseScores, confidence_of, looks_of
from archehr.program.run.report.view import question_of, why_scored
from archehr.program.run.report.write import ONE_PAGE, PER_PAGE
from archehr.program.types import Link, Notice, SentenceScore
from tests.report_pages import Pair, answered, many, scored, with_notices, without_support, written


class VotedScore(SentenceScore):
    """A score that several views agreed on."""

    confidence: float


def sure(**more: object) -> CaseRecord:
    """A record with nothing to look at, but for what is given."""
    told: dict[str, object] = {
        "scores": [SentenceScore(id="1", score=5), SentenceScore(id="2", score=1)],
        "evidence": ["1"],
        "links": [Link(answer_id="1", evidence_ids=["1"])],
        "answer_sentences": ["She fell."],
    }
    return CaseRecord(case_id="1", **(told | more))


def noticed(stage: str, kind: str) -> dict[str, str]:
    return {"stage": stage, "kind": kind, "detail": ""}


@pytest.mark.parametrize(
    ("record", "looks"),
    [
        (sure(), []),
        (sure(unreached=["score"]), ["failed"]),
        (sure(notices=[noticed("generate", "lm_failed")]), ["failed"]),
        (sure(declined=True, links=[Link(answer_id="1", evidence_ids=[])], evidence=[]), ["declined"]),
        (sure(links=[Link(answer_id="1", evidence_ids=[])]), ["unsupported"]),
        (sure(notices=[noticed("generate", "unsupported")]), ["unsupported"]),
        (sure(notices=[noticed("score", "relaxed_cut")]), ["uncertain"]),
        (sure(notices=[noticed("score", "empty")]), ["uncertain"]),
        (sure(notices=[noticed("generate", "retried"), noticed("score", "a_kind_of_tomorrow")]), []),
        (sure(scores=[VotedScore(id="1", score=5, confidence=0.5)]), ["uncertain"]),
        (sure(scores=[VotedScore(id="1", score=3, confidence=0.9)]), []),
        (sure(scores=[SentenceScore(id="1", score=3)]), ["uncertain"]),
        (sure(scores=None, evidence=None, links=None), []),
        (sure(unreached=["score"], links=[Link(answer_id="1", evidence_ids=[])]), ["failed", "unsupported"]),
    ],
)
def test_what_needs_a_look_the_gravest_first(record: CaseRecord, looks: list[str]) -> None:
    assert looks_of(record, lowest=False) == looks
    assert looks_of(record, lowest=True) == [*looks, "lowest"]


def test_confidence_is_the_votes_else_the_scores_of_the_evidence() -> None:
    voted = [VotedScore(id="1", score=5, confidence=0.8), VotedScore(id="2", score=5, confidence=0.7)]
    assert confidence_of(sure(scores=voted, evidence=["1", "2"])) == 0.7
    assert confidence_of(sure(scores=voted, evidence=["1"])) == 0.8
    assert confidence_of(sure(evidence=["1", "2"])) == 0.5
    assert confidence_of(sure(evidence=[])) == 0
    assert confidence_of(sure(scores=None)) is None and confidence_of(sure(declined=True)) is None


@pytest.mark.parametrize(
    ("means", "lowest"),
    [
        ({str(i): float(i) for i in range(20)}, {"0", "1"}),
        ({"a": 10.0, "b": 20.0}, {"a"}),
        ({"a": 10.0}, set()),
        ({"a": 0.0, "b": 0.0}, set()),
        ({}, set()),
    ],
)
def test_the_lowest_tenth_is_at_least_one_case_where_cases_differ(means: dict[str, float], lowest: set[str]) -> None:
    found = CaseScores(scored(means) if means else {})
    assert {i for i in means if found.is_lowest(i)} == lowest
    assert not found.is_lowest("unknown") and found.mean("unknown") is None


def test_a_case_without_a_question_is_named_by_how_its_message_begins() -> None:
    message = "my wife got her pacemaker on a tuesday and went home next day feeling fine by friday she could not walk"
    assert question_of(Case("1", narrative=message), sure()) == " ".join(message.split()[:15])
    assert question_of(Case("1", narrative=message, clinician_question="Why?"), sure()) == "Why?"


def test_every_feature_has_words_and_every_evidence_sentence_its_reasons() -> None:
    assert not {f"its {name} is high" for name in NAMES} & {why._phrase(name, True) for name in NAMES}
    for case, record in answered()[0][:3]:
        found = why_scored(case, record, extractive=True, given=False, fitted=shipped())
        assert set(found) == set(record.evidence or ())
        assert all(1 <= len(set(reasons)) == len(reasons) <= 3 for reasons in found.values())


def test_an_lms_score_has_no_reasons_but_its_fallbacks_has() -> None:
    case, record = answered()[0][0]
    assert why_scored(case, record, extractive=False, given=False, fitted=shipped()) == {}
    failed = with_notices(record, Notice("score", "lm_failed"))
    assert set(why_scored(case, failed, extractive=False, given=False, fitted=shipped())) == set(record.evidence or ())


def data_of(page: Path) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    return json.loads(found[1])


def test_up_to_200_cases_are_one_page_and_more_are_an_index_over_pages(tmp_path: Path) -> None:
    page = written(list(many(ONE_PAGE)), tmp_path)
    assert page.read_text().count("<article") == ONE_PAGE and not (tmp_path / "report").exists()
    page = written(list(many(ONE_PAGE + 1)), tmp_path)
    parts = sorted((tmp_path / "report").iterdir())
    assert page.read_text().count("<article") == 0
    assert [p.read_text().count("<article") for p in parts] == [PER_PAGE] * 4 + [1]
    lines = data_of(page)["cases"]
    assert [line["id"] for line in lines] == [str(n) for n in range(1, ONE_PAGE + 2)]
    for line in (lines[0], lines[49], lines[50], lines[200]):
        file, anchor = line["href"].split("#")
        assert f'<h2 id="{anchor}"' in (tmp_path / file).read_text()
    assert {oct(p.stat().st_mode & 0o777) for p in (page, *parts)} == {"0o600"}
    assert oct((tmp_path / "report").stat().st_mode & 0o777) == "0o700"


def test_a_shorter_report_leaves_no_page_of_a_longer_one(tmp_path: Path) -> None:
    written(list(many(310)), tmp_path)
    written(list(many(210)), tmp_path)
    assert [p.name for p in sorted((tmp_path / "report").iterdir())] == [f"{n:04}.html" for n in range(1, 6)]
    (tmp_path / "report" / "mine.txt").write_text("kept")
    written(list(many(3)), tmp_path)
    assert [p.name for p in (tmp_path / "report").iterdir()] == ["mine.txt"]


def test_the_list_of_very_many_cases_is_searched_by_id_and_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = written(list(many(210)), tmp_path / "full")
    monkeypatch.setattr(write, "MOST_SEARCHED", 209)
    short = written(list(many(210)), tmp_path / "short")
    assert "words of question, message or answer" in full.read_text()
    assert "words of the question" in short.read_text()
    every, fewer = data_of(full)["cases"], data_of(short)["cases"]
    assert all(line.pop("words") for line in every) and every == fewer


def test_many_cases_are_written_as_they_come(tmp_path: Path) -> None:
    """When a case is read, all pages before the one in hand and the next are on disk."""
    from archehr.program.run.report import write_report

    behind = []

    def cases() -> Iterator[Case]:
        for number, (case, _) in enumerate(many(500)):
            behind.append(number - PER_PAGE * len(list((tmp_path / "report").glob("0*.html"))))
            yield case

    write_report(answered()[1], {}, cases(), (r for _, r in many(500)), tmp_path / "report.html")
    assert max(behind) <= ONE_PAGE + PER_PAGE and max(behind[ONE_PAGE + PER_PAGE + 1 :]) <= 2 * PER_PAGE


HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> & {{ 7 * 7 }}"


def hostile_pairs(count: int) -> list[Pair]:
    """Finished cases of which the first is hostile wherever it holds text."""
    (case, record), *others = many(count)
    hostile = replace(case, id=HOSTILE, narrative=HOSTILE, sentences=(Sentence("<1>", HOSTILE), *case.sentences[1:]))
    notice = {"stage": HOSTILE, "kind": HOSTILE, "detail": HOSTILE}
    said = record.model_copy(update={"case_id": HOSTILE, "question": HOSTILE, "answer": HOSTILE, "notices": [notice]})
    return [(hostile, said), *others]


@pytest.mark.parametrize("count", [2, ONE_PAGE + 1])
def test_text_of_any_kind_is_kept_as_text(tmp_path: Path, count: int) -> None:
    page = written(hostile_pairs(count), tmp_path, data=HOSTILE)
    for file in tmp_path.rglob("*.html"):
        text = file.read_text()
        assert "<script>document" not in text and "<img" not in text and "{{ 7 * 7 }}" in text
        scripts = re.findall(r"<script[^>]*>", text)
        assert scripts in (['<script type="application/json" id="data">', "<script>"], ["<script>"])
        assert not re.search(r"<[a-z][^>]* on[a-z]+=(?!&)", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))
    (line,) = (one for one in data_of(page)["cases"] if one["id"] == HOSTILE)
    assert line["question"] == HOSTILE and line["notices"] == [HOSTILE]


def test_the_report_says_what_fell_back_what_is_unsupported_and_what_no_one_foresaw(tmp_path: Path) -> None:
    (one, first), (two, second), (three, third) = list(many(3))
    lost = first.model_copy(update={"unreached": ["score", "generate"]})
    text = written(
        [
            (one, lost),
            (two, without_support(second)),
            (three, third.model_copy(update={"notices": [noticed("score", "of_tomorrow")]})),
        ],
        tmp_path,
    ).read_text()
    assert "no LM was reached for score, generate" in text
    assert text.count("No direct support") >= 1 and "score: of_tomorrow" in text
    assert [line["looks"] for line in data_of(tmp_path / "report.html")["cases"]] == [["failed"], ["unsupported"], []]
