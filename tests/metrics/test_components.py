"""A metric that another package adds appears wherever scores do; one that is at fault is named, never dropped."""

import csv
import importlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from archehr.data.case import Case, DataError, Gold, Relevance
from archehr.metrics.components import OFFICIAL, SUBTASKS, Component, added, case_by_case, components, headline
from archehr.metrics.score import score_file, score_run, score_submission

# As in CONTRIBUTING.md: the module and the entry point of a package outside this repository.
MODULE = '''\
import re

from archehr.metrics.components import Component, case_by_case


def numbers_kept(prediction: str, key) -> float:
    """The share of the clinician's numbers (doses, dates, values) that the answer gives too."""
    wanted, given = (set(re.findall(r"[0-9]+", text)) for text in (key.reference, prediction))
    return len(wanted & given) / len(wanted) if wanted else 1.0


component = Component("numbers_kept", case_by_case(numbers_kept), subtasks=(3,))
'''
ENTRY_POINT = """\
[archehr.metrics]
numbers_kept = my_numbers:component
"""


def case(case_id, answer):
    gold = Gold(relevance={"1": Relevance.ESSENTIAL, "2": Relevance.NOT_RELEVANT}, answer=answer)
    return Case(case_id, narrative="How much was given?", clinician_question="What was the dose?", gold=gold)


CASES = [case("1", "He was given 40 mg on day 2 of 7."), case("2", "No dose was given to him.")]
ANSWERS = [{"case_id": "1", "prediction": "He got 40 mg."}, {"case_id": "2", "prediction": "None was given to him."}]
KEPT = pytest.approx(100 * (1 / 3 + 1) / 2)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """`package(module, entry_points)` installs a package, as pip lays it out, for this test."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site")

    def install(module=MODULE, entry_points=ENTRY_POINT, name="my_numbers"):
        info = tmp_path / "site" / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        (info.parent / f"{name}.py").write_text(module)
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        added.cache_clear()
        return info.parent

    yield install
    added.cache_clear()


def adding(package, body, name="odd", subtasks="(3,)", **also):
    """Install a package whose component `name` has this `compute`."""
    package(
        "from archehr.metrics.components import Component, case_by_case\n"
        "from archehr.metrics.scorers.neural import Missing\n"
        f"def compute(batch):\n    {body}\n"
        f"component = Component({name!r}, compute, {subtasks}, **{also})\n",
        "[archehr.metrics]\nodd = odd_package:component\n",
        "odd_package",
    )


def test_the_example_fits_in_twenty_lines():
    assert len((MODULE + ENTRY_POINT).splitlines()) <= 20


def test_an_added_metric_is_scored_with_an_interval_and_stays_out_of_the_overall(package):
    before = score_submission(ANSWERS, CASES, 3)
    package()
    after = score_submission(ANSWERS, CASES, 3)
    assert after.leaderboard["numbers_kept"] == KEPT
    assert after.intervals["numbers_kept"].low <= after.intervals["numbers_kept"].high
    assert after.mean == before.mean and after.mean_of == before.mean_of == ["bleu", "rougeLsum", "sari"]
    assert {k: v for k, v in after.leaderboard.items() if k != "numbers_kept"} == before.leaderboard
    assert [r[0] for r in after.rows() if r[1] != "-"].count("numbers_kept") == 1
    assert after.case_scores()["1"]["numbers_kept"] == pytest.approx(100 / 3)
    assert "numbers_kept" not in score_submission([{**e, "prediction": []} for e in ANSWERS], CASES, 2).leaderboard


def test_an_added_metric_reaches_score_run_and_every_form_of_compare(package, command):
    package()
    ran = command("compare", "sample/test", "extractive", "extractive", "--out", "c")
    assert ran.code == 0 and "ST3 numbers_kept" in ran.out
    submission = "c/runs/extractive/submission_subtask_3.json"
    scored = json.loads(command("score", submission, "--subtask", 3, "--data", "sample/test", "--json").out)
    value = scored["leaderboard"]["numbers_kept"]
    assert 0 < value < 100
    assert f"{value:.2f}" in command("score", submission, "--subtask", 3, "--data", "sample/test").out
    run = json.loads(Path("c/runs/extractive/scores.json").read_text())["subtask_3"]
    assert run["leaderboard"]["numbers_kept"] == value == run["intervals"]["numbers_kept"]["value"]
    assert "numbers kept" in Path("c/runs/extractive/report.html").read_text()
    with Path("c/comparison.csv").open() as stream:
        first, second = csv.DictReader(stream)
    assert float(first["st3_numbers_kept_value"]) == value and float(second["st3_numbers_kept_difference_value"]) == 0
    for name in ("comparison.md", "comparison.html"):
        text = Path("c", name).read_text()
        assert "ST3 numbers_kept" in text and f"{value:.1f} (" in text, name


def test_an_added_metric_is_no_official_score(package, command):
    package()
    Path("s.json").write_text(json.dumps([{"case_id": c, "prediction": "He was given 40 mg."} for c in ("1", "2")]))
    key = [{"case_id": c, "clinician_answer_without_citations": "40 mg"} for c in ("1", "2")]
    Path("archehr-qa_key.json").write_text(json.dumps(key))
    xml = "".join(f'<case id="{c}"><patient_narrative>Why?</patient_narrative></case>' for c in ("1", "2"))
    Path("archehr-qa.xml").write_text(f"<annotations>{xml}</annotations>")
    result = score_file("s.json", 3, data=".", as_official=True)
    assert "numbers_kept" not in result.leaderboard and "bleu" in result.leaderboard


def test_the_command_of_another_process_finds_it_too(package, tmp_path):
    site = package()
    (tmp_path / "s.json").write_text(json.dumps(ANSWERS))
    key = [{"case_id": c.id, "clinician_answer_without_citations": c.gold.answer} for c in CASES]
    (tmp_path / "key.json").write_text(json.dumps(key))
    ran = subprocess.run(
        [sys.executable, "-m", "archehr", "score", "s.json", "--subtask", "3", "--key", "key.json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert any(line.split()[:2] == ["numbers_kept", "66.67"] for line in ran.stdout.splitlines())


@pytest.mark.parametrize(("subtask", "prediction"), [(2, ["1"]), (4, [{"answer_id": "1", "evidence_id": ["1"]}])])
def test_subtasks_that_count_take_components_too(package, subtask, prediction):
    adding(package, "return [float(len(p)) for p in batch.predictions], {}", "size", (2, 4), scale=1.0)
    citing = [{"case_id": "1", "clinician_answer_sentences": [{"id": "1", "text": "", "citations": "1"}]}]
    citing[0] |= {"answers": [{"sentence_id": i, "relevance": "essential"} for i in ("1", "2")]}
    Path("key.json").write_text(json.dumps(citing))
    Path("s.json").write_text(json.dumps([{"case_id": "1", "prediction": prediction}]))
    result = score_file("s.json", subtask, key="key.json")
    assert result.leaderboard["size"] == 1 and result.headline == SUBTASKS[subtask].headline[0]
    assert result.mean is None and not result.mean_of


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise Missing('needs the extra, pip install odd')", "needs the extra, pip install odd"),
        ("raise ValueError('secret text of the note')", "failed with ValueError"),
        ("return [1.0], {}", "no finite number for every case"),
        ("return [float('nan')] * 2, {}", "no finite number for every case"),
        ("return None", "failed with TypeError"),
    ],
)
def test_what_cannot_be_computed_is_named_and_never_0(package, body, said, capsys):
    adding(package, body)
    result = score_submission(ANSWERS, CASES, 3)
    assert said in result.missing["odd"] and "secret" not in result.missing["odd"]
    assert "odd" not in result.leaderboard and "odd" not in result.intervals
    assert ("odd", "-") in [row[:2] for row in result.rows()]
    assert score_run({3: ANSWERS}, CASES)["subtask_3"]["missing"]["odd"] == result.missing["odd"]


def test_an_overall_with_an_added_component_is_only_had_with_it(package):
    adding(package, "return [0.5] * len(batch.predictions), {}", "half", in_overall=True)
    result = score_submission(ANSWERS, CASES, 3)
    assert result.mean_of == ["bleu", "rougeLsum", "sari", "half"]
    assert result.mean == pytest.approx(sum(result.leaderboard[name] for name in result.mean_of) / 4)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("import nothing_of_that_name", "cannot be loaded"),
        ("component = 5", "no archehr.metrics.components.Component"),
        ("from archehr.metrics.components import *\ncomponent = Component('x', None, (7,))", "its subtasks"),
        (
            "from archehr.metrics.components import *\ncomponent = Component('x', None, (2,), in_overall=True)",
            "in_overall",
        ),
        ("from archehr.metrics.components import *\ncomponent = Component('sari', None, (3,))", "that name already"),
        (
            "from archehr.metrics.components import *\ncomponent = Component('micro_f1', None, (4,))",
            "that name already",
        ),
    ],
)
def test_a_component_that_cannot_be_used_is_one_line_that_names_its_package(package, command, module, said):
    package(module)
    Path("s.json").write_text(json.dumps(ANSWERS))
    Path("key.json").write_text(json.dumps([{"case_id": "1", "clinician_answer_without_citations": "40 mg"}]))
    ran = command("score", "s.json", "--subtask", 3, "--key", "key.json", "--cases", "1")
    assert ran.code == 2 and len(ran.err.splitlines()) == 1
    assert said in ran.err and "my_numbers" in ran.err


def test_two_packages_with_one_name_are_refused(package):
    package()
    package(name="your_numbers", entry_points=ENTRY_POINT.replace("my_", "your_"))
    with pytest.raises(DataError, match="that name already"):
        components(3)


def test_every_subtask_has_one_headline_among_its_scores():
    names = {1: [c.name for c in components(1)], 3: [c.name for c in components(3)]}
    assert headline(1, ["rougeLsum", "mean"]) == "mean" and headline(3, ["mean", "overall_score"]) == "overall_score"
    assert headline(2, ["overall_score", "strict_micro_f1"]) == "strict_micro_f1" and headline(4, ["micro_f1"])
    for subtask, found in names.items():
        official = [c.name for c in OFFICIAL if c.in_overall and subtask in c.subtasks]
        assert sorted(SUBTASKS[subtask].adds_up) == sorted(official) and set(official) < set(found)


def test_case_scores_are_those_of_the_case_alone():
    picks = [{"case_id": "1", "prediction": ["1", "2"]}, {"case_id": "2", "prediction": []}]
    scores = score_submission(picks, CASES, 2).as_json()["case_scores"]
    assert scores["1"] == pytest.approx(
        {"strict_micro_f1": 200 / 3, "strict_micro_precision": 50, "strict_micro_recall": 100}
    )
    assert scores["2"]["strict_micro_f1"] == 0
    for one in CASES:
        alone = score_submission([p for p in picks if p["case_id"] == one.id], [one], 2)
        assert scores[one.id]["strict_micro_f1"] == alone.leaderboard["strict_micro_f1"]
    texts = score_submission(ANSWERS, CASES, 3)
    assert texts.case_scores()["1"]["mean"] == score_submission(ANSWERS[:1], CASES[:1], 3).mean
    assert not any(math.isnan(v) for found in texts.case_scores().values() for v in found.values())


def test_a_component_of_one_case_may_be_unscorable():
    from archehr.metrics.components import Batch, Resources, compute
    from archehr.metrics.scorers.text import Unscorable

    def metric(prediction, key):
        if not prediction:
            raise Unscorable("nothing to score")
        return 1.0

    batch = Batch(["a", ""], [None, None], Resources())
    assert compute(Component("x", case_by_case(metric), (3,)), batch) == ([1.0, 0.0], {1: "nothing to score"})
