"""The whole of `archehr optimize --program extractive`: labels, fit, program file, report."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from archehr.data.case import Case, DataError
from archehr.data.dataset import Dataset, case_sha256, data_sha256
from archehr.data.joined import data_label
from archehr.optimize.report import gain_in_words
from archehr.optimize.session import check_target
from archehr.optimize.students.examples import labelled_by_run, sure_by_run
from archehr.optimize.students.shipped import sample_cases
from archehr.optimize.students.student import Student, fit_student
from archehr.program.extractive.fitted.file import SHIPPED, FittedFile, shipped
from archehr.program.extractive.fitted.logistic import Part
from archehr.program.prompts.program_file import save_program_file
from archehr.program.prompts.provenance import Provenance
from archehr.program.run.folder import read_run_folder
from archehr.program.run.records import fitted_cases


def fit_to_file(
    data: Dataset,
    out: Path,
    *,
    labels: Path | None = None,
    start_from: str | None = None,
    publish: Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[str, FittedFile]:
    """Fit on the gold of `data`, or on what the run in `labels` said of it; write `out`; return the report and the
    file. `start_from="shipped"` learns from the shipped cases too. Raises DataError."""
    if start_from not in (None, "shipped"):
        raise DataError(f"--start-from {start_from}: it is shipped, or left out")
    for option, path in {"--out": out, "--publish": publish}.items():
        if path is not None:
            check_target(path, option)
    taught, sure = (list(data.cases), {}) if labels is None else _labelled(data, labels)
    judged = list(data.cases) if any(c.gold for c in data.cases) else taught
    also = _others(data.cases) if start_from else []
    beside = _fairest(data.cases)
    student = fit_student(taught, judged, shipped(beside), shipped(), also, sure)
    for line in student.left:
        tell(f"{line}: the shipped model stays")
    provenance = _provenance(data, taught, also, student, beside, labels, start_from)
    file = FittedFile.of(student.evidence, student.alignment, None, provenance.told())
    save_program_file(file, out)
    if publish is not None:
        save_program_file(file, publish)
    tell(f"{out} holds weights of features and no word of the data: it may be shared")
    return "\n".join(_report(student, data.cases, beside, judged is taught and labels is not None)), file


def _labelled(data: Dataset, folder: Path) -> tuple[list[Case], dict[str, Any]]:
    """The cases as an LM's run labelled them, and how sure it was where several replies voted. Raises DataError for a
    run of other data, or without an LM."""
    manifest, records = read_run_folder(folder)
    if manifest.data_sha256 != data.sha256:
        raise DataError(f"{folder}: a run of other data than {data.name}; give the DATA that it answered")
    if manifest.lm is None:
        raise DataError(f"{folder}: a run without an LM, which has nothing to teach; give one made with --lm")
    return labelled_by_run(data.cases, records), sure_by_run(records)


def _others(cases: Sequence[Case]) -> list[Case]:
    """The shipped cases that are not among `cases`, under ids of their own."""
    given = set(case_sha256(cases))
    known = sample_cases(SHIPPED[0])
    return [c for c, sha in zip(known, case_sha256(known), strict=True) if sha not in given]


def _fairest(cases: Sequence[Case]) -> str:
    """The shipped model to measure beside: the first that was fitted on none of the cases, else the first."""
    seen = {name: fitted_cases(Provenance.model_validate(shipped(name).provenance), cases) for name in SHIPPED}
    return next((name for name in SHIPPED if not seen[name]), SHIPPED[0])


def _provenance(
    data: Dataset,
    taught: Sequence[Case],
    also: Sequence[Case],
    student: Student,
    beside: str,
    labels: Path | None,
    start_from: str | None,
) -> Provenance:
    packages = ("archehr-dspy", "scikit-learn")
    return Provenance(
        made_by="archehr optimize --program extractive",
        options={"labels": "a run" if labels else "gold", "start_from": start_from},
        versions={p: importlib.metadata.version(p) for p in packages},
        data=data_label(data.name),
        data_sha256=data_sha256(data.cases),
        case_sha256=case_sha256([*taught, *also]),
        scores={
            name if name != "shipped" else beside: {
                f"subtask_{n}": {"score": score, **{k: round(v, 3) for k, v in interval.as_dict().items()}}
                for n, (score, interval) in student.intervals(name).items()
            }
            for name in student.tables
        },
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _report(student: Student, cases: Sequence[Case], beside: str, by_run: bool) -> Iterator[str]:
    names = {"in_sample": "in_sample", "out_of_sample": "out_of_sample", "shipped": beside}
    shown = {title: student.intervals(name) for name, title in names.items()}
    yield " ".join([f"{'subtask, score':<24}", *(f"{title:<20}" for title in shown)]).rstrip()
    for subtask, (score, _) in shown["in_sample"].items():
        found = [intervals[subtask][1] for intervals in shown.values()]
        cells = [f"{i.value:.1f} ({i.low:.1f}-{i.high:.1f})" for i in found]
        yield " ".join([f"{f'{subtask} {score}':<24}", *(f"{cell:<20}" for cell in cells)]).rstrip()
    if by_run:
        yield "measured by what the run said: how well the student agrees with its teacher, not how good either is"
    seen = len(fitted_cases(Provenance.model_validate(shipped(beside).provenance), cases))
    flatters = f" (IN SAMPLE: it was fitted on {seen} of these cases)" if seen else ""
    for subtask, gain in student.gains().items():
        count = len(student.tables["out_of_sample"][subtask].case_ids)
        yield f"subtask {subtask}, out of sample against {beside}{flatters}: {gain_in_words(gain, count)}"
    for name in ("evidence", "alignment"):
        if (ours := getattr(student, name)) is not None:
            yield from _chosen(name, ours, getattr(shipped(), name))
    yield "whether a note answers at all is judged by the shipped model"


def _chosen(name: str, ours: Part, usual: Part) -> Iterator[str]:
    before, after = constants(usual), constants(ours)
    changed = [f"{key} {before[key]} -> {after[key]}" for key in after if after[key] != before[key]]
    yield f"{name}: {', '.join(changed) or 'the usual constants: none other was better in four of five folds'}"


def constants(model: Part) -> Mapping[str, Any]:
    """What of a model is neither weights nor words."""
    return model.model_dump(mode="json", exclude={"logistic", "spread"})
