"""What a server was found to refuse holds for every LM of the same model and address, and is told once a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from archehr.data.dataset import read_cases
from archehr.program.lm import make_lm
from archehr.program.pipeline import GroundedQA
from archehr.program.run.run import run_cases
from archehr.program.settings import PipelineSettings, parse_views
from tests.conftest import Ran
from tests.stub_server import Received, Reply, StubServer, answer_stage

SCHEMA = Reply(status=400, message="JSON schema conversion failed")
TOLD = "openai/stub refuses the JSON schema; JSON mode is asked for instead"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "stub-key-1")


def schema_type(received: Received) -> str | None:
    return (received.body.get("response_format") or {}).get("type")


def refusing(received: Received) -> Reply | str:
    return SCHEMA if schema_type(received) == "json_schema" else answer_stage(received.ask)


def refused(server: StubServer) -> int:
    return sum(schema_type(r) == "json_schema" for r in server.received)


def test_a_second_lm_of_the_same_model_and_address_pays_for_no_refusal(ask) -> None:
    with StubServer(lambda r: SCHEMA if schema_type(r) == "json_schema" else '{"answer": "yes"}') as server:
        first, second = (make_lm("openai/stub", api_base=server.openai, seed=seed) for seed in (1, 2))
        assert ask(first) == ask(second) == "yes"
        assert refused(server) == 1 and first.ledger.notes() == second.ledger.notes() == [TOLD]
        ask(make_lm("openai/other", api_base=server.openai))
        assert refused(server) == 2, "another model may take what this one refuses"
        ask(make_lm("openai/stub", api_base=f"{server.url}/other/v1"))
        assert refused(server) == 3, "and so may another address"


def test_what_was_asked_for_is_no_refusal(ask) -> None:
    with StubServer(lambda r: '{"answer": "yes"}') as server:
        for mode in ("none", "json", "auto"):
            assert ask(make_lm("openai/stub", api_base=server.openai, schema=mode)) == "yes"
    assert [schema_type(r) for r in server.received] == [None, "json_object", "json_schema"]


def test_stages_and_samples_of_a_view_share_what_is_known_and_each_run_tells_it_once(tmp_path: Path) -> None:
    settings = PipelineSettings(views=parse_views("score*3,answer_first"))
    told: list[str] = []
    with StubServer(refusing) as server:
        for number in (1, 2):
            lms = {stage: make_lm("openai/stub", api_base=server.openai) for stage in ("", "score", "generate")}
            data = read_cases("sample/test")[number : number + 1]
            result = run_cases(data, GroundedQA(settings), lms, out=tmp_path / str(number), tell=told.append)
            assert result.manifest.sessions[-1].told == [TOLD]
    assert refused(server) == 1 and told.count(TOLD) == 2


def test_compare_tells_it_once_although_each_program_has_an_lm_of_its_own(command: Callable[..., Ran]) -> None:
    with StubServer(refusing) as server:
        lm = ("--lm", "openai/stub", "--api-base", server.openai, "--cases", "101-102")
        ran = command("compare", "sample/test", "zero_shot", "handwritten", *lm, "--workers", 1)
    assert ran.code == 0 and refused(server) == 1 and ran.err.count("refuses the JSON schema") == 1, ran
    for manifest in Path("runs").rglob("run.json"):
        assert json.loads(manifest.read_text())["sessions"][0]["told"] == [TOLD]


def test_optimize_tells_it(command: Callable[..., Ran]) -> None:
    with StubServer(refusing) as server:
        lm = ("--lm", "openai/stub", "--api-base", server.openai, "--cases", "1-4", "--folds", 2)
        ran = command("optimize", "sample/dev", *lm, "--stage", "score", "--out", "p.json", "--workers", 1)
    assert ran.code == 0 and refused(server) == 1 and ran.err.count("refuses the JSON schema") == 1, ran
