"""--record and replay: what was recorded is answered word for word, and anything else says where it departs."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import dspy
import pytest
from dspy import lm15
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archehr.program.lm import LMConfigError, at, make_lm
from archehr.program.lm.engines.replay import Recorder, ReplayEngine
from tests.fake_lm import fake_lm


def echo(request: lm15.Request) -> str:
    return json.dumps({"answer": str(len(request.messages[-1].text or ""))})


@pytest.fixture
def recording(tmp_path: Path, ask) -> Path:
    """Case 3's two stages, as a scripted LM answered them."""
    path = tmp_path / "recording.jsonl"
    lm = fake_lm(echo, record=path)
    with at(case_id="3", stage="score"):
        ask(lm, "one")
    with at(case_id="3", stage="align"):
        ask(lm, "twenty", temperature=0.1)
    return path


def test_a_replay_answers_what_was_recorded(recording: Path, ask) -> None:
    told, replayed = fake_lm(echo), make_lm(f"replay:{recording}")
    assert ask(replayed, "one") == ask(told, "one")
    assert ask(replayed, "twenty") == ask(told, "twenty")
    counted = replayed.ledger.totals()
    assert (counted["tokens_in"], counted["cost"]) == (200, 0)
    assert replayed.ledger.models() == {"fake/lm": 2}


def test_only_its_owner_may_read_a_recording(recording: Path) -> None:
    assert stat.S_IMODE(recording.stat().st_mode) == 0o600


def test_recording_makes_the_calls_that_the_cache_would_save(tmp_path: Path, ask) -> None:
    from tests.stub_server import StubServer

    with StubServer(lambda received: '{"answer": "yes"}') as server:
        ask(make_lm("openai/m", api_base=server.openai))
        lm = make_lm("openai/m", api_base=server.openai, record=tmp_path / "r.jsonl")
        ask(lm)
        assert len(server.received) == 2
    assert any("cache is off" in note for note in lm.notes)
    assert ask(make_lm(f"replay:{tmp_path / 'r.jsonl'}")) == "yes"


@pytest.mark.parametrize(
    ("case", "stage", "question", "says"),
    [
        ("3", "score", "onE", r"case 3, stage score: message 2 \(user\) departs .* at character \d+"),
        ("4", "score", "zero", "case 4, stage score is not in the recording"),
        (None, None, "zero", "case -, stage - is not in the recording"),
    ],
)
def test_an_unseen_prompt_is_named_without_its_text(
    case: str | None, stage: str | None, question: str, says: str, recording: Path, ask
) -> None:
    with at(case, stage), pytest.raises(dspy.LMConfigurationError, match=says) as caught:
        ask(make_lm(f"replay:{recording}"), question)
    assert question not in str(caught.value)


def test_the_place_of_the_difference_is_right(tmp_path: Path) -> None:
    def request(*texts: str) -> lm15.Request:
        return lm15.Request(model="m", system="s", messages=tuple(lm15.Message.user(t) for t in texts))

    reply = lm15.Response(
        id=None,
        model="m",
        message=lm15.Message.assistant([lm15.TextPart("r")]),
        finish_reason="stop",
        usage=lm15.Usage(),
    )
    path = tmp_path / "r.jsonl"
    recorder = Recorder(path)
    recorder.append(request("abc", "defgh"), reply)
    recorder.append(request("abc", "dxx"), reply)
    engine = ReplayEngine(path)
    with pytest.raises(lm15.ConfigurationError, match=r"message 3 \(user\) departs from the recording at character 4"):
        engine.complete(request("abc", "def-h"))
    with pytest.raises(lm15.ConfigurationError, match=r"message 3 \(missing\)"):
        engine.complete(request("abc"))


def test_a_prompt_recorded_twice_gets_its_replies_in_turn_and_then_the_last(tmp_path: Path, ask) -> None:
    path = tmp_path / "r.jsonl"
    lm = fake_lm(['{"answer": "1"}', '{"answer": "2"}'], record=path)
    ask(lm)
    ask(lm)
    replayed = make_lm(f"replay:{path}", cache=False)
    assert [ask(replayed), ask(replayed), ask(replayed)] == ["1", "2", "2"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.text(), st.text(), st.text(min_size=1))
def test_any_text_survives_the_file(tmp_path: Path, system: str, prompt: str, reply: str) -> None:
    path = tmp_path / "any.jsonl"
    path.unlink(missing_ok=True)
    try:
        request = lm15.Request(model="m", system=system or None, messages=(lm15.Message.user(prompt),))
        message = lm15.Message.assistant([lm15.TextPart(reply)])
    except (TypeError, ValueError):
        return  # lm15 takes no such message
    usage = lm15.Usage(input_tokens=1, output_tokens=2)
    Recorder(path).append(
        request, lm15.Response(id=None, model="m", message=message, finish_reason="stop", usage=usage)
    )
    assert ReplayEngine(path).complete(request).message.text == reply


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.one_of(
        st.binary(),
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["request", "reply", "usage"]), inner),
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_a_file_that_is_no_recording_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(content)
    try:
        ReplayEngine(path)
    except LMConfigError as exc:
        assert "\n" not in str(exc)
    else:
        assert not content.decode().strip()


def test_a_disk_that_fills_up_while_recording_stops_the_run(tmp_path: Path, ask) -> None:
    lm = fake_lm(echo, record=tmp_path / "r.jsonl")
    (tmp_path / "r.jsonl").unlink()
    (tmp_path / "r.jsonl").symlink_to("/dev/full")
    with pytest.raises(dspy.LMConfigurationError, match="No space left"):
        ask(lm)


def test_a_recording_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LMConfigError, match="--record"):
        fake_lm(["x"], record=tmp_path)
