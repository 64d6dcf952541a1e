"""Program files: what is loaded is what was saved, and what would not fit is refused with the reason."""

from __future__ import annotations

import hashlib
import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest

from archehr.data.case import DataError
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.handwritten import handwritten
from archehr.program.prompts.program_file import (
    PROMPTS,
    ProgramFile,
    load_program,
    program_hash,
    read_program_file,
    save_program_file,
    signature_hash,
    to_file,
)
from archehr.program.prompts.provenance import Provenance
from archehr.program.prompts.show import stage_messages
from archehr.program.settings import PRESETS
from archehr.program.stages.registry import STAGES
from archehr.program.types import Link, SentenceScore

INPUTS = {s: {n: f"<{n}>" for n in STAGES[s].signature.input_fields} for s in STAGES}


def with_demo() -> GroundedQA:
    program = GroundedQA(PRESETS["seed"])
    program.score.predict.demos = [
        dspy.Example(question="q", narrative="n", sentences="[1] s", scores=[{"id": "1", "score": 5}])
    ]
    return program


def test_a_saved_program_sends_the_same_messages_when_loaded(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    before = with_demo()
    save_program_file(to_file(before, Provenance(made_by="test")), path)
    after = load_program(path)
    for stage in STAGES:
        assert stage_messages(after, stage, INPUTS[stage]) == stage_messages(before, stage, INPUTS[stage])
    assert after.settings == PRESETS["seed"] and after.provenance == Provenance(made_by="test")
    assert program_hash(after) == program_hash(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_shipped_handwritten_program_is_what_its_builder_builds() -> None:
    """Fails after an edit of a signature: run `python -m archehr.program.prompts.handwritten`."""
    assert read_program_file(PROMPTS / "handwritten.json") == ProgramFile.model_validate(
        handwritten().model_dump(mode="json")
    )


def test_the_default_is_zero_shot_with_three_demos_for_reformulate() -> None:
    default, zero = load_program("default"), load_program("zero_shot")
    assert len(default.reformulate.predict.demos) == 3
    for stage in list(STAGES)[1:]:
        assert stage_messages(default, stage, INPUTS[stage]) == stage_messages(zero, stage, INPUTS[stage])


# sha256 of the messages that `--program handwritten --preset seed` sends, inputs as in INPUTS. Whatever becomes of the
# signatures, adapter and rendering: with another hash the published system could no longer be run and compared with.
SEED_MESSAGES = "19342c86dab5fc87aa60b08de3736cc48e587c9a7e14bff4eccfbd0f4fa1bf0d"


def test_the_published_system_is_still_sent_word_for_word() -> None:
    """The signatures' own instructions have moved on; these never do."""
    seed = load_program("handwritten", PRESETS["seed"])
    sent = [stage_messages(seed, stage, INPUTS[stage]) for stage in ("reformulate", "score", "generate", "align")]
    assert hashlib.sha256(json.dumps(sent).encode()).hexdigest() == SEED_MESSAGES
    assert "when torn between two scores, give the higher" in str(sent)
    assert "when torn between two scores, give the higher" not in GroundedQA().score.predict.signature.instructions


def test_settings_given_at_load_replace_the_files_own() -> None:
    assert load_program("handwritten", PRESETS["seed"]).score.settings.cut == 4
    assert load_program("extractive", PRESETS["seed"]).settings.on_failure == "first_three"


def spoiled(tmp_path: Path, change: Any) -> Path:
    path = tmp_path / "p.json"
    raw = to_file(with_demo()).model_dump(mode="json")
    change(raw)
    path.write_text(json.dumps(raw))
    return path


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda raw: raw.update(signature_hash="0" * 64), "other signatures"),
        (lambda raw: raw.update(format=99), "format 99"),
        (lambda raw: raw.update(adapter="ChatAdapter"), "ChatAdapter"),
        (lambda raw: raw["stages"].pop("align"), "lacks stage align"),
        (lambda raw: raw["settings"].update(cut=9), "settings.cut"),
        (lambda raw: raw.update(surprise=1), "surprise"),
        (lambda raw: raw.update(settings={"cut": 2, "relaxed_cut": 4}), "above cut"),
    ],
)
def test_a_file_that_would_not_fit_is_refused_with_the_reason(tmp_path: Path, change: Any, told: str) -> None:
    with pytest.raises(DataError, match=told) as error:
        load_program(spoiled(tmp_path, change))
    assert "\n" not in str(error.value) and "p.json" in str(error.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x80\x04\x95", b"null"])
def test_anything_else_than_a_program_file_is_refused_unrun(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.json").write_bytes(content)
    with pytest.raises(DataError, match=r"p\.json"):
        load_program(tmp_path / "p.json")
    with pytest.raises(DataError, match="no such program"):
        load_program(tmp_path / "missing.json")


def with_fields(monkeypatch: pytest.MonkeyPatch, signature: Any) -> None:
    """ScoreSentences with another signature, as another version of the code may have."""
    monkeypatch.setitem(STAGES, "score", replace(STAGES["score"], signature=signature))


def test_the_signature_hash_follows_the_fields_and_their_types_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before, score = signature_hash(), STAGES["score"].signature
    for changed in (
        score.append("more", dspy.OutputField(), type_=str),
        score.with_updated_fields("scores", type_=list[str]),
        score.with_updated_fields("scores", type_=list[Link]),
        score.delete("narrative"),
    ):
        with_fields(monkeypatch, changed)
        assert signature_hash() != before
    for same in (score.with_instructions("Else."), score.with_updated_fields("question", desc="else")):
        with_fields(monkeypatch, same)
        assert signature_hash() == before


def test_a_file_does_not_care_where_the_types_of_its_fields_are_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signature_hash()
    moved = type("SentenceScore", (SentenceScore,), {"__module__": "elsewhere", "__doc__": "Said otherwise."})
    with_fields(monkeypatch, STAGES["score"].signature.with_updated_fields("scores", type_=list[moved]))
    assert signature_hash() == before


def test_a_file_of_version_0_1_is_read_where_the_fields_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_0_1 = "9d416b4b1566d7c9742d9cbd27aa81fde6fff5d916e29f864d3cd04cb3af2820"
    path = spoiled(tmp_path, lambda raw: raw.update(signature_hash=of_0_1))
    assert load_program(path).score.predict.demos
    with_fields(monkeypatch, STAGES["score"].signature.append("more", dspy.OutputField(), type_=str))
    with pytest.raises(DataError, match="other signatures"):
        load_program(path)


def test_the_extractive_program_has_no_prompts_to_save() -> None:
    with pytest.raises(DataError, match="without an LM"):
        to_file(load_program("extractive"))
