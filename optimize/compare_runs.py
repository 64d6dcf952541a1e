"""Gets the runs of a comparison: finished run folders as they are, and programs run once with each LM."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import dspy

from data.case import Case, DataError
from optimize.compare import ProgramRun
from program.pipeline import GroundedQA
from program.run import PROGRAM, run_cases
from program.run_folder import read_run_folder
from program.state import ProgramFile, load_program, program_hash, read_program_file, to_file, to_program

# A progress display, as program.display.RunDisplay.
Display = Callable[[int, str], AbstractContextManager[Any]]


def run_programs(
    programs: Sequence[GroundedQA],
    lms: Sequence[str],
    make_lm: Callable[[str], dspy.LM],
    cases: Sequence[Case],
    out: Path,
    *,
    display: Display,
    tell: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> list[Path]:
    """Run every program with every LM, those without prompts once, each in its own folder below `out`.

    A folder is resumed, so that what is finished costs nothing again. Every run gets an LM of its own, since an LM
    counts what it is used for. `options` are those of run_cases. Raises what run_cases raises.
    """
    folders: list[Path] = []
    told: set[str] = set()
    for program in programs:
        asks = hasattr(program.score, "predict")
        if asks and not lms:
            raise DataError(f"{program.name} asks an LM; name one with --lm (knn works offline)")
        for lm_name in lms if asks else [None]:
            folder = out / _folder_name(program, lm_name)
            lm = make_lm(lm_name) if lm_name else None
            for note in set(getattr(lm, "notes", ())) - told:
                tell(note)
                told.add(note)
            with display(len(cases), folder.name) as shown:
                run_cases(cases, program, lm, out=folder, on_case=shown.case_done, tell=tell, **options)
            folders.append(folder)
    return folders


def read_runs(folders: Sequence[Path]) -> list[ProgramRun]:
    """The runs in `folders`, with a label each: the program, the LM too where there are several, and a number where
    the same comes again. Raises DataError for a folder that holds no run."""
    found = [read_run_folder(folder) for folder in folders]
    lms = {str(manifest["lm"]["model"]) for manifest, _ in found if manifest["lm"]}
    stems = [Path(str(manifest["program"])).stem for manifest, _ in found]
    runs: list[ProgramRun] = []
    for folder, (manifest, records), stem in zip(folders, found, stems, strict=True):
        others = {str(m["program"]) for (m, _), s in zip(found, stems, strict=True) if s == stem}
        name = stem if len(others) == 1 else str(manifest["program"])
        label = f"{name}, {manifest['lm']['model']}" if manifest["lm"] and len(lms) > 1 else name
        again = sum(run.label == label or run.label.startswith(f"{label} (") for run in runs)
        file, unknown = _prompts(folder, manifest)
        runs.append(ProgramRun(f"{label} ({again + 1})" if again else label, folder, manifest, records, file, unknown))
    return runs


def _prompts(folder: Path, manifest: dict[str, Any]) -> tuple[ProgramFile | None, str]:
    """The program as it was run, or why its prompts are not known; neither for a program without prompts."""
    if manifest["lm"] is None:
        return None, ""
    stored = folder / PROGRAM
    try:
        if stored.exists():
            file = read_program_file(stored)
            program = to_program(file)
        else:
            program = load_program(str(manifest["program"]))
            if not hasattr(program.score, "predict"):
                return None, ""
            file = to_file(program, program.provenance)
    except DataError:
        return None, f"the program {Path(str(manifest['program'])).name} cannot be read any more"
    if program_hash(program) != manifest["program_hash"]:
        return None, f"the program {Path(str(manifest['program'])).name} has changed since its run"
    return file, ""


def _folder_name(program: GroundedQA, lm: str | None) -> str:
    """PROGRAM-LM; a program file also by its content, so that a new version of it is run anew."""
    parts = [Path(program.name).stem, lm or ""]
    if Path(program.name).suffix:
        parts.insert(1, program_hash(program)[:6])
    return "-".join(s for p in parts if (s := re.sub(r"[^\w.]+", "-", p).strip("-.")))
