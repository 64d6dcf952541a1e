"""Servers as they are met in the field: refused schemas and parameters, odd replies, other models, cut contexts."""

from __future__ import annotations

import json

import dspy
import pytest

from archehr.program.lm import make_lm
from archehr.program.lm.wire.concessions import Form
from archehr.program.lm.wire.model_names import is_version_of, names_no_model
from archehr.program.lm.wire.replies import last_json_object
from archehr.program.stages.adapter import TellingJSONAdapter
from tests.fake_lm import fake_lm
from tests.stub_server import Received, Reply, StubServer

YES = '{"answer": "yes"}'

SCHEMA_REFUSALS = [
    (400, "JSON schema conversion failed: unsupported keyword"),
    (400, "failed to parse grammar"),
    (500, "Guided decoding backend xgrammar does not support this request"),
    (500, "unsupported value of response_format"),
    (422, "Input should be 'text' or 'json_object'"),
    (400, "This model does not support structured outputs"),
    (501, "response_format of type json_schema is not implemented"),
]


def schema_type(received: Received) -> str | None:
    return (received.body.get("response_format") or {}).get("type")


@pytest.mark.parametrize(("status", "words"), SCHEMA_REFUSALS)
@pytest.mark.parametrize("taken", ["json_object", None])
def test_a_refused_schema_goes_down_the_ladder_once(status: int, words: str, taken: str | None, ask) -> None:
    def server_of_few_words(received: Received) -> Reply | str:
        return YES if schema_type(received) in (taken, None) else Reply(status=status, message=words)

    with StubServer(server_of_few_words) as server:
        lm = make_lm("openai/m", api_base=server.openai, num_retries=0)
        assert ask(lm, "one") == ask(lm, "two") == "yes"
    steps = ["json_schema", "json_object"] + ([] if taken else [None])
    assert [schema_type(r) for r in server.received] == [*steps, steps[-1]]
    assert lm.ledger.totals()["retries"] == lm.ledger.totals()["failed"] == len(steps) - 1
    (note,) = lm.ledger.notes()
    assert "refuses the JSON schema" in note and note.startswith("openai/m ")


def test_geminis_too_many_states_goes_down_the_ladder(ask) -> None:
    def stateful(received: Received) -> Reply | str:
        told = "The specified schema produces a constraint that has too many states for serving."
        return Reply(status=400, message=told) if "responseSchema" in received.body["generationConfig"] else YES

    with StubServer(stateful) as server:
        lm = make_lm("gemini/gemini-3.8-flash", api_base=server.gemini, api_key="k", num_retries=0)
        assert ask(lm, "one") == ask(lm, "two") == "yes"
    sent = [r.body["generationConfig"] for r in server.received]
    assert ["responseSchema" in s for s in sent] == [True, False, False]
    assert {s["responseMimeType"] for s in sent} == {"application/json"}


@pytest.mark.parametrize(("mode", "sent"), [("auto", "json_schema"), ("json", "json_object"), ("none", None)])
def test_where_the_ladder_begins_can_be_said(mode: str, sent: str | None, ask) -> None:
    with StubServer(lambda received: YES) as server:
        ask(make_lm("openai/m", api_base=server.openai, schema=mode))
    assert schema_type(server.received[0]) == sent


def test_a_refusal_of_something_else_is_told_as_it_was_said(ask) -> None:
    with StubServer(lambda received: Reply(status=400, message="schema or no schema, I am closed")) as server:
        lm = make_lm("openai/m", api_base=server.openai, num_retries=0)
        for _ in range(2):
            with pytest.raises(dspy.LMInvalidRequestError, match="I am closed"):
                ask(lm)
    assert lm.ledger.notes() == [], "nothing was found out"


PARAMETER_REFUSALS = [
    ("temperature", "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1)."),
    ("temperature", "temperature is deprecated for this model"),
    ("seed", "Unrecognized request argument supplied: seed"),
    ("seed", "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted'}]"),
    ("reasoning_effort", "Unknown parameter: 'reasoning_effort'."),
]


@pytest.mark.parametrize(("name", "words"), PARAMETER_REFUSALS)
def test_a_refused_parameter_is_left_out_and_told_once(name: str, words: str, ask) -> None:
    with StubServer(lambda r: Reply(status=400, message=words) if name in r.body else YES) as server:
        lm = make_lm("openai/alias", api_base=server.openai, num_retries=0, seed=3, reasoning="low")
        assert [ask(lm, q, temperature=0.0) for q in "ab"] == ["yes", "yes"]
    assert [name in r.body for r in server.received] == [True, False, False]
    others = {"temperature", "seed", "reasoning_effort", "response_format"} - {name}
    assert all(others <= r.body.keys() for r in server.received)
    (note,) = lm.ledger.notes()
    assert note == f"openai/alias refuses {name.removesuffix('_effort')}; it is left out"


def test_max_tokens_is_renamed_for_those_who_know_the_newer_name(ask) -> None:
    told = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    with StubServer(lambda r: Reply(status=400, message=told) if "max_tokens" in r.body else YES) as server:
        lm = make_lm("openai/alias", api_base=server.openai, num_retries=0, max_tokens=77)
        assert [ask(lm, q) for q in "ab"] == ["yes", "yes"]
    assert [(r.body.get("max_tokens"), r.body.get("max_completion_tokens")) for r in server.received] == [
        (77, None), (None, 77), (None, 77),
    ]  # fmt: skip
    assert lm.ledger.notes() == ["openai/alias refuses max_tokens; max_completion_tokens is sent instead"]


def test_and_the_other_way_round(ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def old(received: Received) -> Reply | str:
        return Reply(status=400, message="Unknown parameter: max_completion_tokens") if is_new(received) else YES

    def is_new(received: Received) -> bool:
        return "max_completion_tokens" in received.body or "max_tokens" in received.body

    with StubServer(old) as server:  # whatever it is called, this one takes none
        lm = make_lm("openai/alias", api_base=server.openai, num_retries=0, max_tokens=77)
        assert ask(lm) == "yes"
    assert not is_new(server.received[-1])


def test_several_refusals_are_met_one_after_the_other_even_without_retries(ask) -> None:
    def picky(received: Received) -> Reply | str:
        for name in ("response_format", "temperature", "seed"):
            if name in received.body:
                return Reply(status=400, message=f"{name} is not supported")
        return YES

    with StubServer(picky) as server:
        lm = make_lm("openai/alias", api_base=server.openai, num_retries=0, seed=3)
        assert ask(lm, "a", temperature=0.0) == ask(lm, "b", temperature=0.0) == "yes"
    assert len(server.received) == 6 and len(lm.ledger.notes()) == 3


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 4096 tokens; you requested 5000 (4000 in max_tokens). Not supported.",
        "max_tokens is too large: 99999. This model supports at most 16384 completion tokens",
    ],
)
def test_a_request_that_is_too_long_is_not_sent_without_its_limit(words: str, ask) -> None:
    with StubServer(lambda r: Reply(status=400, message=words)) as server, pytest.raises(dspy.LMError):
        ask(make_lm("openai/m", api_base=server.openai, num_retries=0, max_tokens=4000))
    assert len(server.received) == 1


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_a_reply_that_stands_in_the_reasoning_is_read_from_there(field: str, ask) -> None:
    thought = f'First {{"answer": "no"}}, but then: {YES}'
    with StubServer(lambda r: Reply(reasoning=(field, thought))) as server:
        lm = make_lm("openai/m", api_base=server.openai, num_retries=0)
        assert ask(lm) == "yes"
    assert lm.ledger.notes() == [f"openai/m puts its reply in `{field}`; it is read from there"]


def test_where_the_text_was_is_said_if_it_is_no_json(ask) -> None:
    with StubServer(lambda r: Reply(reasoning=("reasoning", "hm, " * 50))) as server:
        lm = make_lm("openai/m", api_base=server.openai, num_retries=0)
        with pytest.raises(dspy.LMServerError, match="200 characters stood in `reasoning`, no JSON; --reasoning none"):
            ask(lm)


def test_the_last_object_of_a_text() -> None:
    assert last_json_object('a {"x": {"y": 1}} b {"z": 2} {') == {"z": 2}
    assert last_json_object("{" * 5000) is None and last_json_object("") is None


class Scores(dspy.Signature):
    sentences: str = dspy.InputField()
    scores: list[int] = dspy.OutputField()


@pytest.mark.parametrize(
    "reply",
    [
        '{"json_input": {"scores": [4]}}',
        '{"response": {"scores": [4]}, "confidence": 1}',
        '[{"scores": [4]}]',
        '{"name": "json", "arguments": "{\\"scores\\": [4]}"}',
        '```json\n{"output": {"scores": [4]}}\n```',
        'Here: {"result": {"scores": [4]}}',
        '<think>maybe {"scores": [1]}</think>{"scores": [4]}',
        'as the template opens it {"scores": [1]}</think>\n\n{"scores": [4]}',
    ],
)
def test_one_wrapping_is_taken_off_as_a_repair(reply: str) -> None:
    adapter = TellingJSONAdapter()
    assert adapter.parse(Scores, reply) == {"scores": [4]}
    assert adapter.repairs == ["the reply was wrapped in something else"]


@pytest.mark.parametrize("reply", ['{"a": {"scores": [1]}, "b": {"scores": [2]}}', '{"a": {"b": {"scores": [1]}}}'])
def test_what_cannot_be_told_apart_or_is_wrapped_twice_is_no_reply(reply: str) -> None:
    with pytest.raises(dspy.AdapterParseError):
        TellingJSONAdapter().parse(Scores, reply)


def test_a_sound_reply_is_left_as_it_is() -> None:
    adapter = TellingJSONAdapter()
    assert adapter.parse(Scores, '{"scores": [4], "more": {"scores": [1]}}') == {"scores": [4]}
    assert adapter.repairs == []


LONG = " ".join(f"word{i} was given on the third day." for i in range(1500))


def test_a_context_cut_in_silence_stops_the_run(ask) -> None:
    with StubServer(lambda r: Reply(YES, tokens_in=2048)) as server:
        lm = make_lm("openai/m", api_base=server.openai)
        with pytest.raises(dspy.LMConfigurationError, match=r"read 2048 of about \d+ prompt tokens.*num_ctx") as caught:
            ask(lm, LONG)
        assert "word1" not in str(caught.value)
        assert ask(lm, "short") == "yes"
        with pytest.raises(dspy.LMConfigurationError):
            ask(lm, LONG)  # not cached
    assert len(server.received) == 3


@pytest.mark.parametrize("counted", [9000, 12000, 3])
def test_a_context_that_holds_the_prompt_or_is_not_counted_is_left_alone(counted: int, ask) -> None:
    with StubServer(lambda r: Reply(YES, tokens_in=counted)) as server:
        assert ask(make_lm("openai/m", api_base=server.openai), LONG) == "yes"


def test_long_rules_and_tables_are_no_cut_context(ask) -> None:
    with StubServer(lambda r: Reply(YES, tokens_in=300)) as server:
        assert ask(make_lm("openai/m", api_base=server.openai), "-" * 20_000 + " " * 20_000) == "yes"


SAME_MODEL = [
    ("gpt-4o-2024-08-06", "openai/gpt-4o"),
    ("claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5"),
    ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
    ("grok-4-0709", "xai/grok-4"),
    ("Qwen/Qwen3-8B-AWQ", "openai/qwen3-8b"),
    ("qwen3:latest", "qwen3"),
    ("qwen3-8b-q4_k_m.gguf", "qwen3-8b"),
    ("/models/qwen3-8b.Q4_K_M.gguf", "qwen3-8b"),
    ("meta-llama/llama-3.3-70b-instruct:free", "openrouter/meta-llama/llama-3.3-70b-instruct"),
    ("accounts/fireworks/models/llama-v3p1-8b", "fireworks_ai/llama-v3p1-8b"),
    ("anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet-20240620"),
    ("anything", "openai/default"),
    ("anthropic/claude-opus", "openrouter/auto"),
]
OTHER_MODEL = [
    ("totally-different", "stub"),
    ("gpt-4o-mini", "gpt-4o"),
    ("gpt-4o-mini-2024-07-18", "gpt-4o"),
    ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13"),
    ("qwen3:4b", "qwen3:8b"),
    ("claude-sonnet-4-5", "claude-sonnet-4"),
    ("qwen3-14b-awq", "qwen3-8b"),
]


@pytest.mark.parametrize(("answered", "asked"), SAME_MODEL)
def test_versions_of_a_model(answered: str, asked: str) -> None:
    assert is_version_of(answered, asked)


@pytest.mark.parametrize(("answered", "asked"), OTHER_MODEL)
def test_other_models(answered: str, asked: str) -> None:
    assert not is_version_of(answered, asked)


def test_names_that_tell_of_no_model() -> None:
    assert all(names_no_model(n, local=False) for n in ("/models/m.bin", "C:\\m\\x.gguf", "q.gguf", "./m"))
    assert names_no_model("gpt-3.5-turbo", local=True) and not names_no_model("gpt-3.5-turbo", local=False)
    assert not names_no_model("Qwen/Qwen3-8B", local=True)


@pytest.mark.parametrize("name", ["openai/m", "ollama/m", "gemini/m"])
def test_an_answer_from_another_model_is_an_error_unless_accepted(name: str, ask) -> None:
    with StubServer(lambda r: Reply(YES, model="totally-different")) as server:
        base = server.gemini if name.startswith("gemini") else server.openai
        lm = make_lm(name, api_base=base, api_key="k", num_retries=0)
        with pytest.raises(dspy.LMUnsupportedModelError, match="asked for m, answered by totally-different"):
            ask(lm)
        accepting = make_lm(name, api_base=base, api_key="k", num_retries=0, accept_model_version=True)
        assert ask(accepting) == "yes"
        assert accepting.ledger.models() == {"totally-different": 1}


@pytest.mark.parametrize("answered", ["gpt-3.5-turbo", "/srv/models/other.gguf"])
def test_a_local_server_that_names_no_model_is_told_of(answered: str, ask) -> None:
    with StubServer(lambda r: Reply(YES, model=answered)) as server:
        lm = make_lm("openai/qwen3", api_base=server.openai)
        assert ask(lm, "a") == ask(lm, "b") == "yes"
    (note,) = lm.ledger.notes()
    assert note == f"asked for qwen3; the server calls what answered {answered}, which names no model to check"


LASTING = [
    (
        429,
        {},
        "Rate limit reached for m on requests per day (RPD): Limit 200, Used 200. Try again in 7m12s.",
        "Billing",
    ),
    (429, {"code": "insufficient_quota"}, "You exceeded your current quota", "Billing"),
    (429, {}, "Rate limit exceeded: free-models-per-day", "Billing"),
    (402, {}, "Insufficient Balance", "Billing"),
    (400, {}, "Your credit balance is too low to access the API", "Billing"),
    (400, {}, "User location is not supported for the API use.", "Configuration"),
    (400, {}, "API key expired. Please renew the API key.", "Auth"),
    (401, {}, "this key was revoked", "Auth"),
    (404, {}, "The model was shut down", "UnsupportedModel"),
]


@pytest.mark.parametrize(("status", "error", "words", "kind"), LASTING)
def test_an_error_that_will_not_pass_is_not_tried_again(
    status: int, error: dict, words: str, kind: str, ask, waits: list[float]
) -> None:
    with StubServer(lambda r: Reply(status=status, message=words, error=error)) as server:
        lm = make_lm("openai/m", api_base=server.openai)
        with pytest.raises(getattr(dspy, f"LM{kind}Error")) as caught:
            ask(lm)
    assert len(server.received) == 1 and waits == []
    assert words in caught.value.message and f"(at {server.openai})" in caught.value.message


def test_geminis_quota_of_the_day_is_told_from_that_of_the_minute(ask, waits: list[float]) -> None:
    def quota(unit: str) -> Reply:
        violation = {"quotaId": f"GenerateRequestsPer{unit}PerProjectPerModel-FreeTier"}
        details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}]
        told = "You exceeded your current quota, please check your plan and billing details."
        return Reply(status=429, message=told, error={"status": "RESOURCE_EXHAUSTED", "details": details})

    with StubServer(lambda r: YES, script=[quota("Minute"), quota("Day")]) as server:
        lm = make_lm("gemini/gemini-3.8-flash", api_base=server.gemini, api_key="k")
        with pytest.raises(dspy.LMBillingError):
            ask(lm)
    assert len(server.received) == 2 and len(waits) == 1


def test_the_form_only_ever_gets_smaller() -> None:
    one, other = Form("json_object", frozenset({"seed"})), Form("json_schema", frozenset({"temperature"}), "x")
    assert one.joined(other) == other.joined(one) == Form("json_object", frozenset({"seed", "temperature"}), "x")


def test_a_refused_schema_in_this_process_goes_down_the_ladder(ask) -> None:
    from dspy import lm15

    lm = fake_lm([lm15.InvalidRequestError("llama.cpp: failed to parse grammar"), json.dumps({"answer": "yes"})])
    assert ask(lm) == "yes"
    assert [(r.config.response_format or {}).get("type") for r in lm.requests] == ["json_schema", "json_object"]
