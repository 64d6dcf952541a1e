"""GroundedQA as DSPy's own documents use a module: async, batches, optimisers, saving, LMs of its own, streams."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
from pathlib import Path
from typing import Any

import dspy
import pytest

import archehr
from archehr.data.case import DataError
from archehr.program.pipeline import GroundedQA
from archehr.program.settings import PipelineSettings
from tests.scripted_stages import gold_lm
from tests.stub_server import StubServer

CASES = archehr.read_cases("sample/dev")[:4]
TRAIN = [dspy.Example(case=case).with_inputs("case") for case in CASES]
CUT_4 = PipelineSettings(cut=4, relaxed_cut=3)


def stub_lm(server: StubServer, **settings: Any) -> dspy.LM:
    return archehr.make_lm("openai/stub", api_base=server.openai, api_key="sk-very-secret-key", **settings)


def said(prediction: dspy.Prediction) -> dict[str, Any]:
    return {name: prediction[name] for name in ("question", "evidence", "answer", "links", "notices")}


def test_acall_gives_what_a_call_gives_under_the_callers_context() -> None:
    lm, program = gold_lm(CASES), archehr.load_program("handwritten")

    async def both() -> tuple[dspy.Prediction, list[dspy.Prediction]]:
        with dspy.context(lm=lm):
            return await program.acall(case=CASES[0]), await asyncio.gather(*(program.acall(case=c) for c in CASES))

    alone, together = asyncio.run(both())
    with dspy.context(lm=lm):
        assert said(alone) == said(program(case=CASES[0]))
        assert [said(p) for p in together] == [said(program(case=c)) for c in CASES]
    assert alone.notices == [] and alone.question == CASES[0].clinician_question  # no fallback: the LM answered


def test_asyncify_parallel_and_batch() -> None:
    program = archehr.load_program("zero_shot")
    with dspy.context(lm=gold_lm(CASES)):
        expected = [said(program(case=c)) for c in CASES]
        assert said(asyncio.run(dspy.asyncify(program)(case=CASES[0]))) == expected[0]
        parallel = dspy.Parallel(num_threads=2, disable_progress_bar=True)
        assert [said(p) for p in parallel([(program, example) for example in TRAIN])] == expected
        assert [said(p) for p in program.batch(TRAIN, num_threads=2, disable_progress_bar=True)] == expected


def test_evaluate() -> None:
    with dspy.context(lm=gold_lm(CASES)):
        result = dspy.Evaluate(devset=TRAIN, metric=archehr.metric(2), num_threads=2)(GroundedQA())
    assert result.score == 100.0


def test_bootstrap_few_shot_compiles_it_and_our_commands_read_what_it_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dspy.context(lm=gold_lm(CASES)):
        optimizer = dspy.BootstrapFewShot(metric=archehr.metric(2), max_bootstrapped_demos=2)
        compiled = optimizer.compile(GroundedQA(CUT_4), trainset=TRAIN)
    shown = [demo["question"] for demo in compiled.score.predict.demos if "question" in demo]
    assert shown == [case.clinician_question for case in CASES[:2]]
    compiled.save(tmp_path / "dspy.json")
    archehr.save_program(compiled, tmp_path / "ours.json")
    fresh = GroundedQA()
    fresh.load(tmp_path / "dspy.json")
    again = GroundedQA()
    again.load(tmp_path / "ours.json")
    loaded = [fresh, again, *(archehr.load_program(tmp_path / name) for name in ("dspy.json", "ours.json"))]
    for program in loaded:
        assert program.settings == program.score.settings == CUT_4
        lm = gold_lm(CASES)
        with dspy.context(lm=lm):
            program(case=CASES[3])
        assert CASES[0].clinician_question in "".join(m.text for m in lm.requests[1].messages)
    assert len({archehr.program.prompts.program_file.program_hash(p) for p in [compiled, *loaded]}) == 1
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())


def test_labeled_few_shot_saves_although_its_demos_are_whole_cases(tmp_path: Path) -> None:
    compiled = dspy.LabeledFewShot(k=2).compile(GroundedQA(), trainset=TRAIN)
    compiled.save(tmp_path / "p.json")
    assert CASES[0].narrative[:30] not in (tmp_path / "p.json").read_text()  # no prompt shows them


@pytest.mark.parametrize("name", ["zero_shot", "handwritten", "extractive"])
def test_settings_survive_dump_and_load(name: str) -> None:
    program = archehr.load_program(name, settings={"cut": 4, "question_words": 9, "abstain": False})
    other = archehr.load_program(name)
    other.load_state(json.loads(json.dumps(program.dump_state())))
    assert other.settings == program.settings != archehr.load_program(name).settings
    assert len(other.reformulate(narrative=CASES[0].narrative).question.split()) <= 9 if name == "extractive" else True
    if name != "extractive":
        assert other.generate.predict.signature.instructions == program.generate.predict.signature.instructions


def test_a_state_without_settings_leaves_ours() -> None:
    state = GroundedQA().dump_state()
    del state["settings"]  # as version 0.1 saved it
    program = GroundedQA(CUT_4)
    program.load_state(state)
    assert program.settings == CUT_4


def test_an_lm_of_its_own_runs_is_counted_named_and_saved_without_its_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with StubServer() as server:
        program = archehr.load_program("zero_shot")
        program.set_lm(stub_lm(server, seed=7))
        result = archehr.run_cases(CASES[:1], program, out=tmp_path / "run")  # and no lm is passed
        assert result.manifest.lm is not None and result.manifest.lm["model"] == "openai/stub"
        assert result.manifest.usage is not None
        assert result.manifest.usage.calls == len(server.received) >= 4
        program.save(tmp_path / "p.json")
        text = (tmp_path / "p.json").read_text()
        assert "openai/stub" in text and "secret" not in text and "Engine" not in text
        trusting, wary = GroundedQA(), GroundedQA()
        trusting.load(tmp_path / "p.json", allow_unsafe_lm_state=True)
        assert trusting.get_lm().kwargs["seed"] == 7 and trusting.get_lm().ledger.totals()["calls"] == 0
        logging.getLogger("archehr").propagate = True
        wary.load(tmp_path / "p.json")
        assert wary.score.predict.lm is None and "allow_unsafe_lm_state=True" in caplog.text
        archehr.save_program(program, tmp_path / "ours.json")
        assert "stub" not in (tmp_path / "ours.json").read_text()


def test_one_stage_may_have_an_lm_of_its_own() -> None:
    with StubServer() as server:
        program = archehr.load_program("zero_shot")
        program.score.predict.lm = stub_lm(server)
        result = archehr.run_cases(CASES[:1], program, gold_lm(CASES))
    assert len(server.received) == 1 and "scores" in server.received[0].ask
    assert result.manifest.lm is not None
    assert result.manifest.lm["stages"]["score"]["model"] == "openai/stub"


def test_streamify_streams_each_reply_once_it_is_checked() -> None:
    async def heard(server: StubServer) -> list[Any]:
        with dspy.context(lm=stub_lm(server, cache=False)):
            return [part async for part in dspy.streamify(program)(case=CASES[0])]

    program = archehr.load_program("zero_shot")
    with StubServer() as server:
        *parts, prediction = asyncio.run(heard(server))
    assert isinstance(prediction, dspy.Prediction) and "lm_failed" not in [n.kind for n in prediction.notices]
    texts = [part.choices[0].delta.content for part in parts if part.choices[0].delta.content]
    assert json.loads(texts[0])["question"] == prediction.question


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"cut": 7}, "settings cut: Input should be less than or equal to 5"),
        ({"cutt": 4}, "settings cutt: Extra inputs are not permitted; the settings are question_words"),
        ({"cut": "high"}, "settings cut: Input should be a valid integer"),
        ({"cut": 3, "relaxed_cut": 4}, "settings: relaxed_cut 4 is above cut 3"),
        ({"temperature": -1}, "settings temperature.reformulate: Input should be greater than or equal to 0"),
        ({"temperature": {"scores": 1}}, "settings temperature.scores: Extra inputs are not permitted"),
    ],
)
@pytest.mark.parametrize("name", ["zero_shot", "handwritten", "extractive"])
def test_settings_are_validated_at_once(name: str, settings: dict[str, Any], line: str) -> None:
    with pytest.raises(DataError) as refused:
        archehr.load_program(name, settings=settings)
    assert str(refused.value).startswith(line) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda s: s.pop("align.predict"), "saved by DSPy, but not of a GroundedQA: it lacks align.predict"),
        (lambda s: s["score.predict"]["signature"]["fields"].pop(), "score.predict has 3 fields, here 4"),
        (lambda s: s["score.predict"].pop("lm"), "not a whole state of dspy.Module.save (KeyError)"),
        (lambda s: s["settings"].update(cut=9), "settings.cut: Input should be less than or equal to 5"),
    ],
)
def test_what_dspy_saved_of_another_program_is_one_line(tmp_path: Path, change: Any, line: str) -> None:
    GroundedQA().save(tmp_path / "p.json")
    state = json.loads((tmp_path / "p.json").read_text())
    change(state)
    (tmp_path / "p.json").write_text(json.dumps(state))
    with pytest.raises(DataError) as refused:
        archehr.load_program(tmp_path / "p.json")
    assert f"p.json: {line}" in str(refused.value)


def test_the_door_shows_its_public_names_and_nothing_else() -> None:
    assert dir(archehr) == sorted(archehr.__all__)
    assert {"case_of", "save_program", "load_program", "metric"} <= set(dir(archehr))
