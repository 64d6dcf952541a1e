"""What makes a comparison fair: the same cases and question for all, no demo among the cases, differences said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archehr.data.case import Case, DataError
from archehr.data.joined import data_label
from archehr.optimize.compare.program_run import ProgramRun
from archehr.program.run.records import fitted_cases
from archehr.program.settings import PipelineSettings
from archehr.program.stages.demos import made_from
from archehr.program.stages.views.vote import views_in_words

GENERIC_NAME = "archehr-qa"  # what the organisers call every file


def check_same_task(cases: Sequence[Case], runs: Sequence[ProgramRun]) -> None:
    """Raises DataError, naming the run, where one did not answer the cases, or not from the same question."""
    if not runs:
        raise DataError("nothing to compare; name programs, or run folders with --runs")
    for run in runs:
        if lacking := [c.id for c in cases if c.id not in run.records]:
            raise DataError(
                f"{run.folder}: has no answer to case {', '.join(lacking[:8])}{' …' if len(lacking) > 8 else ''}; "
                "finish the run, or compare on --cases that all have answered"
            )
    for name, remedy in (("data_sha256", "answer the same DATA"), ("question", "run all with the same --question")):
        for run in runs:
            if getattr(run.manifest, name) != getattr(runs[0].manifest, name):
                what = name.replace("data_sha256", "data")
                raise DataError(f"{run.folder} and {runs[0].folder}: runs on another {what}; {remedy}")


def demo_overlap(run: ProgramRun, cases: Sequence[Case]) -> dict[str, list[str]]:
    """Case id -> the stages whose demos show it, for the cases that a demo shows.

    Told by the demos' text, since ids repeat across data sets; by the ids in the provenance only where these are
    surely of the same data.
    """
    if run.file is None:
        return {}
    label = data_label(run.manifest.data)
    sure = label.startswith("sample/") or run.file.provenance.data_sha256 == run.manifest.data_sha256
    listed = run.file.provenance.demo_case_ids if sure else {}
    overlap: dict[str, list[str]] = {}
    for case in cases:
        name = f"{label} {case.id}"
        for stage, state in run.file.stages.items():
            if any(made_from(demo, case) for demo in state.demos) or any(
                source == name or source.startswith(f"{name} (") for source in listed.get(stage, ())
            ):
                overlap.setdefault(case.id, []).append(stage)
    return overlap


def in_sample(run: ProgramRun, cases: Sequence[Case]) -> str:
    """How the scores of `cases` flatter the program because it was made with them, or ""."""
    provenance = run.provenance
    seen, flag = fitted_cases(provenance, cases), run.manifest.in_sample
    if 0 < len(seen) < len(cases):
        return f"IN SAMPLE in part: it was fitted on {len(seen)} of these {len(cases)} cases, so its scores flatter"
    if seen or (flag and provenance.case_sha256 is None):
        return "IN SAMPLE: it was fitted on these cases, so its scores flatter"
    if flag:  # on other cases of the same data, known one by one
        return ""
    label = data_label(run.manifest.data)
    if provenance.data_sha256 and provenance.data == label != GENERIC_NAME:
        return f"PERHAPS IN SAMPLE: it was fitted on data also called {label}"
    return ""


def _votes(settings: PipelineSettings) -> str:
    """The views in words, where there is more to say of them than the cut."""
    usual = settings.votes == 1 and settings.views[0].name == "score"
    return "score" if usual else views_in_words(settings)


def setup_differences(runs: Sequence[ProgramRun]) -> dict[str, list[str]]:
    """Setting -> its value in each run ("-" where it has none, as without an LM), for settings of program, LM and
    software that are not the same in all that have them."""
    flat = [
        {
            **_flat("settings", run.manifest.settings.model_dump(mode="json", exclude={"views"})),
            "settings.views": _votes(run.manifest.settings),
            **_flat("lm", run.manifest.lm or {}),
            **_flat("versions", run.manifest.versions),
            "stages": ", ".join(run.manifest.stages),
        }
        for run in runs
    ]
    names = dict.fromkeys(name for settings in flat for name in settings if name != "lm.model")  # the labels say it
    values = {name: [settings.get(name, "-") for settings in flat] for name in names}
    return {name: row for name, row in values.items() if len({*row} - {"-"}) > 1}


def _flat(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {name: str(value)}
    return {k: v for key, part in value.items() for k, v in _flat(f"{name}.{key}", part).items()}
