"""Files of batch replies may hold anything: what can be used is, the rest counts as not answered, nothing is raised."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from dspy import lm15
from hypothesis import given
from hypothesis import strategies as st

from archehr.program.lm.batch_service import BatchService
from archehr.program.lm.batches.gemini import GeminiBatches
from archehr.program.lm.batches.lines import rows_of
from archehr.program.lm.batches.openai import OpenAIBatches
from archehr.program.lm.batches.vertex import VertexBatches
from archehr.program.lm.registry import find_backend
from archehr.program.lm.settings import LMSettings
from archehr.program.run.engines.batch.jobs import _is_reply, _used

REQUEST = lm15.Request(model="m", messages=(lm15.Message.user("-"),))
NAMES = st.sampled_from(
    "key custom_id request labels archehr-request response error status code message status_code body candidates "
    "content parts text usageMetadata promptTokenCount choices usage metadata finishReason".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def file(rows: list[Any], torn: bytes) -> bytes:
    return b"\n".join([*(json.dumps(row).encode() for row in rows), torn])


def services(content: bytes) -> dict[str, BatchService]:
    job = SimpleNamespace(dest=SimpleNamespace(file_name="f"), src=SimpleNamespace(gcs_uri=["gs://b/n/requests.jsonl"]))
    google: Any = SimpleNamespace(
        batches=SimpleNamespace(get=lambda name: job), files=SimpleNamespace(download=lambda file: content)
    )
    its = ("m", lambda: google, lambda request: {})
    bucket: Any = SimpleNamespace(rows=lambda folder: rows_of(content.split(b"\n")))
    openai: Any = SimpleNamespace(
        batches=SimpleNamespace(retrieve=lambda job: SimpleNamespace(output_file_id="f", error_file_id=None)),
        files=SimpleNamespace(content=lambda name: SimpleNamespace(content=content)),
    )
    asked = LMSettings.of("openai/gpt-4o-mini", api_key="k", api_base="http://127.0.0.1:9/v1")
    of_openai: Any = find_backend(asked).batches
    made: OpenAIBatches = of_openai()
    made._client = openai
    return {
        "gemini": GeminiBatches(*its),
        "vertex": VertexBatches(*its, bucket=bucket, url="gs://b"),
        "openai": made,
    }


GOOD: dict[str, Any] = {
    "gemini": lambda key: {"key": key, "response": {"candidates": [{"content": {"parts": [{"text": "yes"}]}}]}},
    "vertex": lambda key: {
        "request": {"labels": {"archehr-request": key}},
        "response": {"candidates": [{"content": {"parts": [{"text": "yes"}]}}]},
    },
    "openai": lambda key: {
        "custom_id": key,
        "response": {"status_code": 200, "body": {"choices": [{"message": {"role": "assistant", "content": "yes"}}]}},
    },
}


@pytest.mark.parametrize("name", GOOD)
@given(rows=st.lists(JSON, max_size=5), junk=JSON, torn=st.binary(max_size=20))
def test_any_rows_around_a_good_one(name: str, rows: list[Any], junk: Any, torn: bytes) -> None:
    spoilt = GOOD[name]("r1") | {"response": junk}
    service = services(file([*rows, spoilt, GOOD[name]("r0")], torn))[name]
    raws = service.answers("job", ["r0", "r1", "r2"])
    assert raws.keys() <= {"r0", "r1", "r2"}
    assert service.reply(REQUEST, raws["r0"]).text == "yes"
    engine: Any = SimpleNamespace(service=service, backend=SimpleNamespace(pinned=None, provider="p", price=None))
    for raw in raws.values():
        assert json.loads(json.dumps(raw)) == raw  # it goes into the run folder
        assert _is_reply(engine, raw) in (True, False)
        _used(engine, raw)
