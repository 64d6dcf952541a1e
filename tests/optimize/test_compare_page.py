"""The comparison page and report.html: one private file, nothing from outside, note text as text, colours that read."""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest

from archehr.data.case import Case, Sentence
from archehr.data.dataset import Dataset
from archehr.optimize.compare.compare import compare
from archehr.optimize.compare.html import write_page
from archehr.program.extractive_program import extractive_program
from archehr.program.run.html import BASE
from archehr.program.run.report.looks import NOTICES
from archehr.program.run.run import run_cases
from archehr.program.types import NoticeKind
from tests.conftest import Ran
from tests.finished_runs import TEST, run_of

Command = Callable[..., Ran]
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp; {{ 7*7 }}"


class Parsed(HTMLParser):
    """The tags of a page with their attributes, and whether they nest."""

    VOID = frozenset({"meta", "br", "input", "img", "link", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def hostile_cases() -> list[Case]:
    """A case whose every text and id is markup, among others."""
    case = TEST[0]
    sentences = (Sentence('"><b>', HOSTILE), *case.sentences[1:])
    answers = (replace(case.answer_sentences[0], text=HOSTILE), *case.answer_sentences[1:])
    assert case.gold is not None and case.gold.relevance is not None
    labels = dict(zip((s.id for s in sentences), case.gold.relevance.values(), strict=True))
    gold = replace(case.gold, answer=HOSTILE, relevance=labels)
    bad = replace(
        case,
        id="<i>&1",
        narrative=HOSTILE,
        clinician_question=HOSTILE,
        sentences=sentences,
        answer_sentences=answers,
        gold=gold,
    )
    return [bad, *TEST[1:8]]


@pytest.fixture(params=["comparison", "report"])
def page(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A page made of hostile texts."""
    cases = hostile_cases()
    if request.param == "report":
        run_cases(Dataset(tuple(cases), HOSTILE), extractive_program(), out=tmp_path / "r")
        path = tmp_path / "r/report.html"
    else:
        path = tmp_path / "c.html"
        demo = {"narrative": HOSTILE, "question": HOSTILE}
        runs = [
            run_of("a", cases, data=HOSTILE),
            run_of(HOSTILE, cases, data=HOSTILE, demos={"reformulate": [demo]}, lm={"model": "fake", "seed": HOSTILE}),
        ]
        write_page(compare(cases, runs, keep_demo_cases=True), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path.read_text(encoding="utf-8")


def test_text_of_notes_stays_text(page: str) -> None:
    assert html.escape("<script>alert(1)</script>", quote=False) in page
    parsed = Parsed(page)
    assert not parsed.faults and not parsed.open
    scripts = [attrs.get("type") for tag, attrs in parsed.tags if tag == "script"]
    assert scripts.count(None) <= 1 and set(scripts) <= {None, "application/json"}  # JSON is data and never runs
    assert not any(tag in ("img", "b", "i") for tag, _ in parsed.tags)
    assert not any(name.startswith("on") for _, attrs in parsed.tags for name in attrs)
    assert "{{ 7*7 }}" in page


def test_a_page_asks_for_nothing_and_runs_only_its_own_script(page: str) -> None:
    parsed = Parsed(page)
    for tag, attrs in parsed.tags:
        assert "src" not in attrs and tag not in ("link", "iframe", "object")
        assert (attrs.get("href") or "#").startswith("#")
    assert "url(" not in page and "@import" not in page
    policy = next(a["content"] for t, a in parsed.tags if t == "meta" and a.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'")
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode() if script else ""
    allowed = f"'sha256-{digest}'" if script else "'none'"
    assert f"script-src {allowed};" in policy


def test_ids_are_unique_and_every_link_and_label_finds_its_target(page: str) -> None:
    tags = Parsed(page).tags
    ids = [a["id"] for _, a in tags if "id" in a]
    assert len(ids) == len(set(ids))
    wanted = [a["href"][1:] for t, a in tags if t == "a" and a.get("href")]
    wanted += [i for _, a in tags for i in (a.get("aria-labelledby") or "").split()]
    wanted += [a["for"] for _, a in tags if a.get("for")]
    assert set(wanted) <= set(ids)


def test_headings_step_down_one_at_a_time_under_one_h1(page: str) -> None:
    levels = [int(t[1]) for t, _ in Parsed(page).tags if re.fullmatch(r"h[1-6]", t)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert {"header", "main", "footer"} <= {t for t, _ in Parsed(page).tags}


def luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_text_colour_reads_on_its_backgrounds_in_light_and_dark() -> None:
    style = (BASE / "page.html.j2").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.S)[:2]
    )
    assert set(light) == set(dark)
    grounds = ("page", "card")
    pairs = [(c, g) for c in ("text", "muted", "link", "good", "bad", "part") for g in grounds]
    pairs += [(c, f"{c}-back") for c in ("good", "bad", "part")]
    pairs += [("text", g) for g in ("evidence", "target", "good-back", "bad-back", "part-back")]
    pairs += [(c, g) for c in ("muted", "link") for g in ("target", "bad-back")]
    pairs += [(c, "evidence") for c in ("muted", "link", "good", "part")]
    for colours in (light, dark):
        for front, back in pairs:
            low, high = sorted((luminance(colours[front]), luminance(colours[back])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (front, back, colours[front], colours[back])


def test_a_report_tells_citations_scores_labels_and_notices(command: Command) -> None:
    assert command("run", "sample/test", "--cases", "101-106", "--out", "r").code == 0
    page = Path("r/report.html").read_text(encoding="utf-8")
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())
    for case in TEST[:6]:
        assert all(" ".join(s.text.split()) in text for s in (*case.sentences, *case.answer_sentences))
    assert "Subtask 4 holds the links of the clinician's answer sentences" in text
    assert page.count("<article") == 6 and re.search(r'<a class="cite" href="#c1-s\d+">', page)
    assert ">essential</span>" in page and ">supplementary</span>" in page
    scores = json.loads(Path("r/scores.json").read_text())
    assert f"{scores['subtask_2']['leaderboard']['strict_micro_f1']:.2f}" in text
    assert "missing: " in text  # the extra, or a model
    notices = json.loads(Path("r/run.json").read_text())["notices"]
    for kind, number in notices.items():
        assert f"{number} × {NOTICES[kind]}" in text


def test_every_kind_of_notice_has_its_words() -> None:
    assert set(NOTICES) == set(get_args(NoticeKind))
