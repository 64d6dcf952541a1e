"""The review page in a real browser: everything by keyboard, what is saved, two windows, blind and side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archehr.data.case import Sentence
from archehr.data.dataset import read_cases
from archehr.review.export.official import official_xml
from archehr.review.history import CaseReview
from archehr.review.journal import journal_path, read_journal
from tests.review.conftest import CASES
from tests.review.review_page import CHROMIUM, DRIVER, chromium, review_server
from tests.review.test_review_command import finish

pytest.importorskip("selenium", reason="needs the extra `test` (selenium)")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs a browser: apt-get install chromium chromium-driver"
)
from selenium.webdriver.common.keys import Keys  # noqa: E402


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture
def browser(chrome: Any) -> Iterator[Any]:
    """The browser with one window, whatever a test leaves open."""
    yield chrome
    *others, last = chrome.window_handles
    for window in others:
        chrome.switch_to.window(window)
        chrome.close()
    chrome.switch_to.window(last)
    chrome.get("about:blank")


class Page:
    """The page as a reviewer has it before them."""

    def __init__(self, browser: Any, address: str) -> None:
        self.browser = browser
        browser.get_log("browser")
        browser.get(address)
        self.until(lambda: browser.title.startswith("Case ") and self.all(".sentence.here"))

    def __getitem__(self, css: str) -> Any:
        return self.browser.find_element("css selector", css)

    def all(self, css: str) -> list[Any]:
        return list(self.browser.find_elements("css selector", css))

    @property
    def case(self) -> str:
        return str(self.browser.execute_script("return decodeURIComponent(location.hash.slice(1))"))

    @property
    def focused(self) -> Any:
        return self.browser.switch_to.active_element

    def press(self, *keys: str) -> None:
        """Press one key after the other, as fast as a quick typist and not faster, and wait for what is saved."""
        for key in keys:
            self.focused.send_keys(key)
            time.sleep(0.05)
        self.until(self.saved)

    def saved(self) -> bool:
        return bool(self.browser.execute_script("return document.getElementById('saved').dataset.kind === 'saved'"))

    def until(self, holds: Callable[[], Any], seconds: float = 15) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "the page did not come to it"
            time.sleep(0.02)

    def mark(self, sentence: str) -> str:
        script = (
            "return [...document.querySelectorAll('.sentence')].find((e) => e.dataset.id === arguments[0]).dataset.mark"
        )
        return str(self.browser.execute_script(script, sentence))

    def lines(self) -> list[str]:
        return list(
            self.browser.execute_script("return [...document.querySelectorAll('#lines textarea')].map((e) => e.value)")
        )

    def cites(self) -> list[str]:
        script = (
            "return [...document.querySelectorAll('#lines .cites')]"
            ".map((e) => [...e.childNodes].map((c) => c.textContent).join(' '))"
        )
        return list(self.browser.execute_script(script))

    def fill(self, css: str, text: str) -> None:
        self[css].send_keys(Keys.CONTROL, "a")
        self[css].send_keys(text)


@pytest.fixture
def page(browser: Any, run: Path) -> Iterator[Page]:
    with review_server(run, "--order", "given") as served:
        yield Page(browser, served.address)


def kept(run: Path, case: str = "101", reviewer: str = "reviewer") -> CaseReview:
    """What the journal holds, read as after a kill."""
    return read_journal(journal_path(run, reviewer), [])[case]


def test_the_page_opens_without_a_word_on_the_console_and_asks_only_its_own_server(page: Page) -> None:
    assert page.browser.get_log("browser") == []
    asked = page.browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)")
    here = page.browser.current_url.split("#")[0]
    assert asked and all(name.startswith(here) for name in asked)
    assert page.case == "101" and page.browser.title == "Case 101 · archehr review"
    assert page["#progress-words"].text == "0 of 4 finished" and page.saved()


def test_a_case_is_reviewed_from_start_to_end_by_keyboard_alone(page: Page, run: Path) -> None:
    page.press("j", "j", "1", "j", "2", "j", "3")
    assert [page.mark(i) for i in ("3", "4", "5")] == ["essential", "supplementary", "not-relevant"]
    assert page.focused.get_attribute("value") == "not-relevant", "the focus is on the mark that was made"
    page.press("]", "k", "k", "x")
    assert "[3]" in page.cites()[0]
    page.press("e", Keys.END, " Indeed.", Keys.ESCAPE)
    assert page.lines()[0].endswith("Indeed.")
    page.press("m", "Too long.", Keys.ESCAPE, "g", Keys.SPACE, "f")
    page.until(lambda: page.case == "102")
    labels = kept(run).labels
    assert labels.finished and labels.remark == "Too long." and labels.harm == "none"
    assert labels.answer[0].text.endswith("Indeed.") and "3" in labels.answer[0].links
    assert page["#progress-words"].text == "1 of 4 finished"
    page.press("n")
    page.until(lambda: page.case == "103")
    page.press("p")
    page.until(lambda: page.case == "102")


def test_answer_sentences_are_split_joined_added_and_removed_where_the_cursor_is(page: Page, run: Path) -> None:
    first, *others = page.lines()
    half = first.index(" ") + 1
    page.press("]", "e", Keys.CONTROL + Keys.HOME, *[Keys.ARROW_RIGHT] * half, Keys.ENTER)
    page.until(lambda: page.lines() == [first[:half].strip(), first[half:], *others])
    assert page.cites()[0] == page.cites()[1]
    assert page.focused.get_attribute("aria-label") == "Answer sentence 2"
    page.press(Keys.BACKSPACE)
    page.until(lambda: page.lines() == [first, *others])
    page.press(Keys.CONTROL + Keys.END, Keys.ENTER)
    page.until(lambda: page.lines() == [first, "", *others])
    page.press("New.")
    page.until(lambda: page.lines()[1] == "New.")
    assert page.lines() == [first, "New.", *others]
    page["#lines li:nth-child(2) .remove"].click()
    page.until(lambda: page.lines() == [first, *others])
    page["#add"].click()
    page.until(lambda: len(page.lines()) == 2 + len(others))
    page.until(page.saved)
    assert [a.text for a in kept(run).labels.answer] == page.lines()


def test_splitting_counts_characters_as_the_server_does(page: Page) -> None:
    page.fill("#lines textarea", "😀😀 one two")
    page.press(*[Keys.ARROW_LEFT] * 3, Keys.ENTER)
    page.until(lambda: page.lines()[:2] == ["😀😀 one", "two"])


def test_words_are_counted_while_typing(page: Page) -> None:
    page.fill("#question", "one two three")
    assert page["#question-count"].text == "3 of 15 words"
    page["#question"].send_keys(" x" * 13)
    assert page["#question-count"].text == "16 of 15 words"
    assert "over" in page["#question-count"].get_attribute("class")
    page.until(lambda: "The question has 16 words" in page["#doubts"].text)


def test_an_answer_sentence_is_chosen_and_note_sentences_are_clicked(page: Page, run: Path) -> None:
    page["#lines li:nth-child(2) .choose input"].click()
    page['.sentence[data-id="1"] .text'].click()
    page.until(lambda: "[1]" in page.cites()[1])
    page['.sentence[data-id="2"] .cite input'].click()
    page.until(lambda: "[1] [2]" in " ".join(page.cites()[1].split()))
    page['.sentence[data-id="1"] .text'].click()
    page.until(lambda: "[1]" not in page.cites()[1])
    assert kept(run).labels.answer[1].links[0] == "2"


def test_everything_is_undone_and_redone(page: Page) -> None:
    before = page.mark("1"), page.lines()
    page.press("1", "]", "x", "d", "u", "u", "u")
    assert (page.mark("1"), page.lines()) == before
    assert not page["#undo"].is_enabled() and page["#redo"].is_enabled()
    page.press("U", "U", "U")
    assert page.mark("1") == "essential" and page["#not-answered"].is_selected()


def test_a_note_that_does_not_answer_is_said_so_and_cannot_have_evidence(page: Page, run: Path) -> None:
    page.press("d", "f")
    page.until(lambda: "is marked essential" in page["#told"].text)
    assert page.case == "101"
    for row in page.all('.sentence[data-mark="essential"]'):
        row.find_element("css selector", "input[value=not-relevant]").click()
    page.until(lambda: not page.all('.sentence[data-mark="essential"]'))
    page["#finish"].click()
    page.until(lambda: page.case == "102")
    assert kept(run).labels.finished and kept(run).labels.not_answered


def test_what_was_typed_a_moment_before_the_window_is_closed_is_kept(page: Page, run: Path, browser: Any) -> None:
    mine = browser.current_window_handle
    address = browser.current_url
    browser.switch_to.new_window("tab")
    other = Page(browser, address)
    other.press("1")
    other["#remark"].send_keys("Half a sen")
    browser.close()  # at once, and without a question
    browser.switch_to.window(mine)
    page.until(lambda: kept(run).labels.remark == "Half a sen")


def test_two_windows_on_one_case_the_later_is_told_and_nothing_is_overwritten(page: Page, run: Path) -> None:
    browser, mine, address = page.browser, page.browser.current_window_handle, page.browser.current_url
    browser.switch_to.new_window("tab")
    other = Page(browser, address)
    # Both windows show the same version; this one is not looked at again before it acts.
    for event in ("focus", "visibilitychange"):
        browser.execute_script(f"window.addEventListener('{event}', (e) => e.stopImmediatePropagation(), true)")
    late = browser.current_window_handle
    browser.switch_to.window(mine)
    page.fill("#question", "First?")
    page.until(page.saved)
    browser.switch_to.window(late)
    browser.execute_script(
        "const q = document.getElementById('question'); q.value = 'Second?'; q.dispatchEvent(new Event('input'))"
    )
    other.until(lambda: "another window" in other["#told"].text)
    assert kept(run).labels.question == "First?"
    assert other["#question"].get_property("value") == "First?"
    if other["#told-again"].is_displayed():
        assert "Second?" in other["#told"].text
        other["#told-again"].click()
        other.until(lambda: kept(run).labels.question == "Second?")
    browser.close()
    browser.switch_to.window(mine)


def test_a_window_that_is_looked_at_again_shows_what_another_did(page: Page) -> None:
    browser, mine, address = page.browser, page.browser.current_window_handle, page.browser.current_url
    browser.switch_to.new_window("tab")
    other = Page(browser, address)
    other.fill("#question", "Elsewhere?")
    other.until(other.saved)
    browser.close()
    browser.switch_to.window(mine)
    browser.execute_script("window.dispatchEvent(new Event('focus'))")
    page.until(lambda: page["#question"].get_property("value") == "Elsewhere?")
    assert "another window" in page["#told"].text


def test_when_the_server_is_gone_the_page_says_what_is_not_saved(browser: Any, run: Path) -> None:
    with review_server(run, "--order", "given") as served:
        page = Page(browser, served.address)
        page.press("1")
        served.process.kill()
        served.process.wait()
        page["#remark"].send_keys("Lost?")
        page.until(lambda: page["#saved"].text == "Not saved")
        assert "does not answer" in page["#told"].text
        assert page["#remark"].get_property("value") == "Lost?"
        assert kept(run).labels.marks["1"] == "essential" and kept(run).labels.remark == ""
    left = browser.current_window_handle
    browser.switch_to.new_window("tab")
    with review_server(run, "--order", "given") as again:
        assert Page(browser, again.address).mark("1") == "essential"
    mine = browser.current_window_handle
    browser.switch_to.window(left)
    browser.close()
    browser.switch_to.window(mine)


def test_text_is_always_text(browser: Any, tmp_path: Path) -> None:
    odd = '<img src=x onerror="document.title=1"><b>bold</b> & </li>'
    case = replace(CASES[0], narrative=odd, sentences=(Sentence("<i>1</i>", odd),), answer_sentences=())
    (tmp_path / "archehr-qa.xml").write_text(official_xml([case]), encoding="utf-8")
    with review_server(tmp_path, cwd=tmp_path) as served:
        page = Page(browser, served.address)
        assert page["#narrative"].text == odd and page[".sentence .text"].text == odd
        assert page.all("main img, main b:not(.legend b)") == []
        page.fill("#question", odd)
        page.until(page.saved)
        assert browser.title.startswith("Case 101") and browser.get_log("browser") == []


def test_a_blind_case_hides_the_programs_marks_until_it_is_marked(browser: Any, run: Path) -> None:
    with review_server(run, "--blind", "1", "--order", "given") as served:
        page = Page(browser, served.address)
        assert page["#blind"].is_displayed() and not page["#harm-part"].is_displayed()
        assert {row.get_attribute("data-mark") for row in page.all(".sentence")} == {""}
        assert page.lines() == [] and not any(e.text for e in page.all(".score"))
        page.press("v")
        page.until(lambda: "Mark every note sentence first" in page["#told"].text)
        page.press("1")
        page["#mark-rest"].click()
        page.until(page.saved)
        page.press("v")
        page.until(lambda: page.lines() != [] and page["#harm-part"].is_displayed())
        assert not page["#blind"].is_displayed()
        assert page.mark("1") == "essential" and page.mark("2") == "not-relevant"
    review = kept(run)
    assert review.blind_reading is not None and review.blind_reading.essential == {"1"}


def test_an_adjudicator_sees_both_readings_and_only_cases_that_differ(browser: Any, run: Path) -> None:
    finish(run, "ann", "101", "102")
    finish(run, "bob", "102", question="Why then?", remark="Hm.")
    with review_server(run, "--adjudicate") as served:
        page = Page(browser, served.address)
        assert [o.get_attribute("value") for o in page.all("#cases option")] == ["102"]
        assert page["#question"].get_property("value") == ""
        assert "bob: Why then?" in page["#other-questions"].text and "ann: " in page["#other-questions"].text
        assert [h.text.split("\n")[0] for h in page.all(".reading h3")] == ["ann", "bob"]
        page["button[aria-label='Take this question: bob']"].click()
        page["button[aria-label='Take the answer of ann']"].click()
        page.until(lambda: page.lines() != [])
        page["#finish"].click()
        page.until(lambda: "Every case is finished" in page["#told"].text)
    labels = read_journal(run / "review/adjudicated.jsonl", [])["102"].labels
    assert labels.finished and labels.question == "Why then?" and labels.remark == "bob: Hm."


def test_the_least_confident_case_comes_first_and_says_why(browser: Any, run: Path) -> None:
    from archehr.review.order import doubt
    from tests.review.test_review_command import subject_of

    subject = subject_of(run)
    sizes = {i: doubt(subject.records[i], subject.cut).size for i in subject.cases}
    with review_server(run) as served:
        page = Page(browser, served.address)
        shown = [str(o.get_attribute("value")) for o in page.all("#cases option")]
        assert shown == sorted(sizes, key=lambda i: -sizes[i])
        assert page.case == shown[0] and page["#why"].text.startswith("Look for: ")


@contextmanager
def shown_as(browser: Any, width: int, scheme: str) -> Iterator[None]:
    """The page in a window of this width and in this colour scheme."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    yield
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("width", [360, 800, 1280])
@pytest.mark.parametrize(("scheme", "ground"), [("light", "rgb(247, 248, 249)"), ("dark", "rgb(17, 20, 24)")])
def test_nothing_runs_off_the_side_in_any_width_or_colour_scheme(
    page: Page, width: int, scheme: str, ground: str
) -> None:
    with shown_as(page.browser, width, scheme):
        page.press("]")
        script = "return [document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]"
        shown, back = page.browser.execute_script(script)
        assert shown <= width and back == ground


def test_every_control_has_a_name_that_a_screen_reader_can_speak(page: Page) -> None:
    page.press("]")
    tree = page.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = {"button", "textbox", "checkbox", "radio", "combobox", "progressbar", "group", "radiogroup"}
    nameless = [
        n for n in tree if not n["ignored"] and n["role"]["value"] in roles and not n.get("name", {}).get("value")
    ]
    assert [n["role"]["value"] for n in nameless if n["role"]["value"] != "group"] == []
    names = {n["name"]["value"] for n in tree if n.get("name", {}).get("value")}
    sentence = CASES[0].sentences[0]
    assert f"Sentence {sentence.id}: {sentence.text}" in names
    assert {"essential", "supplementary", "not relevant", "Next case", "Answer sentence 1"} <= names
    assert f"Sentence {sentence.id} supports answer sentence 1" in names


def test_the_focus_is_seen_on_every_control(page: Page) -> None:
    page["#cases"].send_keys(Keys.TAB)
    for _ in range(12):
        outline = page.browser.execute_script(
            "const e = document.activeElement, seen = e.matches('.marks input') ? e.parentElement : e;"
            "const s = getComputedStyle(seen); return [e.tagName, s.outlineStyle, parseFloat(s.outlineWidth)]"
        )
        assert outline[1] == "solid" and outline[2] >= 2, outline
        page.focused.send_keys(Keys.TAB)


def test_single_letter_keys_can_be_turned_off(page: Page) -> None:
    page["#help"].click()
    page["#keys-on"].click()
    page["#keys form button"].click()
    before = page.mark("1")
    page["#note-title"].send_keys("1")
    page.press("1", "n")
    assert page.mark("1") == before and page.case == "101"


def test_the_time_spent_on_a_case_is_in_the_journal(page: Page, run: Path) -> None:
    time.sleep(1.2)
    page.press("1")
    assert 1 <= kept(run).seconds < 20


def test_after_a_reload_everything_is_as_it_was(page: Page) -> None:
    page.press("n")
    page.until(lambda: page.case == "102")
    page.press("1", "]", "x", "m", "Kept.", Keys.ESCAPE)
    before = [row.get_attribute("data-mark") for row in page.all(".sentence")], page.cites()
    page.browser.refresh()
    page.until(lambda: page.all(".sentence") and page["#remark"].get_property("value") == "Kept.")
    assert page.case == "102"
    assert ([row.get_attribute("data-mark") for row in page.all(".sentence")], page.cites()) == before


def test_the_loop_as_one_story(browser: Any, command: Any, tmp_path: Path) -> None:
    """A run without an LM, three cases corrected on the page, exported, learned from, and compared on unseen cases."""
    assert command("run", "sample/test", "--out", "run").code == 0
    with review_server(tmp_path / "run", "--order", "given") as served:
        page = Page(browser, served.address)
        for case in read_cases("sample/test")[:3]:
            page.until(lambda case=case: page.case == case.id)  # type: ignore[misc]
            assert case.gold is not None
            for sentence, label in (case.gold.relevance or {}).items():
                if page.mark(sentence) != label:
                    page[f'.sentence[data-id="{sentence}"] input[value="{label}"]'].click()
            if page["#not-answered"].is_selected():  # declined, wrongly
                page["#not-answered"].click()
                page["#add"].click()
                page.until(lambda: page.lines() == [""])
                page["#lines textarea"].click()
                page.press("It is in the note.")
                page[f'.sentence[data-id="{min(case.gold.essential)}"] .text'].click()
            page.fill("#remark", f"Corrected {case.id}.")
            page["#finish"].click()
        page.until(lambda: page.case == "104")
    assert command("review", "run", "--export", "corrected").code == 0
    corrected = read_cases(tmp_path / "corrected")
    assert [c.gold.relevance for c in corrected if c.gold] == [
        c.gold.relevance for c in read_cases("sample/test")[:3] if c.gold
    ]
    lm = ("--lm", "knn")
    assert command("optimize", "sample/dev", "--out", "old.json", *lm, "--stage", "score").code == 0
    ran = command("optimize", "sample/dev", "corrected", "--out", "new.json", *lm, "--stage", "score")
    assert ran.code == 0, ran.err
    ran = command("compare", "sample/test", "old.json", "new.json", *lm, "--cases", "104-120", "--out", "c")
    assert ran.code == 0 and "17 cases" in ran.out and "IN SAMPLE" not in ran.out
    seen = command("compare", "sample/test", "old.json", "new.json", *lm, "--out", "all", "--keep-demo-cases")
    assert "IN SAMPLE in part: it was fitted on 3 of these 20 cases" in seen.out + seen.err
