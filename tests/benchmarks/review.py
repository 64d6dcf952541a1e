"""The review page with 1,000 cases, under kill -9, and its kappa. `python -m tests.benchmarks.review` prints how long
the page takes to open and to go to the next case, beside an empty page; what 50 kills lost; and kappa beside
scikit-learn's."""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archehr.data.case import Case, Relevance
from archehr.data.dataset import Dataset, case_sha256, read_dataset
from archehr.program.extractive_program import extractive_program
from archehr.program.run.run import run_cases
from archehr.program.settings import PRESETS
from archehr.review.agreement import agreement
from archehr.review.export.official import official_xml
from archehr.review.history import Open
from archehr.review.journal import Entry, Journal, journal_path, read_journal
from archehr.review.labels import Labels
from tests.review.review_page import Served, chromium, review_server

CASES = 1000
STEPS = 100
KILLS = 50


# ------------------------------------------------------------------------------------------------------- speed


@dataclass
class Speed:
    """Seconds: from the command to its address, from the address to the first case, from one case to the next (median
    and worst), and the ratio of opening to a page of the same server that holds nothing but its icon."""

    start: float
    open: float
    open_to_empty: float
    next_case: float
    slowest_next_case: float


def thousand_cases(folder: Path) -> Path:
    """A run folder with 1,000 cases: the sample's own, over and over, as the extractive program answered them."""
    dev = read_dataset("sample/dev")
    answered = run_cases(dev, extractive_program(PRESETS["default"]), out=folder / "run")
    cases = [replace(c, id=str(i), gold=None) for i, c in enumerate(dev.cases * (CASES // len(dev.cases)), 1)]
    (folder / "archehr-qa.xml").write_text(official_xml(cases), encoding="utf-8")
    data = read_dataset(folder)
    lines = [r.model_copy(update={"case_id": c.id}) for r, c in zip(answered.records * CASES, cases, strict=False)]
    journal = "".join(json.dumps(r.model_dump(mode="json"), ensure_ascii=False) + "\n" for r in lines)
    (folder / "run/predictions.jsonl").write_text(journal, encoding="utf-8")
    manifest = json.loads((folder / "run/run.json").read_text())
    manifest |= {"data": str(folder), "data_sha256": Dataset.of(data).sha256}
    (folder / "run/run.json").write_text(json.dumps(manifest))
    return folder / "run"


OPENED = "return document.title.startsWith('Case ') ? performance.getEntriesByType('resource').length : 0"
# From the key to the next frame that shows another case.
STEP = """
const done = arguments[0], before = location.hash, begun = performance.now();
document.getElementById('next').click();
const look = () => location.hash !== before && document.title === `Case ${location.hash.slice(1)} · archehr review`
  ? requestAnimationFrame(() => done(performance.now() - begun)) : setTimeout(look, 1);
look();
"""


def speed(run: Path, profile: Path) -> Speed:
    """Open the page of `run` and walk through its cases."""
    begun = time.monotonic()
    with review_server(run) as served:
        started = time.monotonic() - begun
        with chromium(profile) as browser:
            return _walked(browser, served, started)


def _walked(browser: Any, served: Served, started: float) -> Speed:
    empty = [_opening(browser, served.address + "icon.svg", "return 1") for _ in range(5)]
    opening = [_opening(browser, served.address, OPENED) for _ in range(5)]
    steps = [browser.execute_async_script(STEP) / 1000 for _ in range(STEPS)]
    opened = statistics.median(opening)
    return Speed(started, opened, opened / statistics.median(empty), statistics.median(steps), max(steps))


def _opening(browser: Any, address: str, opened: str) -> float:
    browser.get("about:blank")
    begun = time.monotonic()
    browser.get(address)
    while not browser.execute_script(opened):
        time.sleep(0.005)
    return time.monotonic() - begun


# ------------------------------------------------------------------------------------------------------- kills


@dataclass
class Kills:
    """How many kills, how many actions were acknowledged before them, and how many of those were gone afterwards."""

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    torn: int = 0


def kill_at_random(run: Path, seed: int = 0) -> Kills:
    """Mark sentences as fast as the server takes them, and kill it at a random moment, KILLS times over."""
    draw, report = random.Random(seed), Kills()
    path = journal_path(run, "reviewer")
    state: dict[str, Any] = {}
    while report.kills < KILLS:
        with review_server(run) as served:
            threading.Timer(draw.uniform(0.05, 0.5), served.process.kill).start()
            acknowledged = _click(served, draw)
            served.process.wait()
        notices: list[str] = []
        review = read_journal(path, notices).get("1") if path.exists() else None
        report.kills += 1
        report.torn += len(notices)
        report.acknowledged += len(acknowledged)
        marks = review.labels.marks if review else {}
        state |= dict(acknowledged[:-1])
        # The action under way when the server died may be on disk without having been acknowledged.
        unsure = {acknowledged[-1][0]} if acknowledged and acknowledged[-1][1] == "?" else set()
        report.lost += sum(marks.get(i) != value for i, value in state.items() if i not in unsure)
        state |= {i: marks.get(i) for i in unsure}
        report.acknowledged -= len(unsure)
    return report


def _click(served: Served, draw: random.Random) -> list[tuple[str, str]]:
    """(sentence, mark) of every action in order; the last, which got no answer, is marked "?"."""
    done: list[tuple[str, str]] = []
    version = None
    while True:
        sentence, value = str(draw.randint(1, 20)), str(draw.choice(list(Relevance)))
        try:
            if version is None:
                version = json.load(urllib.request.urlopen(f"{served.address}case?id=1", timeout=5))["state"]["version"]
            version = _mark(served, version, sentence, value)
        except OSError:
            return [*done, (sentence, "?")]
        done.append((sentence, value))


def _mark(served: Served, version: int, sentence: str, value: str) -> int:
    steps = [{"do": "mark", "sentence": sentence, "value": value}]
    body = json.dumps({"case": "1", "version": version, "steps": steps}).encode()
    origin = served.address.rsplit("/", 2)[0]
    headers = {"content-type": "application/json", "origin": origin}
    request = urllib.request.Request(f"{served.address}act", body, headers)
    return int(json.load(urllib.request.urlopen(request, timeout=5))["state"]["version"])


# ------------------------------------------------------------------------------------------------------- kappa


def kappas(folder: Path, seed: int = 0) -> tuple[float | None, float]:
    """Kappa of two journals of scripted marks, as review tells it and as scikit-learn does."""
    from sklearn.metrics import cohen_kappa_score

    draw, flat, reviews = random.Random(seed), [], {}
    cases = read_dataset("sample/test").cases
    for name in ("ann", "bob"):
        marks = {c.id: {s.id: draw.choice(list(Relevance)) for s in c.sentences} for c in cases}
        flat.append([str(m) for by_sentence in marks.values() for m in by_sentence.values()])
        path = journal_path(folder, name)
        with Journal(path) as journal:
            journal.append([_opened(case, marks[case.id]) for case in cases])
        reviews[name] = read_journal(path, [])
    return agreement("ann", "bob", reviews).kappa, float(cohen_kappa_score(*flat))


def _opened(case: Case, marks: dict[str, Relevance]) -> Entry:
    start = Labels(question="Why?", marks=dict(marks), finished=True)
    return Entry(at="2026-01-01", case=case.id, step=Open(text=case_sha256([case])[0], start=start))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        made = thousand_cases(Path(scratch))
        print(speed(made, Path(scratch) / "profile"))
        print(kill_at_random(made))
        ours, theirs = kappas(Path(scratch) / "kappa")
        print(f"kappa {ours}, scikit-learn {theirs}, equal {ours == theirs}")
