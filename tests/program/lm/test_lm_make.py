"""make_lm: which engine a name gets, what is sent, what is refused, and what DSPy's cache may keep."""

from __future__ import annotations

import stat
import subprocess
import sys
from datetime import date
from pathlib import Path

import dspy
import pytest

from archehr.data.case import DataError
from archehr.program.lm import Budget, LMConfigError, accepts_temperature, configure_cache, is_hosted, make_lm
from archehr.program.lm.prices import find_price, retirement_note
from archehr.program.lm.wire.model_names import is_version_of
from tests.fake_lm import fake_lm
from tests.stub_server import Received, Reply, StubServer

YES = '{"answer": "yes"}'


def test_an_openai_compatible_server(ask) -> None:
    with StubServer(lambda received: Reply(YES, thinking=3, cached=30)) as server:
        lm = make_lm("openai/some-model", api_base=server.openai, max_tokens=50, seed=4, reasoning="low")
        assert ask(lm, "Why?", temperature=0.5) == "yes"
        counted = lm.ledger.totals()
        assert {name: counted[name] for name in server.served} == server.served
    sent = server.received[0]
    assert sent.path == "/v1/chat/completions"
    body = {key: value for key, value in sent.body.items() if key not in ("messages", "response_format")}
    assert body == {
        "model": "some-model",
        "max_tokens": 50,
        "seed": 4,
        "temperature": 0.5,
        "reasoning_effort": "low",
    }
    assert sent.body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("name", ["some-model", "meta-llama/some-model", "openai/meta-llama/some-model"])
def test_with_an_api_base_any_model_name_will_do(name: str, ask) -> None:
    with StubServer(lambda received: YES) as server:
        assert ask(make_lm(name, api_base=server.openai)) == "yes"
    assert server.received[0].body["model"] == name.removeprefix("openai/")


@pytest.mark.parametrize("name", ["ollama/m", "hosted_vllm/m"])
def test_local_servers_by_their_own_name(name: str, ask) -> None:
    assert not is_hosted(make_lm(name))
    with StubServer(lambda received: YES) as server:
        assert ask(make_lm(name, api_base=server.openai)) == "yes"
    assert server.received[0].body["response_format"]["type"] == "json_schema"


def test_a_gateway_from_the_environment_is_used(ask, monkeypatch: pytest.MonkeyPatch) -> None:
    with StubServer(lambda received: YES) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai)
        assert ask(make_lm("openai/m")) == ask(make_lm("gpt-4o")) == "yes"


def test_the_accounts_key_is_not_handed_to_a_program_on_this_machine(ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-account")
    with StubServer(lambda received: YES) as server:
        ask(make_lm("openai/m", api_base=server.openai))
        ask(make_lm("openai/m2", api_base=server.openai, api_key="given"))
    assert "the-account" not in str(server.received[0].headers)
    assert server.received[1].headers["authorization"] == "Bearer given"


@pytest.mark.parametrize(
    ("name", "settings", "remedy"),
    [
        ("nobody/knows", {}, "PROVIDER/MODEL"),
        ("openai/gpt-5", {}, "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", {}, "ANTHROPIC_API_KEY"),
        ("openai/gpt-5", {"api_key": "k", "max_tokens": 9}, "16000"),
        ("openai/", {}, "no model id"),
        ("openai/m", {"api_base": "http://127.0.0.1:9/v1", "reasoning": "hard"}, "minimal, low"),
        ("gguf:absent.gguf", {}, "No such file"),
        ("replay:absent.jsonl", {}, "--record"),
    ],
)
def test_what_will_not_do_is_one_line_with_a_remedy(name: str, settings: dict, remedy: str) -> None:
    with pytest.raises(LMConfigError, match=remedy) as caught:
        make_lm(name, **settings)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, DataError)


@pytest.mark.parametrize("api_base", ["127.0.0.1:9/v1", "localhost", "ftp://h/v1", "http://", "http://["])
def test_half_an_address_is_refused(api_base: str) -> None:
    with pytest.raises(LMConfigError, match="whole address"):
        make_lm("openai/m", api_base=api_base)


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(LMConfigError, match="without a password") as caught:
        make_lm("openai/m", api_base="http://user:hunter2@127.0.0.1:9/v1")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["timeout", "max_tokens", "context", "threads", "num_retries"])
def test_numbers_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(LMConfigError, match=f"--{name.removeprefix('num_').replace('_', '-')} {value}: must be"):
        make_lm("openai/m", api_base="http://127.0.0.1:9/v1", **{name: value})


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["max_calls", "max_tokens_total", "max_cost", "price_in", "price_out"])
def test_limits_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(LMConfigError, match=f"--{name.replace('_', '-')} {value}: must be 0 or more"):
        make_lm("knn", budget=Budget(**{name: value}))


@pytest.mark.parametrize("name", ["price_in", "price_out"])
def test_one_price_alone_is_refused_rather_than_ignored(name: str) -> None:
    with pytest.raises(LMConfigError, match="both or neither"):
        make_lm("openai/m", api_base="http://127.0.0.1:9/v1", budget=Budget(**{name: 3}))


SERVER_ERRORS = [
    (Reply(status=429, headers={"retry-after": "7"}), dspy.LMRateLimitError, [7.0, 7.0]),
    (Reply(status=503), dspy.LMServerError, None),
    (Reply(status=401), dspy.LMAuthError, []),
    (Reply(status=400, message="no such field"), dspy.LMInvalidRequestError, []),
    (Reply(status=404, message="model not found"), dspy.LMUnsupportedModelError, []),
]


@pytest.mark.parametrize(("bad", "raised", "waited"), SERVER_ERRORS)
def test_only_transient_errors_are_tried_again(
    bad: Reply, raised: type[Exception], waited: list[float] | None, ask, waits: list[float]
) -> None:
    with StubServer(lambda received: bad) as server:
        lm = make_lm("openai/m", api_base=server.openai, num_retries=2)
        with pytest.raises(raised):
            ask(lm)
    assert lm.ledger.totals()["calls"] == len(server.received) == len(waits) + 1
    if waited is None:
        assert 0.5 <= waits[0] <= 1 <= waits[1] <= 2
    else:
        assert waits == waited


def test_a_server_without_json_schema_is_asked_again_without_one(ask, waits: list[float]) -> None:
    def picky(received: Received) -> str | Reply:
        if "response_format" in received.body:
            return Reply(status=400, message="response_format.type: Input should be 'text'")
        return YES

    with StubServer(picky) as server:
        lm = make_lm("openai/m", api_base=server.openai)
        assert ask(lm, "one") == ask(lm, "two") == "yes"
        assert len(server.received) == 3
        assert lm.ledger.totals()["retries"] == 1


def test_an_error_that_no_engine_foresaw_tells_its_kind_alone(ask) -> None:
    lm = fake_lm([ValueError("input_value='the patient was given 40 mg'")])
    with pytest.raises(dspy.LMError, match="ValueError in the engine") as caught:
        ask(lm)
    assert "40 mg" not in str(caught.value)
    assert lm.ledger.totals()["failed"] == 1


def test_an_lm_made_elsewhere_is_judged_by_its_name() -> None:
    assert not accepts_temperature(dspy.LM("openai/o3", api_key="k"))
    assert accepts_temperature(dspy.LM("openai/gpt-4o", api_key="k"))
    assert is_hosted(dspy.LM("openai/gpt-4o", api_key="k"))


def test_litellm_is_said_and_only_for_names_that_nothing_else_knows() -> None:
    assert make_lm("openai/gpt-4o", api_key="k").notes == []
    assert ["litellm" in note for note in make_lm("mistral/mistral-small", api_key="k").notes] == [True]


def test_making_an_lm_imports_neither_litellm_nor_google_genai() -> None:
    program = (
        "import sys; from archehr.program.lm import make_lm; make_lm('gemini/gemini-3.8-flash', api_key='k');"
        "make_lm('openai/m', api_base='http://127.0.0.1:9/v1');"
        "print([m for m in ('litellm', 'google.genai') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_which_models_refuse_a_temperature() -> None:
    takes = ["openai/gpt-4o", "openai/gpt-5-chat-latest", "anthropic/claude-sonnet-4-5", "gemini/gemini-3.8-flash"]
    refuses = ["openai/o3", "openai/o4-mini", "openai/gpt-5", "openai/gpt-5.2-mini", "anthropic/claude-opus-4-7"]
    assert all(accepts_temperature(make_lm(name, api_key="k")) for name in takes)
    assert not any(accepts_temperature(make_lm(name, api_key="k")) for name in refuses)


def test_a_setting_that_the_model_does_not_take_is_left_out_and_said() -> None:
    lm = make_lm("anthropic/claude-sonnet-4-5", api_key="k", seed=1)
    assert "seed" not in lm.kwargs
    assert any("seed" in note for note in lm.notes)


def test_prices_and_retirement_come_from_the_snapshot() -> None:
    assert find_price("gemini", "gemini-2.5-pro").output == 10
    assert find_price("openai-compatible", "no-such-model") is None
    assert find_price("gemini", "gemini-2.5-pro").cached_from == 2048
    note = retirement_note("gemini/gemini-2.5-pro", "gemini", "gemini-2.5-pro", date(2026, 9, 1))
    assert "is to be switched off on 2026-10-20" in note
    assert "was to be" in retirement_note("x", "vertex", "gemini-2.5-pro", date(2026, 10, 21))
    assert retirement_note("x", "vertex", "gemini-2.5-pro", date(2026, 8, 20)) is None
    assert retirement_note("x", "gemini", "gemini-3.8-flash", date(2026, 11, 30)) is None


@pytest.mark.parametrize("provider", ["gemini", "vertex"])
def test_a_price_that_ends_is_told_by_the_day(provider: str) -> None:
    old, new = (find_price(provider, "gemini-3.8-flash", day) for day in (date(2026, 12, 31), date(2027, 1, 1)))
    assert (old.input, old.output, old.cached, old.until) == (0.75, 3.75, 0.075, date(2026, 12, 31))
    assert (new.input, new.output, new.until) == (1.5, 7.5, None)
    assert old.cached_from == new.cached_from == 4096


def test_max_cost_counts_by_the_price_of_the_day(monkeypatch: pytest.MonkeyPatch, ask) -> None:
    class January(date):
        @classmethod
        def today(cls) -> date:
            return date(2027, 1, 2)

    monkeypatch.setattr("archehr.program.lm.prices.date", January)
    with StubServer(lambda received: Reply(YES, tokens_in=1000, tokens_out=100)) as server:
        lm = make_lm("gemini/gemini-3.8-flash", api_base=server.gemini, api_key="k", budget=Budget(max_cost=1))
        ask(lm)
    assert lm.ledger.totals()["cost"] == pytest.approx((1000 * 1.5 + 100 * 7.5) / 1e6)


def test_what_counts_as_a_version_of_a_model() -> None:
    assert is_version_of("gemini-2.5-pro", "gemini-2.5-pro")
    assert is_version_of("models/gemini-2.5-pro-002", "gemini/gemini-2.5-pro")
    assert is_version_of("gemini-2.5-flash-2026-01-02", "gemini-2.5-flash")
    assert is_version_of("gemini-3.8-flash", "gemini-flash-latest")
    for other in ("gemini-2.5-pro-lite", "gemini-2.5-pro2", "gemini-2.5", "gemini-3.8-flash", "gemini-2.5-pro-"):
        assert not is_version_of(other, "gemini-2.5-pro"), other


def test_two_servers_under_one_model_name_do_not_share_answers(ask) -> None:
    with StubServer(lambda r: '{"answer": "A"}') as one, StubServer(lambda r: '{"answer": "B"}') as other:
        lms = [make_lm("openai/m", api_base=server.openai) for server in (one, other, one, other)]
        assert [ask(lm) for lm in lms] == ["A", "B", "A", "B"]
        assert len(one.received) == len(other.received) == 1


@pytest.mark.parametrize("settings", [{"seed": 2}, {"max_tokens": 99}, {"reasoning": "high"}])
def test_settings_that_change_answers_are_in_the_cache_key(settings: dict, ask) -> None:
    with StubServer(lambda received: YES) as server:
        ask(make_lm("openai/m", api_base=server.openai))
        ask(make_lm("openai/m", api_base=server.openai, **settings))
        assert len(server.received) == 2


def test_the_safety_setting_is_in_the_cache_key(ask) -> None:
    with StubServer(lambda received: YES) as server:
        for safety in ("BLOCK_NONE", "BLOCK_ONLY_HIGH", "BLOCK_NONE"):
            ask(make_lm("gemini/gemini-3.8-flash", api_base=server.gemini, api_key="k", safety=safety))
        assert len(server.received) == 2


@pytest.mark.parametrize(
    ("bad", "raised"),
    [
        (Reply('{"answer": "ye', finish="length"), dspy.LMStreamAssemblyError),
        (Reply("", finish="content_filter"), dspy.LMInvalidRequestError),
        (Reply("  "), dspy.LMServerError),
    ],
)
def test_a_cut_blocked_or_empty_reply_is_an_error_and_not_cached(bad: Reply, raised: type[Exception], ask) -> None:
    with StubServer(lambda received: YES, script=[bad]) as server:
        lm = make_lm("openai/m", api_base=server.openai, num_retries=0)
        with pytest.raises(raised):
            ask(lm)
        assert ask(lm) == "yes"
        assert lm.ledger.totals()["tokens_in"] == 200


def test_the_cache_on_disk_is_the_users_alone_and_outlives_the_process(tmp_path: Path, ask) -> None:
    folder = tmp_path / "deep" / "cache"
    configure_cache(folder)
    with StubServer(lambda received: YES) as server:
        ask(make_lm("openai/m", api_base=server.openai))
        configure_cache(folder)  # as a later process would: nothing left in memory
        assert ask(make_lm("openai/m", api_base=server.openai)) == "yes"
        assert len(server.received) == 1
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items())


def test_a_cache_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        configure_cache(tmp_path / "file" / "cache")
