"""The messages of a program as they are sent, or its weights where it was fitted, for reading and diffing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from archehr.data.case import Case, DataError
from archehr.program.extractive.fitted.file import FittedFile
from archehr.program.extractive.fitted.logistic import Logistic, Part
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program, stored_form
from archehr.program.settings import PRESETS
from archehr.program.stages.adapter import TellingJSONAdapter
from archehr.program.stages.registry import PROMPTED, prompted
from archehr.program.stages.render import render
from archehr.program.stages.stage import predictor
from archehr.program.stages.views.vote import views_in_words
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
    where the program would use the outputs of the stages before); of a program without an LM its weights. Raises
    DataError."""
    program = load_program(name, demo_cases=demo_cases)
    if not program.asks_lm:
        return _show_fitted(name, program, stage, as_json)
    prompts = prompted(program)
    if stage is not None and stage not in prompts:
        raise DataError(f"--stage {stage}: the stages are {', '.join(prompts)}")
    chosen = [s for s in prompts if stage in (None, s)]
    by_stage = {s: stage_messages(program, s, _inputs(s, case)) for s in chosen}
    if as_json:
        settings = program.settings.model_dump(mode="json")
        content = {"program": name, "settings": settings, "provenance": program.provenance.told(), "stages": by_stage}
        return json.dumps(content, indent=1)
    sources = program.provenance.demo_case_ids
    facts = {k: v for k, v in program.provenance.told().items() if k not in ("demo_case_ids", "case_sha256")}
    parts = [f"program {name}", f"  settings: {_settings(program)}", *_lines(facts)]
    parts += [f"  {note}" for note in program.notes]
    for s, messages in by_stage.items():
        parts.append(f"\n{'=' * 20} {s} {'=' * 20}")
        for number, message in enumerate(messages):
            label = _label(message, number, len(messages), sources.get(s, ()))
            parts.append(f"\n--- {label} ---\n{message['content']}")
    return "\n".join(parts)


def _show_fitted(name: str, program: GroundedQA, stage: str | None, as_json: bool) -> str:
    """The constants and weights of a fitted program, the heaviest first. Raises DataError for a stage without any."""
    file = stored_form(program)
    assert isinstance(file, FittedFile)
    models: dict[str, Part] = {"score": file.evidence, "generate": file.answerable, "align": file.alignment}
    if stage is not None and stage not in models:
        raise DataError(f"--stage {stage}: the extractive program has fitted models in {', '.join(models)}")
    if as_json:
        return json.dumps({"program": name, **file.model_dump(mode="json")}, indent=1)
    facts = {k: v for k, v in program.provenance.told().items() if k != "case_sha256"}
    parts = [f"program {name}, fitted, without prompts", *_lines(facts)]
    for section in (s for s in models if stage in (None, s)):
        constants = models[section].model_dump(mode="json", exclude={"logistic", "spread"})
        parts += [f"\n{'=' * 20} {section} {'=' * 20}", *_lines(constants)]
        logistic: Logistic = models[section].logistic  # type: ignore[attr-defined]
        parts.append(f"  log-odds per standard deviation; {logistic.intercept:+.2f} to begin with")
        by_size = sorted(zip(logistic.names, logistic.weights, strict=True), key=lambda pair: -abs(pair[1]))
        parts += [f"  {weight:+.3f}  {feature}" for feature, weight in by_size]
    return "\n".join(parts)


def stage_messages(program: GroundedQA, stage: StageName, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """The chat messages of one stage for these inputs, exactly as the adapter sends them."""
    predict = predictor(getattr(program, stage), stage)
    messages: list[dict[str, Any]] = TellingJSONAdapter().format(predict.signature, predict.demos, inputs)
    return messages


def _inputs(stage: StageName, case: Case | None) -> dict[str, str]:
    names = list(PROMPTED[stage].signature.input_fields)
    if case is None:
        return {n: f"{{{n}}}" for n in names}
    gold = case.gold
    evidence = [s for s in case.sentences if gold and s.id in gold.essential]
    values = {
        "narrative": case.narrative,
        "question": case.clinician_question or "{question}",
        "sentences": render(case.sentences),
        "note": render(case.sentences),
        "evidence": render(evidence) or "{evidence}",
        "answer_sentences": render(case.answer_sentences) or "{answer_sentences}",
    }
    return {n: values.get(n, f"{{{n}}}") for n in names}


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
    values = {k: v for k, v in program.settings.model_dump().items() if v != default[k] or k in ("cut", "relaxed_cut")}
    values |= {"views": views_in_words(program.settings)} if "views" in values else {}
    return ", ".join(f"{k} {v}" for k, v in values.items())


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
