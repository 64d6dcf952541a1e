"""mlflow.dspy.autolog sees this program as it sees any: a trace a case, a span a module, adapter and LM call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

import archehr
from tests.stub_server import StubServer
from tests.walks import blocks

CASES = archehr.read_cases("sample/dev")[:2]
TRAIN = [dspy.Example(case=case).with_inputs("case") for case in CASES]
KEY = "sk-very-secret-key"


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
        found = pytest.importorskip("mlflow")
        patch.chdir(tmp_path_factory.mktemp("mlflow"))
        (code,) = blocks("dspy.md", "python mlflow")
        exec(code, {})
        yield found
        found.dspy.autolog(disable=True)


@pytest.fixture
def lm() -> Iterator[dspy.LM]:
    with StubServer() as server:
        made = archehr.make_lm("openai/stub", api_base=server.openai, api_key=KEY)
        made.server = server
        yield made


def spans(trace: Any) -> Counter[str]:
    return Counter(span.name for span in trace.data.spans)


def test_a_trace_holds_every_module_and_every_call(mlflow: Any, lm: dspy.LM) -> None:
    with dspy.context(lm=lm):
        archehr.GroundedQA()(case=CASES[0])
    trace = mlflow.get_trace(mlflow.get_last_active_trace_id())
    found = spans(trace)
    assert trace.data.spans[0].name == "GroundedQA.forward" and trace.info.state.value == "OK"
    assert {"Reformulate.forward", "ScoreSentences.forward", "Generate.forward", "Align.forward"} <= found.keys()
    assert found["LM.__call__"] == found["Predict.forward"] == len(lm.server.received) >= 4
    assert KEY not in trace.to_json()


def test_a_run_is_a_trace_a_case_on_all_its_threads(mlflow: Any, lm: dspy.LM) -> None:
    before = len(mlflow.search_traces(return_type="list"))
    archehr.run_cases(CASES, archehr.load_program("handwritten"), lm, workers=2)
    traces = mlflow.search_traces(return_type="list")
    assert len(traces) - before == len(CASES)
    assert sum(spans(trace)["LM.__call__"] for trace in traces[: len(CASES)]) == len(lm.server.received)


def test_evaluations_and_compilations_are_logged(mlflow: Any, lm: dspy.LM) -> None:
    mlflow.dspy.autolog(log_compiles=True, log_evals=True)
    with dspy.context(lm=lm):
        evaluated = dspy.Evaluate(devset=TRAIN, metric=archehr.metric(2))(archehr.GroundedQA())
        optimizer = dspy.BootstrapFewShot(metric=archehr.metric(2), max_bootstrapped_demos=1)
        optimizer.compile(archehr.GroundedQA(), trainset=TRAIN)
    compiled, scored = mlflow.search_runs(output_format="list", order_by=["start_time DESC"])[:2]
    assert scored.data.metrics == {"eval": evaluated.score}
    saved = Path(mlflow.artifacts.download_artifacts(run_id=compiled.info.run_id, artifact_path="best_model.json"))
    assert archehr.load_program(saved).score.predict.demos and KEY not in saved.read_text()
