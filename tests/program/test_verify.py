"""An answer checked before it is shown: what it cites must hold its numbers, dates and names, and support it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import dspy
import pytest
from dspy import lm15
from hypothesis import given
from hypothesis import strategies as st

from archehr.data.dataset import read_cases
from archehr.program.declining import NOT_ANSWERED
from archehr.program.extractive.verify import ExtractiveVerify
from archehr.program.extractive_program import extractive_program
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program, save_program_file, to_file
from archehr.program.run.run import run_cases
from archehr.program.settings import PipelineSettings
from archehr.program.stages.verify.facts import unfounded
from archehr.program.stages.verify.verify import check_facts, check_verdicts
from archehr.program.types import Link, Verdict
from tests.conftest import Ran
from tests.fake_lm import fake_lm
from tests.planted import Planted, every_number, planted, true_sentences
from tests.scripted_stages import gold_lm, stage_of

CASES = [*read_cases("sample/dev"), *read_cases("sample/test")]
CASE = CASES[0]
IDS = [s.id for s in CASE.sentences]


@pytest.mark.parametrize(
    ("sentence", "cited"),
    [
        ("She took 10 mg daily.", "Took 10mg qd."),
        ("It was given twice a day.", "2 times per day"),
        ("It was given twice daily.", "metoprolol 25 mg BID"),
        ("It starts on June 3.", "start 6/3"),
        ("It starts on June 3.", "start [**2151-6-3**]"),
        ("Recovery takes two years.", "may take 24 months"),
        ("About 3 liters were drained.", "3.2 L removed"),
        ("Platelets were below 200.", "Plt 196"),
        ("Six to twelve months passed.", "after 6-12 months"),
        ("The dose was 1,200 units.", "1200 U given"),
        ("One of the arteries was blocked.", "LAD occluded"),
        ("The L5 nerve was pressed.", "root compressed"),
        ("It fell to 0.5 mg.", "lowered to .5 mg"),
        ("In May it may stop.", "till 5/20"),
        ("It is given for six weeks.", "day 1 = [**2118-3-3**], through [**2118-4-14**]"),
        ("She woke within about two days.", "stopped [**1-18**], awake [**1-20**]"),
        ("It took three months.", "started 3/3, stopped 6/3"),
        ("A week passed.", "from Dec 30 to [**1-6**]"),
        ("Her sodium rose by 15 within 16 hours.", "Na 106. Na 121 at hour 16."),
        ("Her creatinine fell by 1.2.", "Cr 2.4 -> 1.2"),
        ("The dose was raised by 20 mg.", "increased 20 mg daily"),
        ("Scans are due at one, three and twelve months.", "CT at 1, 3 and 12 mo"),
        ("Both 5 and 5 were read.", "read 5, then 5"),
        ("Heparin was begun.", "UFH gtt begun"),
        ("Hydrochlorothiazide was stopped.", "HCTZ held"),
        ("Furosemide was given.", "Lasix 40 IV"),
        ("They gave Lasix for swelling.", "furosemide for edema"),
    ],
)
def test_formats_and_units_do_not_make_a_fact_unfounded(sentence: str, cited: str) -> None:
    assert unfounded(sentence, [cited], [cited]) == []


@pytest.mark.parametrize(
    ("sentence", "cited", "told"),
    [
        ("She took 15 mg daily.", "Took 10mg qd for 15 days.", ["15"]),
        ("It was given three times a day.", "given BID", ["three"]),
        ("It starts on July 3.", "start 6/3", ["July"]),
        ("It starts on June 4.", "start 6/3", ["4"]),
        ("About 461 mL were drained.", "460 mL removed", ["461"]),
        ("Warfarin was stopped.", "metoprolol was held", ["Warfarin"]),
        ("It is given for six weeks.", "from [**3-3**] through [**4-28**]", ["six"]),
        ("Her sodium rose by 16.", "Na 106. Na 121 at hour 16.", ["16"]),
        ("It is due at four to four months.", "in 3-4 months", ["four"]),
        ("Scans are due at one, twelve and twelve months.", "CT at 1, 3 and 12 mo", ["twelve"]),
        ("It may take over ten months.", "within 12 months", ["ten"]),
        ("Furosemide was given.", "HCTZ 25", ["Furosemide"]),
        ("She was seen by Doctor Miller.", "seen by cardiology", ["Doctor", "Miller"]),
    ],
)
def test_what_the_cited_sentences_do_not_hold_is_named(sentence: str, cited: str, told: list[str]) -> None:
    assert unfounded(sentence, [cited], [cited]) == told


def test_a_name_may_stand_elsewhere_in_the_note_but_a_number_may_not() -> None:
    assert unfounded("Warfarin 5 mg was stopped.", ["held for bleeding"], ["warfarin 5 mg daily"]) == ["5"]


def flagged(made: Iterable[Planted]) -> float:
    found = [bool(unfounded(p.text, p.cited_texts, [s.text for s in p.case.sentences])) for p in made]
    return sum(found) / len(found)


def test_planted_wrong_numbers_and_dates_are_caught_and_true_sentences_are_not() -> None:
    """The figures of tests/benchmarks/verify.py."""
    assert flagged(planted("wrong number", CASES)) >= 0.9
    assert flagged(planted("wrong date", CASES)) >= 0.9
    assert flagged(planted("swapped drug", CASES)) >= 0.9
    assert flagged(every_number(CASES)) >= 0.95
    assert flagged(true_sentences(CASES)) <= 0.03


def test_the_twin_flags_few_true_sentences() -> None:
    lost, number = 0, 0
    for case in CASES:
        assert case.gold is not None
        answer = [a for a in case.gold.answer_sentences if a.citations]
        links = [Link(answer_id=a.id, evidence_ids=list(a.citations or ())) for a in answer]
        given = {"answer_sentences": answer, "links": links, "sentences": case.sentences}
        wrong = {v.answer_id for v in check_facts(**given)}
        made = ExtractiveVerify()(question=case.clinician_question, **given)
        lost += sum(v.verdict == "not supported" or v.answer_id in wrong for v in made.verdicts)
        number += len(answer)
    assert lost / number <= 0.05


@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=3))
def test_the_check_never_fails_and_what_is_copied_is_founded(sentence: str, cited: list[str]) -> None:
    unfounded(sentence, cited, cited)
    assert unfounded("Given 40 mg on June 7.", ["Given 40 mg on June 7.", *cited], cited) == []


PIECES = (
    "raised by|about|fell|5|5 mg|0.5|10|12|to|and|,|.|two|six weeks|[**3-3**]|[**2118-4-14**]|by|Na|6/3|May|twice|BID"
)


@given(st.lists(st.sampled_from(PIECES.split("|")), max_size=14))
def test_whatever_numbers_a_sentence_holds_its_copy_is_founded(pieces: list[str]) -> None:
    text = " ".join(pieces)
    assert unfounded(text, [text], [text]) == []


def scripted(
    answers: list[list[str]], refuse: Callable[[str], bool] = lambda text: False, broken: bool = False
) -> dspy.LM:
    """Writes `answers` in turn, links every sentence to the first note sentence, and refuses what it is told to."""
    gold, left = gold_lm(CASES), list(answers)

    def reply(request: lm15.Request) -> str:
        last = request.messages[-1].text or ""
        stage = stage_of(request)
        if stage == "generate":
            return json.dumps({"answer_sentences": left.pop(0) if len(left) > 1 else left[0]})
        lines = [line[1:].partition("] ") for line in last.splitlines() if line.startswith("[") and "## " not in line]
        if stage == "align":
            asked = last.split("answer_sentences ## ]]")[1].split("[[ ##")[0]
            ids = [line[1:].partition("]")[0] for line in asked.splitlines() if line.startswith("[")]
            return json.dumps({"links": [{"answer_id": i, "evidence_ids": [IDS[0]]} for i in ids]})
        if stage == "verify":
            if broken:
                return "no JSON"
            shown = [(i, text) for i, _, text in lines if any(text in answer for answer in answers)]
            verdicts = [
                {"answer_id": i, "verdict": "not supported", "reason": "invented"}
                if refuse(text)
                else {"answer_id": i, "verdict": "supported", "reason": ""}
                for i, text in shown
            ]
            return json.dumps({"verdicts": verdicts})
        return str(gold.engine.backend.engine.complete(request).message.text)

    return fake_lm(reply)


def run(lm: dspy.LM, verify: str) -> dspy.Prediction:
    with dspy.context(lm=lm):
        case = CASE.__class__(**{f: getattr(CASE, f) for f in CASE.__dataclass_fields__} | {"answer_sentences": ()})
        return GroundedQA(PipelineSettings(verify=verify))(case=case)  # type: ignore[arg-type]


def kinds(made: dspy.Prediction) -> list[str]:
    return [n.kind for n in made.notices if n.stage == "verify"]


TRUE, FALSE, OTHER = "He was treated.", "It was caused by a fall.", "He went home."


def bad(text: str) -> bool:
    return text == FALSE


def test_off_asks_nothing_but_still_flags_a_wrong_number() -> None:
    lm = scripted([[TRUE, "He had 987 stents."]])
    made = run(lm, "off")
    assert [(v.answer_id, v.verdict) for v in made.verdicts] == [("2", "not supported")] and kinds(made) == [
        "unsupported"
    ]
    assert "987" in made.verdicts[0].reason and made.answer.endswith("987 stents.")
    assert "verify" not in {stage_of(r) for r in lm.requests}


def test_flag_shows_a_verdict_on_every_sentence_and_changes_nothing() -> None:
    made = run(scripted([[TRUE, FALSE]], bad), "flag")
    assert [v.verdict for v in made.verdicts] == ["supported", "not supported"]
    assert made.answer_sentences == [TRUE, FALSE] and kinds(made) == ["unsupported"]


def test_revise_writes_once_more_with_the_reason() -> None:
    lm = scripted([[TRUE, FALSE], [TRUE, OTHER]], bad)
    made = run(lm, "revise")
    assert made.answer_sentences == [TRUE, OTHER] and kinds(made) == ["revised"]
    assert [v.verdict for v in made.verdicts] == ["supported"] * 2
    second = [r for r in lm.requests if stage_of(r) == "generate"][1]
    shown = str(second.system) + "".join(m.text or "" for m in second.messages)
    assert "[2] invented" in shown and FALSE in shown


def test_what_is_still_refused_is_dropped_and_the_rest_numbered_anew() -> None:
    made = run(scripted([[FALSE, TRUE]], bad), "revise")
    assert made.answer_sentences == [TRUE] and kinds(made) == ["revised", "dropped"]
    assert [link.answer_id for link in made.links] == ["1"] == [v.answer_id for v in made.verdicts]


def test_an_answer_of_which_nothing_is_left_is_declined() -> None:
    made = run(scripted([[FALSE]], bad), "revise")
    assert made.declined and made.answer == NOT_ANSWERED and made.evidence == [] and made.verdicts == []
    assert [link.evidence_ids for link in made.links] == [[]]


def test_no_lm_overrules_a_wrong_number() -> None:
    made = run(scripted([["He had 987 stents.", TRUE], [TRUE]]), "revise")
    assert made.answer_sentences == [TRUE] and kinds(made) == ["revised"]


def test_a_verifier_that_fails_leaves_it_to_the_one_without_an_lm() -> None:
    made = run(scripted([[TRUE, FALSE]], broken=True), "flag")
    assert len(made.verdicts) == 2 and "lm_failed" in kinds(made)


def test_the_extractive_program_verifies_without_an_lm(tmp_path: Path) -> None:
    program = extractive_program(PipelineSettings(verify="revise"))
    result = run_cases(CASES[20:23], program, out=tmp_path / "r")
    for record in result.records:
        assert record.declined or (record.verdicts and len(record.verdicts) == len(record.answer_sentences or ()))
    assert "supported</span>" in (tmp_path / "r" / "report.html").read_text()


def test_a_program_file_holds_the_verifiers_prompt(tmp_path: Path) -> None:
    save_program_file(to_file(GroundedQA(PipelineSettings(verify="flag"))), tmp_path / "p.json")
    assert load_program(tmp_path / "p.json").verify is not None
    assert not hasattr(GroundedQA(), "verify")


def test_ask_shows_the_verdict_of_every_sentence(command: Callable[..., Ran], tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("\n".join(s.text for s in CASE.sentences))
    ran = command("ask", note, CASE.narrative, "--verify", "flag")
    assert ran.code == 0 and "  supported: chance" in ran.out
    assert command("ask", note, CASE.narrative, "--verify", "maybe").code == 2


@given(
    st.lists(
        st.builds(
            Verdict,
            answer_id=st.sampled_from(["1", "2", "[2]", "9", ""]),
            verdict=st.sampled_from(["supported", "partly", "not supported"]),
            reason=st.text(max_size=5),
        ),
        max_size=6,
    )
)
def test_verdicts_of_any_reply_cover_the_answer_once(raw: list[Verdict]) -> None:
    checked = check_verdicts(raw, ["1", "2"])
    if checked.value is None:
        assert not any(v.answer_id.strip("[]") in ("1", "2") for v in raw)
        return
    assert [v.answer_id for v in checked.value] == ["1", "2"]
    for verdict in checked.value:
        said = {v.verdict for v in raw if v.answer_id.strip("[]") == verdict.answer_id}
        assert ("not supported" in said) == (verdict.verdict == "not supported") or not said
