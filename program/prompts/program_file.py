"""Program files: one JSON form for prompts, hand-written or compiled, and one for fitted models. Never pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_serializer

from archehr.data.case import Case, DataError
from archehr.data.dataset import case_sha256
from archehr.data.files import write_private
from archehr.program import dspy_state
from archehr.program.extractive.align import ExtractiveAlign
from archehr.program.extractive.fitted.file import KIND, SHIPPED, FittedFile, check_fitted, shipped
from archehr.program.extractive.score_sentences import ExtractiveScoreSentences
from archehr.program.extractive_program import extractive_program
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.of_dspy import is_of_dspy, saved_by_dspy
from archehr.program.prompts.provenance import Provenance
from archehr.program.settings import PRESETS, PipelineSettings
from archehr.program.signature_hash import PIPELINE_NAMES, fits, signature_hash
from archehr.program.stages.adapter import ADAPTER_NAME
from archehr.program.stages.registry import PROMPTED, STAGES, prompted
from archehr.program.stages.stage import has_prompt, predictor
from archehr.program.types import StageName

FORMAT = 1
PROMPTS = Path(__file__).parent
BUILT_IN = ("default", "zero_shot", "handwritten", *SHIPPED)


class StageState(BaseModel):
    """What DSPy needs to restore one predictor: its signature's texts and its demos.

    A demo is the signature's fields by name or, in a published file, {"from_case": id, "sha256": of those fields}.
    """

    model_config = ConfigDict(extra="forbid")

    signature: dict[str, Any]
    demos: list[dict[str, Any]] = []


class ProgramFile(BaseModel):
    """The JSON form. `provenance` says how the file came about and how it scored, in and out of sample."""

    model_config = ConfigDict(extra="forbid")

    format: int = FORMAT
    settings: PipelineSettings = PipelineSettings()
    adapter: str = ADAPTER_NAME
    stages: dict[StageName, StageState]
    signature_hash: str
    provenance: Provenance = Provenance()

    @field_serializer("provenance")
    def _provenance_values(self, provenance: Provenance) -> dict[str, Any]:
        return provenance.told()


def load_program(
    name: str | Path,
    settings: PipelineSettings | Mapping[str, Any] | None = None,
    demo_cases: Sequence[Case] | None = None,
) -> GroundedQA:
    """A built-in program (`default`, `zero_shot`, `handwritten`, `extractive`, `extractive-dev`), or the one in a
    program file, of prompts or of fitted models, or in JSON that dspy.Module.save wrote (without its LM: a program
    asks the LM that it is run with).

    `zero_shot` sends the signatures' own instructions, `default` has three demos for Reformulate too, `handwritten` is
    the published system's wording with the same demos, and the extractive ones ask no LM.

    `settings` replaces the program's own, as a mapping those that it names; `demo_cases` fill the demos of a
    published file, which are left out without them. The result carries `.name`, `.provenance` and `.notes`, what the
    user should be told. Raises DataError for a setting that will not do, and for a file that is missing, no program,
    of another format, or made for other signatures or features.

    Example:
        >>> load_program("zero_shot", {"cut": 7})
        Traceback (most recent call last):
        archehr.data.case.DataError: settings cut: Input should be less than or equal to 5
    """
    notes: list[str] = []
    whole = settings if isinstance(settings, PipelineSettings) else None
    path = PROMPTS / f"{name}.json" if str(name) in BUILT_IN else Path(name)
    if str(name) == "default":
        program, provenance = _default(whole or PRESETS["default"])
    elif str(name) == "zero_shot":
        program, provenance = GroundedQA(whole or PRESETS["default"]), Provenance(made_by="built in")
    elif str(name) not in SHIPPED and is_of_dspy(raw := _read_json(path)):
        program, provenance = saved_by_dspy(raw, path, whole), Provenance(made_by="dspy.Module.save")
    else:
        file = shipped(str(name)) if str(name) in SHIPPED else _checked(raw, path)
        if isinstance(file, ProgramFile) and demo_cases is None and (left_out := _by_case(file)):
            file, demo_cases = _without_demos_by_case(file), ()
            notes.append(f"{path}: run without its {left_out} demos of the data, which --demos-from DATA brings back")
        provenance = Provenance.model_validate(file.provenance)
        try:
            if isinstance(file, FittedFile):
                program = extractive_program(whole, file)
            else:
                program = to_program(file, whole, demo_cases)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
    if settings is not None and not isinstance(settings, PipelineSettings):
        program.use_settings(program.settings.changed(settings))
    program.name, program.provenance, program.notes = str(name), provenance, notes
    return program


def _default(settings: PipelineSettings) -> tuple[GroundedQA, Provenance]:
    """The signatures' own instructions, and the hand-written demos of Reformulate."""
    file = read_program_file(PROMPTS / "handwritten.json")
    program = GroundedQA(settings)
    program.reformulate.predict.demos = file.stages["reformulate"].demos
    return program, Provenance(made_by="built in", demo_case_ids=file.provenance.demo_case_ids)


def read_any_program(path: Path) -> ProgramFile | FittedFile:
    """Parse and check a program file; its field `kind` says which of the two it is. Raises DataError with the reason
    and the remedy."""
    return _checked(_read_json(path), path)


def read_program_file(path: Path) -> ProgramFile:
    """A file of prompts. Raises DataError, also for one of fitted models."""
    file = read_any_program(path)
    if isinstance(file, FittedFile):
        raise DataError(f"{path}: an extractive program, which has no prompts")
    return file


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        built_in = ", ".join(BUILT_IN)
        raise DataError(f"{path}: no such program; name {built_in} or a file written by archehr optimize") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: not JSON text; a program file is JSON written by archehr optimize") from None


def _checked(raw: Any, path: Path) -> ProgramFile | FittedFile:
    if isinstance(raw, dict) and raw.get("kind") == KIND:
        return check_fitted(raw, path)
    return _check_prompts(raw, path)


def _check_prompts(raw: Any, path: Path) -> ProgramFile:
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        what = raw.get("format") if isinstance(raw, dict) else type(raw).__name__
        raise DataError(f"{path}: program file format {what}, this version reads {FORMAT}; compile the program again")
    try:
        file = ProgramFile.model_validate(raw)
    except ValidationError as error:
        where = ".".join(str(p) for p in error.errors()[0]["loc"])
        raise DataError(f"{path}: not a program file, {where}: {error.errors()[0]['msg']}") from None
    if unknown := [s for s in file.stages if s not in PROMPTED]:
        raise DataError(f"{path}: has prompts of stage {', '.join(unknown)}, which is not there; add it first")
    if missing := [s for s in PIPELINE_NAMES if s not in file.stages]:
        raise DataError(f"{path}: the program file lacks stage {', '.join(missing)}")
    if file.adapter != ADAPTER_NAME:
        raise DataError(
            f"{path}: made for adapter {file.adapter[:40]}, this version sends {ADAPTER_NAME}; compile again"
        )
    if not fits(file.signature_hash, file.stages):
        raise DataError(
            f"{path}: made for other signatures than this version's (hash {file.signature_hash[:12]}, here "
            f"{signature_hash(file.stages)[:12]}); its prompts would not fit, so compile the program again"
        )
    return file


def to_program(
    file: ProgramFile, settings: PipelineSettings | None = None, demo_cases: Sequence[Case] | None = None
) -> GroundedQA:
    """The module that a checked program file describes. Raises DataError where a demo's case is not in
    `demo_cases`."""
    program = GroundedQA(settings or file.settings)
    for stage, state in file.stages.items():
        if getattr(program, stage, None) is None:  # a view that these settings do not use
            continue
        demos = [_filled(stage, demo, demo_cases) for demo in state.demos]
        predictor(getattr(program, stage), stage).load_state(
            {"traces": [], "train": [], "lm": None, "signature": state.signature, "demos": demos}
        )
    program.use_settings(program.settings)
    return program


def _by_case(file: ProgramFile) -> int:
    return sum("from_case" in demo for state in file.stages.values() for demo in state.demos)


def _without_demos_by_case(file: ProgramFile) -> ProgramFile:
    """A published file without the demos that only its data could fill."""
    stages = {
        stage: state.model_copy(update={"demos": [d for d in state.demos if "from_case" not in d]})
        for stage, state in file.stages.items()
    }
    return file.model_copy(update={"stages": stages})


def _filled(stage: StageName, demo: dict[str, Any], cases: Sequence[Case] | None) -> dict[str, Any]:
    """The demo itself, or the one that a published file names by its case."""
    if "from_case" not in demo:
        return demo
    if cases is None:
        raise DataError("its demos are stored as case ids; pass the data they are from as --demos-from DATA")
    case = next((c for c in cases if c.id == demo["from_case"]), None)
    gold = PROMPTED[stage].taught().demo(case) if case is not None and PROMPTED[stage].has_gold(case) else None
    if gold is None or demo_sha256(gold) != demo.get("sha256"):
        raise DataError(
            f"case {demo['from_case']} of --demos-from does not give the {stage} demo of this program; pass the data, "
            "with its key, that the program was optimised on"
        )
    assert case is not None
    return {**gold, "case_sha256": case_sha256([case])[0]}


def demo_sha256(demo: dict[str, Any]) -> str:
    """sha256 of a demo's fields, by which a published file knows it again."""
    return hashlib.sha256(json.dumps(demo, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def stored_form(program: GroundedQA) -> ProgramFile | FittedFile | None:
    """What of a program is kept beside its answers; None where it is neither prompts nor fitted models."""
    provenance = getattr(program, "provenance", Provenance())
    if program.asks_lm:
        return to_file(program, provenance)
    return _fitted(program, provenance)


def _fitted(program: GroundedQA, provenance: Provenance | None = None) -> FittedFile | None:
    """The fitted models of a program, the shipped ones where it names none; None where others answer."""
    score, align = program.score, program.align
    if not isinstance(score, ExtractiveScoreSentences) or not isinstance(align, ExtractiveAlign):
        return None
    ours = shipped()
    models = score.model or ours.evidence, align.model or ours.alignment, program.answerable or ours.answerable
    return FittedFile.of(*models, provenance.told() if provenance else None)


def to_file(program: GroundedQA, provenance: Provenance | None = None) -> ProgramFile:
    """The program file of a module with LM stages. Raises DataError where no stage asks an LM."""
    stages: dict[StageName, StageState] = {}
    for stage in prompted(program):
        state = dspy_state.dump_prompt(predictor(getattr(program, stage), stage))
        stages[stage] = StageState(signature=state["signature"], demos=state["demos"])
    if not stages:
        raise DataError("the program has no prompts: it runs without an LM")
    return ProgramFile(
        settings=program.settings,
        stages=stages,
        signature_hash=signature_hash(stages),
        provenance=provenance or Provenance(),
    )


def save_program(program: GroundedQA, path: str | Path) -> None:
    """Write a program file that `load_program`, `archehr run --program` and `GroundedQA().load` read; 0600, for demos
    hold note text. An LM set on it is left out. Raises DataError.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "p.json"
        >>> save_program(load_program("zero_shot", {"cut": 4}), path)
        >>> load_program(path).settings.cut
        4
    """
    save_program_file(to_file(program, getattr(program, "provenance", None)), Path(path))


def save_program_file(file: ProgramFile | FittedFile, path: Path) -> None:
    """Write it 0600, since compiled demos hold note text. Raises DataError if it cannot be written."""
    if isinstance(file, FittedFile):
        return write_private(path, file.as_text())
    return write_private(path, json.dumps(file.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n")


def program_hash(program: GroundedQA) -> str:
    """sha256 of everything that shapes the program's answers: settings, prompts and demos, or fitted models.

    Settings at their default do not count, so that a later version's new setting leaves it as it was.
    """
    settings = program.settings.model_dump(mode="json", exclude_defaults=True)
    if not program.asks_lm:
        fitted = _fitted(program)
        content: dict[str, Any] = {"extractive": settings, "models": fitted and fitted.sha256}
    else:
        prompts = to_file(program).model_dump(mode="json", include={"adapter", "stages"})
        without = {s: type(m).__name__ for s in STAGES if not has_prompt(m := getattr(program, s))}
        content = {"settings": settings, **prompts, "without": without}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
