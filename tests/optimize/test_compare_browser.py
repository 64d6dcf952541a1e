"""The comparison in a real browser: no console error, plots drawn, filters and keyboard work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archehr.optimize.compare.compare import compare
from archehr.optimize.compare.html import write_page
from archehr.program.stages.registry import STAGES
from tests.browser import all_of, shown_as, width_and_ground
from tests.finished_runs import TEST, run_of


@pytest.fixture(scope="module")
def comparison_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def other(case: Any) -> list[str]:
        return [s.id for s in case.sentences[: 3 if case.id in ("101", "102") else 8]]

    demos = {"score": [STAGES["score"].taught().demo(TEST[4])]}
    runs = [run_of("first"), run_of("second", evidence=other, demos=demos), run_of("third", lm={"model": "other"})]
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    write_page(compare(TEST, runs), path)
    return path


@pytest.fixture
def opened(browser: Any, comparison_page: Path) -> Any:
    browser.get(comparison_page.as_uri())
    return browser


def shown_cases(browser: Any) -> list[str]:
    return [e.get_attribute("id").removeprefix("case-") for e in all_of(browser, "details.case") if e.is_displayed()]


def test_the_page_loads_from_disk_without_a_word_on_the_console(opened: Any) -> None:
    assert opened.title == "Comparison on sample/test"
    assert opened.get_log("browser") == []
    asked = opened.execute_script("return performance.getEntriesByType('resource').length")
    assert asked == 0
    assert "DEMOS ARE TEST CASES: 105" in opened.find_element("css selector", "main").text


def test_the_plots_are_drawn_inside_their_frames(opened: Any) -> None:
    assert len(all_of(opened, "svg")) == 8
    assert len(all_of(opened, "svg circle")) == 4 * (3 + 2)
    outside = opened.execute_script(
        """return [...document.querySelectorAll("svg")].filter((svg) => {
          const frame = svg.viewBox.baseVal;
          return [...svg.querySelectorAll("text, circle, line")].some((e) => {
            const b = e.getBBox();
            return b.x < 0 || b.y < 0 || b.x + b.width > frame.width || b.y + b.height > frame.height;
          });
        }).length"""
    )
    assert outside == 0
    box = all_of(opened, "svg")[0].rect
    assert box["width"] > 200 and box["height"] > 100


def test_long_names_do_not_run_into_their_intervals(browser: Any, tmp_path: Path) -> None:
    lms = ("gemini/gemini-3.8-flash", "openai/meta-llama/Llama-3.3-70B-Instruct")
    runs = [replace(run_of(p, lm={"model": lm}), label=f"{p}, {lm}") for p in ("handwritten", "mine") for lm in lms]
    write_page(compare(TEST, runs), tmp_path / "grid.html")
    browser.get((tmp_path / "grid.html").as_uri())
    overlapping = browser.execute_script(
        """return [...document.querySelectorAll("svg .mark-row")].filter((row) => {
          const [name, words] = [...row.querySelectorAll("text")].map((e) => e.getBBox());
          return name.x + name.width > words.x;
        }).length"""
    )
    assert len(all_of(browser, "svg .mark-row")) == 4 * (4 + 2) and overlapping == 0


def test_cases_are_filtered_by_words_and_by_whether_they_differ(opened: Any) -> None:
    assert len(shown_cases(opened)) == 19
    search = opened.find_element("id", "search")
    search.send_keys("107")
    assert shown_cases(opened) == ["107"]
    assert opened.find_element("id", "count").text == "1 of 19 cases shown"
    search.clear()
    search.send_keys("no such words")
    assert shown_cases(opened) == []
    search.clear()
    search.send_keys(" ")
    opened.find_element("id", "differing").click()
    assert set(shown_cases(opened)) == {c.id for c in TEST} - {"101", "102", "105"}


def test_cases_are_sorted_by_the_subtask_chosen(opened: Any) -> None:
    from selenium.webdriver.support.select import Select

    choice = Select(opened.find_element("id", "sort"))
    for value in ("st2", "size"):
        choice.select_by_value(value)
        sizes = [float(e.get_attribute(f"data-{value}")) for e in all_of(opened, "details.case")]
        assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]
    choice.select_by_value("position")
    assert shown_cases(opened) == [c.id for c in TEST if c.id != "105"]


def test_a_case_opens_by_keyboard_and_a_program_can_be_hidden(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    case = all_of(opened, "details.case")[0]
    assert not case.find_element("css selector", "table.note").is_displayed()
    case.find_element("css selector", "summary").send_keys(Keys.ENTER)
    assert case.find_element("css selector", "table.note").is_displayed()
    marks = [e for e in case.find_elements("css selector", "td.mark.p1") if e.is_displayed()]
    assert any("●" in e.text for e in marks)
    opened.find_element("css selector", "input[data-row=p1]").send_keys(Keys.SPACE)
    assert not any(e.is_displayed() for e in case.find_elements("css selector", "td.mark.p1"))
    assert any(e.is_displayed() for e in case.find_elements("css selector", "td.mark.p0"))


def test_every_control_is_reached_by_tab_and_the_first_stop_skips_to_the_content(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    opened.find_element("css selector", "body").send_keys(Keys.TAB)
    assert opened.switch_to.active_element.get_attribute("href").endswith("#main")
    reached = set()
    for _ in range(20):
        opened.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(opened.switch_to.active_element.get_attribute("id"))
    assert {"search", "sort", "differing", "open-all"} <= reached


def test_a_link_to_a_case_opens_it(opened: Any, comparison_page: Path) -> None:
    opened.get("about:blank")
    opened.get(f"{comparison_page.as_uri()}#case-110")
    assert opened.find_element("id", "case-110").get_attribute("open") is not None


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize(("scheme", "ground"), [("light", "rgb(247, 248, 249)"), ("dark", "rgb(17, 20, 24)")])
def test_nothing_runs_off_the_side_in_any_width_or_colour_scheme(
    opened: Any, width: int, scheme: str, ground: str
) -> None:
    with shown_as(opened, width, scheme):
        opened.find_element("id", "open-all").click()
        assert width_and_ground(opened) == (pytest.approx(width, abs=20), ground)
        assert width_and_ground(opened)[0] <= width


def test_in_print_every_case_is_open(opened: Any) -> None:
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        case = all_of(opened, "details.case")[0]
        assert case.get_attribute("open") is None
        assert case.find_element("css selector", "table.note").rect["height"] > 100
        assert not opened.find_element("id", "search").is_displayed()
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
