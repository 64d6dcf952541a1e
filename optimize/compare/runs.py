"""The whole of `archehr compare`: runs what is not yet run (or says what that would take), takes finished runs as they
are, writes tables and page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from archehr.data.case import Case, DataError
from archehr.data.dataset import Dataset
from archehr.data.files import write_private
from archehr.metrics.components import Resources
from archehr.optimize.compare.compare import Comparison, compare
from archehr.optimize.compare.html import write_page
from archehr.optimize.compare.program_run import ProgramRun
from archehr.optimize.compare.tables import frame, markdown
from archehr.program.extractive.fitted.file import FittedFile
from archehr.program.pipeline import GroundedQA, QuestionSource
from archehr.program.prompts.program_file import (
    BUILT_IN,
    ProgramFile,
    load_program,
    program_hash,
    read_any_program,
    read_program_file,
    to_file,
    to_program,
)
from archehr.program.run.estimate import StageEstimate, estimate, left_of
from archehr.program.run.folder import read_run_folder
from archehr.program.run.job import Job
from archehr.program.run.manifest import Manifest
from archehr.program.run.run import PROGRAM, run_cases
from archehr.program.settings import PRESETS, parse_views
from archehr.program.stage_lms import LMs, each, in_words, with_lms
from archehr.program.stages.registry import STAGES
from archehr.program.types import StageName

# A progress display, as program.display.RunDisplay.
Display = Callable[[int, str], AbstractContextManager[Any]]
# An LM by its name, or LMs by stage; "" is that of the stages not named.
Names = str | Mapping[StageName, str]


def compare_to_folder(
    data: Dataset,
    programs: Sequence[str],
    lms: Sequence[Names],
    run_folders: Sequence[Path],
    out: Path,
    *,
    make_lm: Callable[[Any], LMs],
    display: Display,
    tell: Callable[[str], None],
    baseline: str | None = None,
    keep_demo_cases: bool = False,
    resources: Resources | None = None,
    demo_cases: Sequence[Case] | None = None,
    settings: Mapping[str, Any] | None = None,
    views: Sequence[str] = (),
    **options: Any,
) -> Comparison:
    """Compare `programs`, run in `out`/runs, and `run_folders`; write comparison.csv, .md and .html to `out`.

    A folder among `programs` is taken for a run folder: of `--runs DIR/*` the option takes only the first.
    `demo_cases` fill the demos of published program files, `settings` replaces those that it names in every program,
    and each that asks an LM is run with each of `views`, as "score,answer_first". `options` are those of run_cases.
    Raises DataError, and what run_cases raises.
    """
    _make_folder(out)
    finished = finished_runs(programs)
    loaded = _loaded(programs, settings, views, demo_cases)
    folders = run_programs(loaded, lms, make_lm, data, out / "runs", display=display, tell=tell, **options)
    runs = read_runs([*folders, *run_folders, *map(Path, finished)])
    compared = compare(tuple(data.cases), runs, baseline=baseline, keep_demo_cases=keep_demo_cases, resources=resources)
    write_private(out / "comparison.csv", frame(compared).to_csv(index=False))
    write_private(out / "comparison.md", markdown(compared))
    write_page(compared, out / "comparison.html")
    tell(f"{out / 'comparison.html'} holds note text; keep it as you keep the data")
    return compared


def finished_runs(programs: Sequence[str]) -> list[str]:
    """Those of `programs` that name a run folder, as a shell fills in `--runs DIR/*`."""
    return [name for name in programs if name not in BUILT_IN and Path(name).is_dir()]


def planned_runs(
    programs: Sequence[GroundedQA], lms: Sequence[Names], out: Path
) -> Iterator[tuple[GroundedQA, Names | None, Path]]:
    """Every program with every LM, those without prompts once, and the folder of each run below `out`. Raises
    DataError for a program that asks an LM where none is named."""
    for program in programs:
        asks = hasattr(program.score, "predict")
        if asks and not lms:
            raise DataError(f"{program.name} asks an LM; name one with --lm (knn works offline)")
        for names in lms if asks else [None]:
            yield program, names, out / _folder_name(program, names)


def _loaded(
    programs: Sequence[str],
    settings: Mapping[str, Any] | None,
    views: Sequence[str],
    demo_cases: Sequence[Case] | None,
) -> list[GroundedQA]:
    """The programs that are to be run, each that asks an LM with each of `views`."""
    finished = finished_runs(programs)
    names = [name for name in programs if name not in finished]
    return [program for name in names for program in _with_views(name, dict(settings or {}), views, demo_cases)]


def _with_views(
    name: str, settings: Mapping[str, Any], views: Sequence[str], demo_cases: Sequence[Case] | None
) -> list[GroundedQA]:
    """The program with each of `views`; as it is where there are none, or it asks no LM."""
    program = load_program(name, settings or None, demo_cases)
    if not views or not program.asks_lm:
        return [program]
    return [load_program(name, {**settings, "views": parse_views(text)}, demo_cases) for text in views]


def run_programs(
    programs: Sequence[GroundedQA],
    lms: Sequence[Names],
    make_lm: Callable[[Any], LMs],
    data: Dataset,
    out: Path,
    *,
    display: Display,
    tell: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> list[Path]:
    """Run every program with every LM (an item of `lms`, as `make_lm` takes it), those without prompts once, each in
    its own folder below `out`.

    A folder is resumed, so that what is finished costs nothing again. Every run gets LMs of its own, since an LM
    counts what it is used for. `options` are those of run_cases. Raises what run_cases raises.
    """
    folders: list[Path] = []
    tell = _once(tell)
    for program, names, folder in planned_runs(programs, lms, out):
        asked = make_lm(names) if names else None
        for note in (note for lm in each(asked) for note in getattr(lm, "notes", ())):
            tell(note)
        with display(len(data.cases), folder.name) as progress:
            run_cases(data, program, asked, out=folder, on_case=progress.case_done, tell=tell, **options)
        folders.append(folder)
    return folders


@dataclass(frozen=True)
class RunEstimate:
    """Of one run: `cases` to answer, `done` before, what the stages would take, and the LMs asked."""

    cases: int
    done: int
    stages: Mapping[str, StageEstimate]
    lms: Sequence[dspy.BaseLM]


def estimate_comparison(
    data: Dataset,
    programs: Sequence[str],
    lms: Sequence[Names],
    out: Path,
    *,
    make_lm: Callable[[Any], LMs],
    demo_cases: Sequence[Case] | None = None,
    settings: Mapping[str, Any] | None = None,
    views: Sequence[str] = (),
    question: QuestionSource = "own",
    fresh: bool = False,
) -> dict[str, RunEstimate]:
    """By run folder what `compare_to_folder` would take; programs that ask no LM, and finished runs, take nothing.

    Programs whose prompts are the same share replies through the cache, which is not reckoned with. Raises DataError
    as the comparison would before its first call.
    """
    loaded = _loaded(programs, settings, views, demo_cases)
    estimates: dict[str, RunEstimate] = {}
    for program, names, folder in planned_runs(loaded, lms, out / "runs"):
        asked = make_lm(names) if names else None
        own, lm = with_lms(program, asked)
        left = left_of(data.cases, None if fresh else folder)
        stages = estimate(Job(own, lm, question, tuple(STAGES)), left) if left and own.asks_lm else {}
        estimates[folder.name] = RunEstimate(len(left), len(data.cases) - len(left), stages, each(asked))
    return estimates


def _once(tell: Callable[[str], None]) -> Callable[[str], None]:
    """`tell` for several runs, most of whose lines are the same."""
    told: set[str] = set()

    def tell_first(line: str) -> None:
        if line not in told:
            told.add(line)
            tell(line)

    return tell_first


def read_runs(folders: Sequence[Path]) -> list[ProgramRun]:
    """The runs in `folders`, with a label each: the program, its views and its LM too where there are several, and a
    number where the same comes again. Raises DataError for a folder that holds no run."""
    contents = [read_run_folder(folder) for folder in folders]
    lms = {in_words(manifest.lm) for manifest, _ in contents if manifest.lm}
    views = {_views(manifest) for manifest, _ in contents if manifest.lm}
    stems = [Path(manifest.program).stem for manifest, _ in contents]
    runs: list[ProgramRun] = []
    for folder, (manifest, records), stem in zip(folders, contents, stems, strict=True):
        others = {str(m.program) for (m, _), s in zip(contents, stems, strict=True) if s == stem}
        name = stem if len(others) == 1 else manifest.program
        parts = [_views(manifest)] if manifest.lm and len(views) > 1 else []
        parts += [in_words(manifest.lm)] if manifest.lm and len(lms) > 1 else []
        label = ", ".join([name, *parts])
        again = sum(run.label == label or run.label.startswith(f"{label} (") for run in runs)
        file, unknown = _prompts(folder, manifest)
        runs.append(
            ProgramRun(
                f"{label} ({again + 1})" if again else label, folder, manifest, records, file, unknown, _fitted(folder)
            )
        )
    return runs


def _views(manifest: Manifest) -> str:
    return "+".join(map(str, manifest.settings.views))


def _prompts(folder: Path, manifest: Manifest) -> tuple[ProgramFile | None, str]:
    """The program as it was run, or why its prompts are not known; neither for a program without prompts."""
    if manifest.lm is None:
        return None, ""
    stored = folder / PROGRAM
    try:
        if stored.exists():
            file = read_program_file(stored)
            program = to_program(file)
        else:
            program = load_program(manifest.program)
            if not hasattr(program.score, "predict"):
                return None, ""
            file = to_file(program, program.provenance)
    except DataError:
        return None, f"the program {Path(manifest.program).name} cannot be read any more"
    if program_hash(program) != manifest.program_hash:
        return None, f"the program {Path(manifest.program).name} has changed since its run"
    return file, ""


def _fitted(folder: Path) -> FittedFile | None:
    """The fitted models that answered, as the run kept them; None where there are none or they cannot be read."""
    try:
        file = read_any_program(folder / PROGRAM)
    except DataError:
        return None
    return file if isinstance(file, FittedFile) else None


def _folder_name(program: GroundedQA, names: Names | None) -> str:
    """PROGRAM-VIEWS-LM, without the default's one view; a program file also by its content, so that a new version of it
    is run anew."""
    views = program.settings.views
    named = [] if views == PRESETS["default"].views else [str(view) for view in views]
    by_stage = {"": names} if isinstance(names, str) else names or {}
    lms = (f"{stage}-{name}" if stage else name for stage, name in by_stage.items())
    parts = [Path(program.name).stem, *named, *lms]
    if Path(program.name).suffix:
        parts.insert(1, program_hash(program)[:6])
    return "-".join(s for p in parts if (s := re.sub(r"[^\w.]+", "-", p).strip("-.")))


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be made ({error.strerror}); name another --out") from None
