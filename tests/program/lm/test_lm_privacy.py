"""--local-only, and that neither note text nor keys get into logs, messages or the wrong hands."""

from __future__ import annotations

import logging
import socket

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archehr.program.lm import Budget, LMConfigError, is_hosted, is_loopback, make_lm
from archehr.program.lm.wire.errors import safe_message
from tests.fake_lm import fake_lm
from tests.stub_server import Reply, StubServer

SECRET_TEXT = "the patient Marguerite was given 40 mg of furosemide overnight"
KEY = "sk-very-secret"


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every host that a name was looked up for or a connection opened to; those outside are refused."""
    seen: list[object] = []
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: object) -> None:
        seen.append(address[0] if isinstance(address, tuple) else address)
        if seen[-1] not in ("127.0.0.1", "::1"):
            raise OSError("blocked by the test")
        connect(self, address)

    def guarded_lookup(host: object, *args: object, **kwargs: object) -> object:
        seen.append(host)
        if host not in ("127.0.0.1", "localhost", None):
            raise OSError("blocked by the test")
        return lookup(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_lookup)
    return seen


REMOTE = [
    ("openai/gpt-4o", {"api_key": KEY}),
    ("openai/gpt-4o", {}),
    ("gemini/gemini-3.8-flash", {}),
    ("vertex_ai/gemini-3.8-flash", {}),
    ("anthropic/claude-sonnet-4-5", {"api_key": KEY}),
    ("gemini/gemini-3.8-flash", {"api_key": KEY}),
    ("azure/deployment", {"api_key": KEY}),
    ("mistral/mistral-small", {"api_key": KEY}),
    ("openai/m", {"api_base": "http://10.0.0.7:8000/v1"}),
    ("openai/m", {"api_base": "https://127.0.0.1.example.org/v1"}),
    ("openai/m", {"api_base": "http://127.0.0.1@example.org/v1"}),
    ("ollama/m", {"api_base": "http://gpu-server:11434/v1"}),
    ("gemini/gemini-3.8-flash", {"api_key": KEY, "api_base": "http://192.168.1.2"}),
]


@pytest.mark.parametrize(("name", "settings"), REMOTE)
def test_local_only_refuses_every_remote_lm_before_a_byte_leaves(
    name: str, settings: dict, dialled: list[object]
) -> None:
    with pytest.raises(LMConfigError, match="--local-only"):
        make_lm(name, local_only=True, **settings)
    assert dialled == []


def test_local_only_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHEHR_LOCAL_ONLY", "1")
    with pytest.raises(LMConfigError, match="--local-only"):
        make_lm("openai/gpt-4o", api_key=KEY)
    monkeypatch.setenv("ARCHEHR_LOCAL_ONLY", "0")
    make_lm("openai/gpt-4o", api_key=KEY)


def test_a_gateway_in_the_environment_cannot_open_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://gpu-server:11434/v1")
    with pytest.raises(LMConfigError, match="gpu-server"):
        make_lm("ollama/m", local_only=True)


@pytest.mark.parametrize("name", ["openai/m", "ollama/m", "gemini/gemini-3.8-flash"])
def test_local_only_reaches_the_local_server_and_nothing_else(
    name: str, dialled: list[object], ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even through the proxy that the environment names."""
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://192.0.2.1:3128")
    with StubServer(lambda received: '{"answer": "yes"}') as server:
        base = server.gemini if name.startswith("gemini") else server.openai
        lm = make_lm(name, api_base=base, api_key=KEY, local_only=True, cache=False)
        assert not is_hosted(lm)
        assert ask(lm, SECRET_TEXT) == "yes"
    assert set(dialled) <= {"127.0.0.1"}


@pytest.mark.parametrize("name", ["openai/m", "gemini/gemini-3.8-flash"])
def test_a_local_server_cannot_redirect_elsewhere(name: str, dialled: list[object], ask, waits: list[float]) -> None:
    away = Reply(status=307, headers={"location": "http://192.0.2.1/v1/chat/completions"})
    with StubServer(lambda received: away) as server:
        base = server.gemini if name.startswith("gemini") else server.openai
        with pytest.raises(dspy.LMError):
            ask(make_lm(name, api_base=base, api_key=KEY, local_only=True), SECRET_TEXT)
    assert set(dialled) <= {"127.0.0.1"}


def test_what_is_hosted() -> None:
    assert is_hosted(make_lm("openai/gpt-4o", api_key=KEY))
    assert is_hosted(make_lm("azure/deployment", api_key=KEY))
    assert is_hosted(make_lm("openai/m", api_base="http://10.0.0.7/v1"))
    assert not is_hosted(make_lm("openai/m", api_base="http://localhost:8000/v1"))
    assert not is_hosted(fake_lm(["x"]))


@pytest.mark.parametrize(
    "url",
    ["http://localhost", "http://127.0.0.1:8000/v1", "https://127.9.9.9/", "http://[::1]:80/v1", "HTTP://LOCALHOST:1"],
)
def test_loopback(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://127.0.0.1/",
        "http://127.1/",
        "http://0.0.0.0/",
        "http://127.0.0.1.example.org/",
        "http://localhost.example.org/",
        "http://127.0.0.1@example.org/",
        "http://example.org\\@127.0.0.1/",
        "http://example.org/?127.0.0.1",
        "http://[::ffff:8.8.8.8]/",
        "http://[",
        "http://127.0.0.1\t.example.org/",
    ],
)
def test_not_loopback(url: str) -> None:
    assert not is_loopback(url)


@given(st.text())
def test_any_text_is_judged_without_an_error(url: str) -> None:
    is_loopback(url)
    is_loopback(f"http://{url}/")


@given(st.from_regex(r"[a-z0-9-]{1,20}(\.[a-z]{2,8}){1,2}", fullmatch=True))
def test_no_domain_name_is_loopback(host: str) -> None:
    assert not is_loopback(f"http://{host}:8000/v1")


def test_neither_note_text_nor_key_is_logged_at_any_level(
    ask, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        if name.split(".")[0] in ("dspy", "google_genai", "httpx2", "httpcore2", "diskcache", "program"):
            monkeypatch.setattr(logger, "propagate", True)
            monkeypatch.setattr(logger, "disabled", False)
    logging.getLogger("dspy").setLevel(logging.DEBUG)
    caplog.set_level(logging.DEBUG)
    echo = Reply(status=400, message=f"cannot read: {SECRET_TEXT}")
    bad = [Reply(status=503), Reply('{"answer": "ye', finish="length"), echo, Reply(status=401, message=f"key {KEY}")]
    for api, name in (("openai", "openai/m"), ("gemini", "gemini/gemini-3.8-flash")):
        with StubServer(lambda received: '{"answer": "yes"}', script=list(bad)) as server:
            lm = make_lm(name, api_base=getattr(server, api), api_key=KEY, budget=Budget(max_calls=9), num_retries=1)
            for _ in range(3):
                with pytest.raises(dspy.LMError) as caught:
                    ask(lm, SECRET_TEXT)
                assert "Marguerite" not in str(caught.value)
                assert KEY not in str(caught.value)
            assert ask(lm, SECRET_TEXT) == ask(lm, SECRET_TEXT) == "yes"
    monkeypatch.setattr("dspy.clients.cache.sha256", None)  # DSPy logs a request that it can make no key of
    assert ask(fake_lm(['{"answer": "yes"}'], cache=True), SECRET_TEXT) == "yes"
    assert caplog.records
    assert "Marguerite" not in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize("wire", ["openai", "gemini"])
def test_a_key_from_the_environment_that_the_server_echoes_is_not_shown(
    wire: str, ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, key = ("gemini/gemini-3.8-flash", "GEMINI_API_KEY") if wire == "gemini" else ("groq/m", "GROQ_API_KEY")
    monkeypatch.setenv(key, KEY)
    with StubServer(lambda received: Reply(status=401, message=f"wrong key: {KEY}.")) as server:
        with pytest.raises(dspy.LMAuthError, match=r"wrong key: \[key\]\.") as caught:
            ask(make_lm(name, api_base=getattr(server, wire)))
        assert KEY in str(server.received[0].headers)
    assert KEY not in str(caught.value)


def test_a_server_message_that_quotes_the_prompt_is_withheld() -> None:
    prompt = f"Score.\n\n[1] {SECRET_TEXT}"
    assert "Marguerite" not in safe_message("bad input: patient Marguerite\n was  given 40 mg", prompt)
    assert safe_message("model not found, try another one", prompt) == "model not found, try another one"
    assert safe_message(f"key {KEY} refused", prompt, [KEY]) == "key [key] refused"
    assert len(safe_message("x " * 999, prompt)) <= 300


@given(
    st.lists(st.sampled_from(["fever", "given", "patient", "mg", "of", "the", "40", "was"]), min_size=4, max_size=30),
    st.data(),
)
def test_no_four_words_of_the_prompt_get_through(words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 4))
    quoted = " ".join(words[start : start + 4])
    assert quoted not in safe_message(f"error: {quoted} - sorry", " ".join(words))
