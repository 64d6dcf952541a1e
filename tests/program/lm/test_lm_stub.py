"""The stub server's own answers: each of the four stages gets one that parses and names the right ids."""

from __future__ import annotations

import dspy
import pytest

from archehr.program.lm import make_lm
from archehr.program.stages.registry import STAGES
from tests.fake_lm import asked, fake_lm
from tests.stub_server import StubServer, answer_stage

NOTE = "[1] He was given furosemide.\n[2] Diet as before."
INPUTS = {
    "reformulate": {"narrative": "Why did they give him furosemide?"},
    "score": {"question": "Why furosemide?", "narrative": "x", "sentences": NOTE},
    "generate": {"question": "Why furosemide?", "evidence": "[1] He was given furosemide.", "note": NOTE},
    "align": {"question": "Why furosemide?", "answer_sentences": "[1] For oedema.", "sentences": NOTE},
}


def check(stage: str, lm: dspy.LM) -> None:
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        found = dspy.Predict(STAGES[stage].signature)(**INPUTS[stage])
    if stage == "reformulate":
        assert "furosemide" in found.question
    elif stage == "score":
        assert [(s.id, s.score) for s in found.scores] == [("1", 5), ("2", 2)]
    elif stage == "generate":
        assert found.answer_sentences == ["He was given furosemide."]
    else:
        assert [(link.answer_id, link.evidence_ids) for link in found.links] == [("1", ["1"])]


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_over_both_wires_and_in_process(stage: str) -> None:
    with StubServer() as server:
        check(stage, make_lm("openai/m", api_base=server.openai))
        check(stage, make_lm("gemini/gemini-3.8-flash", api_base=server.gemini, api_key="k"))
        assert len(server.received) == 2
    check(stage, fake_lm(lambda request: answer_stage(asked(request))))
