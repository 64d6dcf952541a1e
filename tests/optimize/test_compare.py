"""Comparisons: scores are the official ones, differences are right, words are earned, and unfairness is shouted."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archehr.data.case import Case, DataError
from archehr.data.dataset import case_sha256, data_sha256, read_cases
from archehr.metrics.intervals import RESAMPLES, SEED, Difference
from archehr.optimize.compare.cases import case_differences
from archehr.optimize.compare.compare import FEWEST_CASES, compare, verdict
from archehr.optimize.compare.html import write_page
from archehr.optimize.compare.prompts import prompt_differences
from archehr.optimize.compare.tables import frame, markdown, records_json
from archehr.program.prompts.program_file import load_program
from archehr.program.prompts.provenance import Provenance
from archehr.program.run.records import fitted_cases
from archehr.program.stages.registry import STAGES
from tests.conftest import Ran
from tests.finished_runs import TEST, run_of

Command = Callable[..., Ran]


def essential(case: Case) -> list[str]:
    assert case.gold is not None
    return [s.id for s in case.sentences if s.id in case.gold.essential]


def outputs(comparison: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What each way of showing a comparison says, line breaks taken out."""
    from archehr.terminal.compare_display import print_comparison

    write_page(comparison, tmp_path / "c.html")
    capsys.readouterr()
    print_comparison(comparison)
    shown = {
        "terminal": capsys.readouterr().out,
        "markdown": markdown(comparison),
        "csv": frame(comparison).to_csv(index=False),
        "json": json.dumps(records_json(comparison)),
        "html": (tmp_path / "c.html").read_text(),
    }
    return {name: " ".join(text.split()) for name, text in shown.items()}


def independent_f1(pairs: Sequence[tuple[set[str], set[str]]]) -> float:
    tp = sum(len(p & g) for p, g in pairs)
    predicted, gold = sum(len(p) for p, _ in pairs), sum(len(g) for _, g in pairs)
    precision, recall = tp / predicted if predicted else 0.0, tp / gold if gold else 0.0
    return 200 * precision * recall / (precision + recall) if precision + recall else 0.0


def test_the_paired_difference_is_that_of_an_independent_computation() -> None:
    ours, theirs = run_of("a", evidence=lambda c: [s.id for s in c.sentences[2:9]]), run_of("b")
    found = compare(TEST, [theirs, ours]).row("a").difference(2)
    assert found is not None
    gold = [set(essential(c)) for c in TEST]
    a, b = ([set(run.records[c.id].evidence or ()) for c in TEST] for run in (ours, theirs))
    draws = np.random.default_rng(SEED).integers(0, len(TEST), size=(RESAMPLES, len(TEST)))
    differences = [
        independent_f1([(a[i], gold[i]) for i in draw]) - independent_f1([(b[i], gold[i]) for i in draw])
        for draw in draws.tolist()
    ]
    everything = range(len(TEST))
    value = independent_f1([(a[i], gold[i]) for i in everything]) - independent_f1(
        [(b[i], gold[i]) for i in everything]
    )
    assert found.value == pytest.approx(value, abs=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(differences, (2.5, 97.5))), abs=1e-6)


def test_a_program_compared_with_itself_is_not_shown_to_differ() -> None:
    row = compare(TEST, [run_of("a"), replace(run_of("a"), label="a (2)")]).row("a (2)")
    for subtask in (1, 2, 3, 4):
        difference = row.difference(subtask)
        assert difference is not None and difference.value == difference.low == difference.high == 0
        assert row.verdict(subtask) == "not shown"


@pytest.mark.parametrize(
    ("low", "high", "cases", "word"),
    [
        (0.1, 5, 20, "better"),
        (-5, -0.1, 20, "worse"),
        (-1, 5, 20, "not shown"),
        (0, 5, 20, "not shown"),
        (0.1, 5, FEWEST_CASES, "better"),
        (0.1, 5, FEWEST_CASES - 1, "not shown"),
        (-5, -0.1, 1, "not shown"),
    ],
)
def test_a_word_is_earned_by_an_interval_without_0_over_enough_cases(
    low: float, high: float, cases: int, word: str
) -> None:
    assert verdict(Difference((low + high) / 2, low, high, 0.0), cases) == word


def test_better_and_worse_are_said_of_programs_that_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = run_of("some", evidence=lambda c: [s.id for s in c.sentences])
    runs = [some, run_of("perfect", evidence=essential), run_of("none", evidence=lambda c: [])]
    compared = compare(TEST, runs)
    assert [compared.row(n).verdict(2) for n in ("some", "perfect", "none")] == ["", "better", "worse"]
    assert compare(TEST, runs, baseline="perfect").row("some").verdict(2) == "worse"
    shown = outputs(compared, tmp_path, capsys)  # csv and json have a column for it
    assert all("differences are from some" in shown[name] for name in ("terminal", "markdown", "html"))


def test_every_baseline_is_a_row_or_a_program_with_the_same_lm() -> None:
    runs = [
        replace(run_of(program, lm={"model": lm}), label=f"{program}, {lm}") for program in "pq" for lm in ("x", "y")
    ]
    runs.append(replace(run_of("extractive", lm=None), label="extractive"))
    rows = {r.label: r.against for r in compare(TEST, runs).rows}
    assert rows == {"p, x": None, "p, y": None, "q, x": "p, x", "q, y": "p, y", "extractive": "p, x"}
    assert (
        compare(TEST, runs).against == "differences are of q, x from p, x; of q, y from p, y; of extractive from p, x"
    )
    assert compare(TEST, runs, baseline="q").row("p, y").against == "q, y"
    assert compare(TEST, runs, baseline="p, x").row("p, y").against == "p, x"
    assert compare(TEST, runs[:2]).row("p, y").against == "p, x"
    with pytest.raises(DataError, match=r"--baseline r: .*give one of p, x; p, y"):
        compare(TEST, runs, baseline="r")


def test_a_program_whose_demos_are_test_cases_is_flagged_everywhere_and_they_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demos = {
        "score": [STAGES["score"].taught().demo(TEST[3])],
        "reformulate": [STAGES["reformulate"].taught().demo(TEST[5])],
    }
    runs = [run_of("plain"), run_of("leaky", demos=demos)]
    compared = compare(TEST, runs)
    ids = [TEST[3].id, TEST[5].id]
    assert list(compared.excluded) == ids and len(compared.cases) == len(TEST) - 2
    for row in compared.rows:
        assert set(row.scores[2].table.case_ids) == {c.id for c in TEST} - set(ids)
    for name, text in outputs(compared, tmp_path, capsys).items():
        assert f"DEMOS ARE TEST CASES: {', '.join(ids)} (left out for every program)" in text, name

    kept = compare(TEST, runs, keep_demo_cases=True)
    assert len(kept.cases) == len(TEST) and not kept.excluded
    for name, text in outputs(kept, tmp_path, capsys).items():
        assert "STILL COUNTED" in text, name

    all_leak = compare(TEST[3:4], runs)
    assert [c.id for c in all_leak.cases] == [TEST[3].id] and "STILL COUNTED" in all_leak.warnings[0]


def test_demos_are_known_by_their_text_and_by_ids_only_of_the_same_data() -> None:
    dev = read_cases("sample/dev")
    same_ids = [replace(c, id=d.id) for c, d in zip(TEST, dev, strict=True)]
    demos = {"generate": [STAGES["generate"].taught().demo(dev[0])]}
    elsewhere = run_of("a", same_ids, demos=demos, provenance={"demo_case_ids": {"generate": ["dev 1 (labelled)"]}})
    assert compare(same_ids, [elsewhere]).excluded == {}
    named = run_of("a", dev, provenance={"demo_case_ids": {"reformulate": ["sample/dev 2"]}}, data="sample/dev")
    assert list(compare(dev, [named]).excluded) == ["2"]
    unknown = replace(run_of("a"), file=None, unknown="the program p.json has changed since its run")
    assert compare(TEST, [unknown]).rows[0].flags[0].startswith("DEMOS UNKNOWN")


def test_in_sample_comparisons_are_labelled_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted = run_of("fitted", provenance={"data_sha256": data_sha256(TEST), "data": "sample/test"})
    for name, text in outputs(compare(TEST, [run_of("plain"), fitted]), tmp_path, capsys).items():
        assert "fitted: IN SAMPLE" in text, name
    part = run_of("part", provenance={"data_sha256": data_sha256(TEST[:9]), "data": "sample/test"})
    assert compare(TEST, [part]).rows[0].flags[0].startswith("PERHAPS IN SAMPLE")
    other = run_of("other", provenance={"data_sha256": "0" * 64, "data": "sample/dev"})
    assert not compare(TEST, [other]).rows[0].flags


def test_cases_fitted_on_are_known_one_by_one_whatever_the_data_is_called() -> None:
    made = Provenance(data_sha256=data_sha256(TEST[:9]), case_sha256=case_sha256(TEST[:9]), data="half")
    part = run_of("part", provenance=made, in_sample=True)
    assert fitted_cases(made, TEST) == [c.id for c in TEST[:9]]
    assert compare(TEST, [part]).rows[0].flags[0].startswith("IN SAMPLE in part: it was fitted on 9 of these 20 cases")
    assert compare(TEST[2:8], [part]).rows[0].flags[0].startswith("IN SAMPLE: it was fitted on these cases")
    assert not compare(TEST[9:], [part]).rows[0].flags
    shown = run_of("shown", provenance=made, demos={"score": [STAGES["score"].taught().demo(TEST[0])]})
    assert compare(TEST, [shown]).rows[0].flags[0].startswith("IN SAMPLE in part: it was fitted on 8 of these 19 cases")


def test_runs_of_another_task_are_refused() -> None:
    with pytest.raises(DataError, match="runs/b: has no answer to case 120; finish the run"):
        compare(TEST, [run_of("a"), run_of("b", TEST[:-1])])
    with pytest.raises(DataError, match="runs/b and runs/a: runs on another question"):
        compare(TEST, [run_of("a"), run_of("b", question="given")])
    with pytest.raises(DataError, match="runs/b and runs/a: runs on another data"):
        compare(TEST, [run_of("a"), run_of("b", data_sha256="0")])
    with pytest.raises(DataError, match="nothing to compare"):
        compare(TEST, [])


def test_settings_that_differ_and_failures_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failing = run_of("b", settings={"cut": 4})
    failing.records["101"].notices.append({"stage": "score", "kind": "lm_failed", "detail": ""})
    compared = compare(TEST, [run_of("a"), failing])
    assert compared.setup == {"settings.cut": ["5", "4"]}
    shown = outputs(compared, tmp_path, capsys)
    assert "not the same in all a b cut 5 4" in shown["terminal"] and "| settings.cut | 5 | 4 |" in shown["markdown"]
    for name, text in shown.items():
        assert "LM FAILED on 1 of 20 cases" in text, name


def test_what_it_took_is_counted_over_the_compared_cases() -> None:
    took = compare(TEST[:4], [run_of("a")]).rows[0].took
    assert (took.calls, took.tokens_in, took.tokens_out, took.seconds) == (20, 400, 40, 3.5)
    assert took.cost == pytest.approx(0.04)
    assert any(note.startswith("seconds are of whole runs") for note in compare(TEST[:4], [run_of("a")]).notes)
    assert not any(note.startswith("seconds") for note in compare(TEST, [run_of("a")]).notes)
    unpriced = run_of("a")
    unpriced.records["101"].usage["cost"] = None
    assert compare(TEST[:4], [unpriced]).rows[0].took.cost is None


def test_replies_of_the_cache_whose_tokens_nobody_kept_are_told() -> None:
    earlier = run_of("a")  # of a version that kept none
    earlier.records["101"].usage["cache_hits"] = 2
    compared = compare(TEST[:4], [earlier])
    took = compared.rows[0].took
    assert (took.calls, took.cost, took.spent) == (22, None, pytest.approx(0.04))
    assert any("a: 20 of 22 calls, $0.0400, the tokens of 2 replies are not known" in note for note in compared.notes)


def test_missing_components_are_said_and_the_mean_is_of_what_there_is() -> None:
    compared = compare(TEST, [run_of("a"), run_of("b")])
    assert "ST3 is the mean of bleu, rougeLsum, sari only; missing: bertscore, alignscore, medcon" in compared.notes
    row = compared.row("b")
    assert row.main(3) is not None and row.scores[3].mean == row.main(3)[1].value


def test_cases_are_sorted_by_difference_and_say_what_was_gained_and_lost() -> None:
    def changed(case: Case) -> list[str]:
        ids = [s.id for s in case.sentences]
        return essential(case) if case.id == "107" else ids[1:4] if case.id == "109" else ids[:3]

    found = case_differences(compare(TEST, [run_of("a"), run_of("b", evidence=changed)]))
    assert found[0].case.id == "107" and found[0].size > found[1].size >= found[2].size == 0
    by_id = {c.case.id: c.answers[1] for c in found}
    assert list(by_id["109"].evidence_gained) == ["4"] and list(by_id["109"].evidence_lost) == ["1"]
    answers = [a.id for a in next(c for c in TEST if c.id == "109").answer_sentences]
    assert list(by_id["109"].links_gained) == [(i, "2") for i in answers]
    assert list(by_id["109"].links_lost) == [(i, "1") for i in answers]
    assert [c.case.id for c in found if c.differs] == ["107", "109"]


def test_prompts_are_compared_line_by_line_and_demo_by_demo() -> None:
    zero, hand = (load_program(n) for n in ("zero_shot", "default"))
    predict = hand.score.predict
    predict.signature = predict.signature.with_instructions(predict.signature.instructions + "\nAnswer in order.")
    runs = [run_of("zero", program=zero), run_of("hand", program=hand, provenance=hand.provenance)]
    found = prompt_differences(compare(TEST, runs))
    score, reformulate = found["score"][1], found["reformulate"][1]
    assert [line for sign, line in score.instructions if sign != " "] == ["Answer in order."]
    assert not score.same_instructions and reformulate.same_instructions
    assert [(d.source, d.shared) for d in reformulate.demos] == [(f"sample/dev {i}", False) for i in (2, 5, 15)]
    assert reformulate.tokens > found["reformulate"][0].tokens
    back = prompt_differences(compare(TEST, list(reversed(runs))))["reformulate"][1]
    assert back.demos_dropped == 3 and not back.demos


def test_the_tables_hold_what_archehr_score_says_to_the_last_digit(command: Command) -> None:
    ran = command("compare", "sample/test", "extractive", "extractive", "--out", "c")
    assert ran.code == 0 and "extractive (2)" in ran.out
    with Path("c/comparison.csv").open() as stream:
        first, second = csv.DictReader(stream)
    assert first["against"] == "" and second["against"] == "extractive"
    names = {1: "mean", 2: "strict_micro_f1", 3: "mean", 4: "micro_f1"}
    for subtask, name in names.items():
        path = f"c/runs/extractive/submission_subtask_{subtask}.json"
        scored = json.loads(command("score", path, "--subtask", subtask, "--data", "sample/test", "--json").out)
        official = scored["mean"] if name == "mean" else scored["leaderboard"][name]
        assert first[f"st{subtask}_score"] == name
        assert float(first[f"st{subtask}_value"]) == official
        for end in ("low", "high"):
            assert float(first[f"st{subtask}_{end}"]) == scored["intervals"][name][end]
        for case_id, scores in scored["case_scores"].items():
            assert float(first[f"st{subtask}_case_{case_id}"]) == scores[name]
        components = {n: v for n, v in scored["leaderboard"].items() if f"st{subtask}_{n}_value" in first}
        assert set(components) >= ({"rouge1", "rougeLsum"} if subtask in (1, 3) else set())
        for component, value in components.items():
            assert float(first[f"st{subtask}_{component}_value"]) == value
            assert float(second[f"st{subtask}_{component}_difference_value"]) == 0
        assert second[f"st{subtask}_verdict"] == "not shown" and float(second[f"st{subtask}_difference_value"]) == 0


def test_without_a_key_the_answers_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = [Case(c.id, narrative=c.narrative) for c in TEST]
    compared = compare(bare, [run_of("a", bare, evidence=lambda c: []), run_of("b", bare, evidence=lambda c: [])])
    assert not any(row.scores for row in compared.rows)
    for name, text in outputs(compared, tmp_path, capsys).items():
        assert "the data has no key, so nothing is scored" in text, name
