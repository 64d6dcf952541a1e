"""The Gemini engine against a stub server: what it sends, how it fails, and that the ledger counts what was served."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import dspy
import google.auth.credentials
import google.auth.exceptions
import pytest

from archehr.data.dataset import read_cases
from archehr.program.lm import LMConfigError, make_lm
from archehr.program.lm.engines.gemini import thinking
from archehr.program.prompts.program_file import load_program
from archehr.program.run.run import run_cases
from archehr.program.types import SentenceScore
from tests.stub_server import Reply, StubServer

OK = Reply('{"answer": "yes"}', thinking=7, cached=3)


def gemini(server: StubServer, model: str = "gemini-3.8-flash", **settings: object) -> dspy.LM:
    return make_lm(f"gemini/{model}", api_base=server.gemini, api_key="stub-key", **{"num_retries": 2, **settings})


def error(status: int, message: str = "stub", retry_delay: str | None = None, **headers: str) -> Reply:
    info = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retry_delay}] if retry_delay else []
    body = {"error": {"code": status, "status": "STUB", "message": message, "details": info}}
    return Reply(status=status, headers={k.replace("_", "-"): v for k, v in headers.items()}, body=body)


def body(candidates: list[dict] | None, **more: object) -> Reply:
    usage = {"promptTokenCount": 4, "thoughtsTokenCount": 29, "totalTokenCount": 33}
    given = {"usageMetadata": usage, "modelVersion": "gemini-3.8-flash", **more}
    return Reply(body=given if candidates is None else {"candidates": candidates, **given})


@dataclass
class Row:
    """One row of the experiment's table: what the server does, what the caller sees, how often it was asked."""

    script: list[Reply]
    raises: type[Exception] | None
    attempts: int
    says: str | None = None
    waits: tuple[float, ...] | None = None


ROWS = {
    "ok": Row([OK], None, 1),
    "429 then ok, Retry-After": Row([error(429, retry_after="0.1"), OK], None, 2, waits=(0.1,)),
    "429 then ok, RetryInfo": Row([error(429, retry_delay="0.2s"), OK], None, 2, waits=(0.2,)),
    "429 for ever": Row([error(429, retry_after="0.05")] * 5, dspy.LMRateLimitError, 3, waits=(0.05, 0.05)),
    "429 until tomorrow": Row([error(429, retry_after="86400"), OK], None, 2, waits=(60.0,)),
    "500 then ok": Row([error(500), OK], None, 2),
    "503 for ever": Row([error(503)] * 5, dspy.LMServerError, 3),
    "504 then ok": Row([error(504), OK], None, 2),
    "400": Row([error(400, "bad field")], dspy.LMInvalidRequestError, 1, "bad field"),
    "400 bad key": Row([error(400, "API key not valid")], dspy.LMAuthError, 1),
    "400 too long": Row([error(400, "The input token count (9) exceeds 8")], dspy.ContextWindowExceededError, 1),
    "403": Row([error(403)], dspy.LMAuthError, 1),
    "404": Row([error(404)], dspy.LMUnsupportedModelError, 1),
    "prompt blocked": Row(
        [body(None, promptFeedback={"blockReason": "SAFETY"})], dspy.LMInvalidRequestError, 1, "prompt, SAFETY"
    ),
    "answer blocked": Row([body([{"finishReason": "RECITATION"}])], dspy.LMInvalidRequestError, 1, "RECITATION"),
    "cut, all spent thinking": Row(
        [body([{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}])], dspy.LMStreamAssemblyError, 1, "cut"
    ),
    "cut in the text": Row([Reply('{"answer": "ye', finish="MAX_TOKENS")], dspy.LMStreamAssemblyError, 1, "cut"),
    "another model": Row(
        [Reply('{"answer": "yes"}', model="gemini-3.8-flash-lite")],
        dspy.LMUnsupportedModelError,
        1,
        "asked for gemini-3.8-flash, answered by gemini-3.8-flash-lite",
    ),
    "numbered version": Row([Reply('{"answer": "yes"}', model="gemini-3.8-flash-002")], None, 1),
    "no candidates at all": Row([body([]), OK], None, 2),
    "no text, then ok": Row([body([{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}]), OK], None, 2),
    "malformed, then ok": Row([body([{"finishReason": "MALFORMED_RESPONSE"}]), OK], None, 2),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_every_row_of_the_table(row: Row, ask, waits: list[float]) -> None:
    with StubServer(script=row.script) as server:
        lm = gemini(server)
        if row.raises is None:
            assert ask(lm) == "yes"
        else:
            with pytest.raises(row.raises, match=row.says):
                ask(lm)
        assert len(server.received) == row.attempts
        counted = lm.ledger.totals()
        assert {name: counted[name] for name in server.served} == server.served
        assert counted["calls"] == row.attempts
        assert counted["retries"] == row.attempts - 1 == len(waits)
        assert counted["failed"] == row.attempts - (row.raises is None)
        if row.waits is not None:
            assert tuple(waits) == row.waits


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row.raises])
def test_no_failed_reply_is_cached(name: str, ask, waits: list[float]) -> None:
    row = ROWS[name]
    with StubServer(script=[*row.script[: row.attempts], OK]) as server:
        lm = gemini(server)
        with pytest.raises(row.raises):
            ask(lm)
        assert ask(lm) == "yes"
        assert lm.ledger.totals()["cache_hits"] == 0
        assert ask(lm) == "yes"
        assert lm.ledger.totals()["cache_hits"] == 1
        assert len(server.received) == row.attempts + 1


def test_waits_grow_with_jitter_up_to_a_cap(ask, waits: list[float]) -> None:
    with StubServer(script=[error(503)] * 9) as server, pytest.raises(dspy.LMServerError):
        ask(gemini(server, num_retries=8))
    shares = [wait / min(2.0**n, 60) for n, wait in enumerate(waits)]
    assert all(0.5 <= share <= 1 for share in shares)
    assert len(set(shares)) > 1


def test_timeout_and_refused_connection(ask, waits: list[float]) -> None:
    with StubServer(lambda received: Reply('{"answer": "late"}', delay=1.0)) as server:
        with pytest.raises(dspy.LMTimeoutError):
            ask(gemini(server, timeout=0.1, num_retries=0))
        url = server.gemini
    with pytest.raises(dspy.LMTransportError):
        ask(make_lm("gemini/gemini-3.8-flash", api_base=url, api_key="stub-key", num_retries=0))


def test_what_is_sent(waits: list[float]) -> None:
    class Score(dspy.Signature):
        """Score the sentences."""

        sentences: str = dspy.InputField()
        scores: list[SentenceScore] = dspy.OutputField()

    with StubServer(lambda received: '{"scores": [{"id": "1", "score": 4}]}') as server:
        lm = gemini(server, seed=11, max_tokens=900, reasoning="medium")
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            found = dspy.Predict(Score)(sentences="[1] Fever.", config={"temperature": 0.1}).scores
    sent = server.received[0]
    config = sent.body["generationConfig"]
    assert found == [SentenceScore(id="1", score=4)]
    assert sent.path == "/v1beta/models/gemini-3.8-flash:generateContent"
    assert sent.headers["x-goog-api-key"] == "stub-key"
    assert (config["temperature"], config["seed"], config["maxOutputTokens"]) == (0.1, 11, 900)
    assert config["responseSchema"]["properties"]["scores"]["type"] == "ARRAY"
    assert config["thinkingConfig"] == {"thinking_level": "MEDIUM"}
    assert {s["threshold"] for s in sent.body["safetySettings"]} == {"BLOCK_NONE"}
    assert len(sent.body["safetySettings"]) == 4
    assert "Score the sentences." in sent.prompt and sent.ask.count("[1] Fever.") == 1
    assert "metadata" not in str(sent.body)


def names_in(schema: object) -> set[str]:
    """The keywords of a schema, without the names of its properties."""
    if not isinstance(schema, dict):
        return set()
    inner = [*schema.get("properties", {}).values(), schema.get("items")]
    return set(schema).union(*map(names_in, inner))


def test_every_stage_sends_the_schema_that_all_of_geminis_endpoints_take() -> None:
    """Some accept response_json_schema and ignore it; response_schema knows no additionalProperties and no $ref."""
    with StubServer() as server:
        result = run_cases(read_cases("sample/test")[:1], load_program("handwritten"), gemini(server))
    assert result.manifest.usage is not None and result.manifest.usage.failed == 0
    sent = [received.body["generationConfig"] for received in server.received]
    assert len(sent) >= 4 and all("responseSchema" in config for config in sent)
    assert not [name for config in sent for name in config if "json" in name.lower()]
    assert {config["responseMimeType"] for config in sent} == {"application/json"}
    assert set().union(*(names_in(config["responseSchema"]) for config in sent)) <= {
        "type", "properties", "required", "items", "enum", "description", "minimum", "maximum", "property_ordering",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("gemini-2.5-pro", "low", {"thinking_budget": 1024}),
        ("gemini-2.5-pro", "minimal", {"thinking_budget": 128}),
        ("gemini-2.5-flash", "off", {"thinking_budget": 0}),
        ("gemini-3-pro", "high", {"thinking_level": "HIGH"}),
        ("gemini-flash-latest", "low", {"thinking_level": "LOW"}),
    ],
)
def test_reasoning_is_a_budget_up_to_2_5_and_a_level_after(model: str, effort: str, sent: dict) -> None:
    assert thinking(model, effort) == sent


def test_a_model_that_cannot_stop_thinking_says_so(ask) -> None:
    with StubServer() as server, pytest.raises(dspy.LMUnsupportedFeatureError, match="minimal"):
        ask(gemini(server, "gemini-2.5-pro", reasoning="none"))
    assert server.received == []


def test_accepting_another_version_records_which(ask) -> None:
    with StubServer(lambda received: Reply('{"answer": "yes"}', model="gemini-9")) as server:
        lm = gemini(server, accept_model_version=True)
        assert ask(lm) == "yes"
        assert lm.ledger.models() == {"gemini-9": 1}


def test_cost_counts_thinking_as_output_and_cached_input_at_its_price(ask) -> None:
    with StubServer(lambda received: Reply('{"answer": "yes"}', tokens_in=1000, cached=400, thinking=50)) as server:
        lm = gemini(server, "gemini-2.5-pro")
        ask(lm)
    assert lm.ledger.totals()["cost"] == pytest.approx((600 * 1.25 + 400 * 0.125 + 70 * 10) / 1e6)


def test_one_engine_however_often_it_is_copied() -> None:
    with StubServer() as server:
        lm = gemini(server)
    assert copy.deepcopy(lm.engine) is lm.engine
    assert lm.copy(temperature=1.0).engine is lm.engine


class Signed(google.auth.credentials.Credentials):
    def refresh(self, request: object) -> None:
        self.token = "a-token"


def test_google_cloud_takes_project_and_location_from_the_environment(ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "europe-west4")
    monkeypatch.setattr("google.auth.default", lambda **settings: (Signed(), "project"))
    with StubServer(lambda received: '{"answer": "yes"}') as server:
        assert ask(make_lm("vertex_ai/gemini-3.8-flash", api_base=server.gemini)) == "yes"
    assert server.received[0].headers["authorization"] == "Bearer a-token"
    assert server.received[0].path == (
        "/v1beta1/projects/project/locations/europe-west4/publishers/google/models/gemini-3.8-flash:generateContent"
    )


def test_google_cloud_without_a_login_stops_the_run(ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(**settings: object) -> None:
        raise google.auth.exceptions.DefaultCredentialsError("no credentials")

    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
    monkeypatch.setattr("google.auth.default", nobody)
    with pytest.raises(dspy.LMAuthError, match="gcloud auth"):
        ask(make_lm("vertex_ai/gemini-3.8-flash"))


def test_configuration_faults_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LMConfigError, match="GEMINI_API_KEY"):
        make_lm("gemini/gemini-3.8-flash")
    with pytest.raises(LMConfigError, match="GOOGLE_CLOUD_PROJECT"):
        make_lm("vertex_ai/gemini-3.8-flash")
    with pytest.raises(LMConfigError, match="BLOCK_NONE"):
        make_lm("gemini/gemini-3.8-flash", api_key="k", safety="everything")
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    assert make_lm("gemini/gemini-3.8-flash").notes == []
