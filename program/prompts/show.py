"""The messages of a program as they are sent, for reading and diffing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from archehr.data.case import Case, DataError
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program
from archehr.program.settings import PRESETS
from archehr.program.stages.adapter import TellingJSONAdapter
from archehr.program.stages.registry import STAGES
from archehr.program.stages.render import render
from archehr.program.stages.stage import predictor
from archehr.program.types import StageName


def show_program(
    name: str,
    *,
    stage: str | None = None,
    case: Case | None = None,
    as_json: bool = False,
    demo_cases: Sequence[Case] | None = None,
) -> str:
    """Every stage's messages; inputs stand as {field}, or are filled in from `case` (stages 3 and 4 from its gold,
    where the program would use the outputs of the stages before). Raises DataError."""
    if stage is not None and stage not in STAGES:
        raise DataError(f"--stage {stage}: the stages are {', '.join(STAGES)}")
    if name == "extractive":
        raise DataError("the extractive program has no prompts: it runs without an LM")
    program = load_program(name, demo_cases=demo_cases)
    chosen = [s for s in STAGES if stage in (None, s)]
    shown = {s: stage_messages(program, s, _inputs(s, case)) for s in chosen}
    if as_json:
        settings = program.settings.model_dump(mode="json")
        told = {"program": name, "settings": settings, "provenance": program.provenance.told(), "stages": shown}
        return json.dumps(told, indent=1)
    sources = program.provenance.demo_case_ids
    facts = {k: v for k, v in program.provenance.told().items() if k not in ("demo_case_ids", "case_sha256")}
    parts = [f"program {name}", f"  settings: {_settings(program)}", *_lines(facts)]
    parts += [f"  {note}" for note in program.notes]
    for s, messages in shown.items():
        parts.append(f"\n{'=' * 20} {s} {'=' * 20}")
        for number, message in enumerate(messages):
            label = _label(message, number, len(messages), sources.get(s, ()))
            parts.append(f"\n--- {label} ---\n{message['content']}")
    return "\n".join(parts)


def stage_messages(program: GroundedQA, stage: StageName, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """The chat messages of one stage for these inputs, exactly as the adapter sends them."""
    predict = predictor(getattr(program, stage), stage)
    messages: list[dict[str, Any]] = TellingJSONAdapter().format(predict.signature, predict.demos, inputs)
    return messages


def _inputs(stage: StageName, case: Case | None) -> dict[str, str]:
    names = list(STAGES[stage].signature.input_fields)
    if case is None:
        return {n: f"{{{n}}}" for n in names}
    gold = case.gold
    evidence = [s for s in case.sentences if gold and s.id in gold.essential]
    known = {
        "narrative": case.narrative,
        "question": case.clinician_question or "{question}",
        "sentences": render(case.sentences),
        "note": render(case.sentences),
        "evidence": render(evidence) or "{evidence}",
        "answer_sentences": render(case.answer_sentences) or "{answer_sentences}",
    }
    return {n: known.get(n, f"{{{n}}}") for n in names}


def _label(message: dict[str, Any], number: int, total: int, sources: Sequence[str]) -> str:
    if message["role"] == "system":
        return "system"
    if number == total - 1:
        return "user"
    demo = (number + 1) // 2
    source = f" from {sources[demo - 1]}" if demo <= len(sources) else ""
    return f"demo {demo}{source}, {message['role']}"


def _settings(program: GroundedQA) -> str:
    """The cuts, which every optimisation fits, and what else is not as in the default preset."""
    default = PRESETS["default"].model_dump()
    shown = {k: v for k, v in program.settings.model_dump().items() if v != default[k] or k in ("cut", "relaxed_cut")}
    return ", ".join(f"{k} {v}" for k, v in shown.items())


def _lines(values: Mapping[str, Any], indent: str = "  ") -> Iterator[str]:
    """Provenance, a line a value; what holds nothing but plain values stays on one line."""
    for name, value in values.items():
        if isinstance(value, dict) and any(isinstance(v, dict) for v in value.values()):
            yield f"{indent}{name}:"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, dict):
            yield f"{indent}{name}: {', '.join(f'{k} {v}' for k, v in value.items())}"
        else:
            yield f"{indent}{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
