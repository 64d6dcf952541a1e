"""The report in a real browser: answer and note in view together, filters, search, keyboard, phone and print."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from archehr.program.run.report import write
from archehr.program.types import Notice
from tests.browser import all_of, shown_as, width_and_ground
from tests.report_pages import many, scored, with_notices, without_support, written

CASES = 24
FAILED, UNSUPPORTED, UNCERTAIN = "2", "3", "4"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pairs = [(case, record) for case, record in many(CASES)]
    changes = {
        FAILED: lambda r: with_notices(r, Notice("score", "lm_failed", "the reply was empty")),
        UNSUPPORTED: without_support,
        UNCERTAIN: lambda r: with_notices(r, Notice("score", "relaxed_cut"), Notice("generate", "retried")),
    }
    changed = [(case, changes.get(case.id, lambda r: r)(record)) for case, record in pairs]
    means = {case.id: 100.0 - int(case.id) for case, _ in pairs}
    return written(changed, tmp_path_factory.mktemp("report"), scored(means))


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Any]:
    browser.get("about:blank")
    browser.get(page.as_uri())
    yield browser


def key(browser: Any, name: str) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.switch_to.active_element.send_keys(getattr(Keys, name))


def listed(browser: Any) -> list[str]:
    return [e.text for e in all_of(browser, "#list a")]


def articles(browser: Any) -> list[str]:
    headings = [e for e in all_of(browser, "article h2 .id") if e.is_displayed()]
    return [e.text.removeprefix("Case ") for e in headings]


def both_in_view(browser: Any) -> bool:
    """Is the citation that was followed, and the sentence it shows, on the screen and covered by nothing?"""
    return browser.execute_script(
        """return [...document.querySelectorAll("[aria-current]")].map((one) => {
          const box = one.getClientRects()[0];
          const [x, y] = [box.left + Math.min(20, box.width / 2), box.top + Math.min(12, box.height / 2)];
          return one.contains(document.elementFromPoint(x, y));
        }).join() === "true,true" """
    )


def test_it_loads_from_disk_without_a_word_on_the_console(opened: Any) -> None:
    assert opened.title == "GroundedQA on sample/test"
    assert opened.get_log("browser") == []
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("width", [360, 800, 1280])
def test_every_citation_keeps_answer_and_note_in_view(opened: Any, width: int) -> None:
    with shown_as(opened, width):
        cites = all_of(opened, "a.cite")
        opened.execute_script("arguments[0].scrollIntoView({block: 'nearest'})", cites[0])
        cites[0].click()
        assert both_in_view(opened)
        missed = []
        for number in range(1, 40):
            key(opened, "ARROW_RIGHT")
            (current,) = all_of(opened, "a.cite[aria-current]")
            assert current == cites[number] == opened.switch_to.active_element
            sentence = opened.find_element("css selector", "li[aria-current] .id").text
            assert current.get_attribute("textContent").endswith(f"[{sentence}]")
            if not both_in_view(opened):
                missed.append(number)
        assert missed == []


def test_there_are_ways_back_from_a_sentence_to_its_citation(opened: Any) -> None:
    cite = all_of(opened, "a.cite")[3]
    for way in ("ESCAPE", "link", "history"):
        cite.click()
        sentence = opened.switch_to.active_element
        assert sentence.tag_name == "li" and sentence.get_attribute("aria-current") == "true"
        if way == "link":
            name = cite.find_element("xpath", "..").get_attribute("id")
            sentence.find_element("css selector", f"a.back[href='#{name}']").click()
        elif way == "history":
            opened.back()
            time.sleep(0.3)
        else:
            key(opened, way)
        assert opened.switch_to.active_element == cite, way
        assert both_in_view(opened) or way == "history"


def test_arrow_keys_go_both_ways_and_stop_at_the_ends(opened: Any) -> None:
    first, second = all_of(opened, "a.cite")[:2]
    first.click()
    for name, expected in (("ARROW_LEFT", None), ("ARROW_RIGHT", second), ("ARROW_UP", first), ("ARROW_DOWN", second)):
        key(opened, name)
        if expected is not None:
            assert opened.switch_to.active_element == expected, name


@pytest.mark.parametrize(
    ("look", "cases"),
    [
        ("failed", [FAILED]),
        ("unsupported", [UNSUPPORTED]),
        ("uncertain", [UNCERTAIN]),
        ("lowest", [str(CASES - 1), str(CASES)]),
        ("clear", [str(n) for n in range(1, CASES - 1) if str(n) not in (FAILED, UNSUPPORTED, UNCERTAIN)]),
    ],
)
def test_what_needs_a_look_is_counted_and_is_a_filter(opened: Any, look: str, cases: list[str]) -> None:
    button = opened.find_element("css selector", f"button[data-look={look}]")
    assert button.find_element("css selector", ".many").text == str(len(cases))
    button.click()
    assert listed(opened) == articles(opened) == cases
    assert opened.find_element("id", "count").text == f"{len(cases)} of {CASES} cases shown"
    opened.find_element("css selector", "button[data-look='']").click()
    assert len(listed(opened)) == CASES


def test_what_no_case_has_cannot_be_pressed(opened: Any) -> None:
    assert not opened.find_element("css selector", "button[data-look=declined]").is_enabled()


def test_search_looks_through_ids_questions_messages_and_answers(opened: Any) -> None:
    search = opened.find_element("id", "search")
    pairs = list(many(CASES))
    for case, record in pairs[:3]:
        for text in (record.question or "", case.narrative, record.answer or ""):
            search.clear()
            search.send_keys(" ".join(text.replace("(", " ").replace(")", " ").split()[:4]).strip("?.,"))
            assert case.id in listed(opened), text
    search.clear()
    search.send_keys("no such words")
    assert listed(opened) == articles(opened) == []


def test_notices_filter_and_orders_sort(opened: Any) -> None:
    from selenium.webdriver.support.select import Select

    notice, sort = (Select(opened.find_element("id", name)) for name in ("notice", "sort"))
    notice.select_by_value("retried")
    assert listed(opened) == [UNCERTAIN]
    notice.select_by_value("")
    sort.select_by_value("looks")
    assert listed(opened)[:5] == [FAILED, UNSUPPORTED, UNCERTAIN, str(CASES - 1), str(CASES)]
    sort.select_by_value("score")
    assert listed(opened) == articles(opened) == [str(n) for n in range(CASES, 0, -1)]
    sort.select_by_value("confidence")
    percent = [int(e.text.rstrip(" %")) for e in all_of(opened, "#list td:nth-child(4)")]
    assert percent == sorted(percent) and percent[0] < percent[-1]
    sort.select_by_value("")
    assert articles(opened) == [str(n) for n in range(1, CASES + 1)]


def test_a_header_has_the_question_and_one_mark(opened: Any) -> None:
    heading = opened.find_element("id", f"c{FAILED}")
    assert [e.text for e in heading.find_elements("css selector", ".tag")] == ["✕ Failed"]
    (question,) = (record.question for case, record in many(CASES) if case.id == FAILED)
    assert heading.text == f"✕ Failed Case {FAILED} {question}"


def test_no_direct_support_stands_out(opened: Any) -> None:
    sentence = opened.find_element("id", f"c{UNSUPPORTED}-a1")
    assert "No direct support" in sentence.text
    other = opened.find_element("id", f"c{UNSUPPORTED}-a2")
    assert sentence.value_of_css_property("background-color") != other.value_of_css_property("background-color")


def test_headings_are_in_order_and_all_that_can_be_reached_has_a_name(opened: Any) -> None:
    levels = [int(e.tag_name[1]) for e in all_of(opened, "h1, h2, h3, h4")]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    opened.execute_script("for (const c of document.querySelectorAll('.case')) c.style.contentVisibility = 'visible'")
    reachable = "a[href], button, input, select, summary, [tabindex='0']"
    reached = all_of(opened, reachable)[:200]
    nameless = [e.get_attribute("outerHTML")[:99] for e in reached if e.is_displayed() and not e.accessible_name]
    assert nameless == []


def test_keys_alone_reach_filters_cases_and_citations(opened: Any) -> None:
    key(opened, "TAB")
    assert opened.switch_to.active_element.get_attribute("href").endswith("#main")
    reached = []
    for _ in range(60):
        key(opened, "TAB")
        at = opened.switch_to.active_element
        assert at.value_of_css_property("outline-style") != "none"
        reached.append(at.get_attribute("id") or at.get_attribute("data-look") or at.get_attribute("class"))
    assert {"failed", "search", "notice", "sort", "cite", "pane"} <= set(reached)


def test_a_step_to_the_next_case_passes_over_those_filtered_out(opened: Any) -> None:
    opened.find_element("css selector", "button[data-look=lowest]").click()
    opened.find_element("xpath", f"//article[h2[@id='c{CASES - 1}']]//a[@data-step='1']").click()
    assert opened.switch_to.active_element.get_attribute("id") == f"c{CASES}"


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize(("scheme", "ground"), [("light", "rgb(247, 248, 249)"), ("dark", "rgb(17, 20, 24)")])
def test_nothing_runs_off_the_side(opened: Any, width: int, scheme: str, ground: str) -> None:
    with shown_as(opened, width, scheme):
        found = width_and_ground(opened)
        assert found[0] <= width and found[1] == ground


def test_in_print_evidence_and_scores_survive_and_details_stay_closed(opened: Any) -> None:
    with shown_as(opened, 700, media="print"):
        evidence, plain = (
            opened.find_element("css selector", f".note > li{e}") for e in (".evidence", ":not(.evidence)")
        )
        for look in ("border-left-color", "background-color"):
            assert evidence.value_of_css_property(look) != plain.value_of_css_property(look)
        assert evidence.value_of_css_property("print-color-adjust") == "exact"
        assert evidence.find_element("css selector", ".tag").is_displayed()
        closed = opened.execute_script(
            """const inside = document.querySelectorAll("details:not([open]) > :not(summary)");
            return [...inside].every((e) => !e.checkVisibility())"""
        )
        assert closed and not opened.find_element("id", "search").is_displayed()
        panes = "return [...document.querySelectorAll('.pane')]"
        assert opened.execute_script(f"{panes}.filter((e) => e.scrollHeight > e.clientHeight + 1).length") == 0
    last = all_of(opened, "main > *")[-1]
    assert last.find_element("css selector", "h2:last-of-type").text == "About this run"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    changes = {"260": without_support}
    pairs = [(case, changes.get(case.id, lambda r: r)(record)) for case, record in many(260)]
    return written(pairs, tmp_path_factory.mktemp("index"))


def test_the_index_shows_50_cases_a_page_and_leads_to_each(browser: Any, index: Path) -> None:
    browser.get(index.as_uri())
    assert listed(browser) == [str(n) for n in range(1, 51)]
    browser.find_element("id", "later").click()
    assert listed(browser) == [str(n) for n in range(51, 101)]
    browser.find_element("css selector", "button[data-look=unsupported]").click()
    assert listed(browser) == ["260"]
    browser.find_element("link text", "260").click()
    assert browser.find_element("css selector", "h2:target .id").text == "Case 260"
    assert browser.get_log("browser") == []
    browser.find_element("id", "c260-a2").find_element("css selector", "a.cite").click()
    assert both_in_view(browser)
    browser.find_element("link text", "All cases").click()
    assert browser.current_url == index.as_uri()


def test_the_index_of_very_many_cases_finds_ids_and_questions(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "MOST_SEARCHED", 209)
    pairs = list(many(210))
    pairs[204] = (pairs[204][0], pairs[204][1].model_copy(update={"question": "Zebra crossing Ahead?"}))
    browser.get(written(pairs, tmp_path).as_uri())
    search = browser.find_element("id", "search")
    for text, found in (("ahead zebra", ["205"]), ("209", ["209"]), (pairs[0][0].narrative[:60], [])):
        search.clear()
        search.send_keys(text)
        assert listed(browser) == found
    assert browser.get_log("browser") == []


def test_200_cases_are_read_on_one_page(browser: Any, tmp_path: Path) -> None:
    """The most that one page holds: it opens, filters, steps and prints as one of 24 does."""
    changes = {"150": without_support}
    path = written([(case, changes.get(case.id, lambda r: r)(record)) for case, record in many(200)], tmp_path)
    browser.get(path.as_uri())
    assert len(articles(browser)) == 200 and browser.get_log("browser") == []
    assert listed(browser) == [str(n) for n in range(1, 51)]
    browser.find_element("css selector", "button[data-look=unsupported]").click()
    assert listed(browser) == articles(browser) == ["150"]
    browser.find_element("id", "c150-a2").find_element("css selector", "a.cite").click()
    assert both_in_view(browser)
    key(browser, "ARROW_RIGHT")
    assert both_in_view(browser)


def test_hostile_text_runs_nowhere(browser: Any, tmp_path: Path) -> None:
    from tests.program.test_report import HOSTILE, hostile_pairs

    for count in (2, 201):
        path = written(hostile_pairs(count), tmp_path / str(count))
        pages = [path, *sorted(tmp_path.glob(f"{count}/report/0001.html"))]
        for one in pages:
            browser.get(one.as_uri())
            assert browser.title != "taken" and browser.get_log("browser") == []
            assert not all_of(browser, "img") and len(all_of(browser, "script:not([type])")) == 1
        browser.get(path.as_uri())
        assert HOSTILE in listed(browser)
