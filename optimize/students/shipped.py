"""`python -m archehr.optimize.students.shipped` fits the models that are part of the package and writes their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from archehr.data.case import Case
from archehr.data.dataset import case_sha256, data_sha256, read_cases
from archehr.data.files import shipped_sample
from archehr.optimize.students.answerable import fit_answerable
from archehr.optimize.students.examples import pairs_by_key, sentences_by_key
from archehr.optimize.students.fit import fit_alignment, fit_evidence
from archehr.program.extractive.fitted import file as fitted_file
from archehr.program.extractive.fitted.file import FittedFile

SAMPLES = {"extractive": ("dev", "test"), "extractive-dev": ("dev",), "extractive-test": ("test",)}
FOLDER = Path(fitted_file.__file__).parent


def sample_cases(name: str) -> list[Case]:
    """The shipped cases that the shipped model of that name is fitted on."""
    return [case for sample in SAMPLES[name] for case in read_cases(shipped_sample(sample))]


def shipped_file(name: str) -> FittedFile:
    """The file of that name, fitted anew with the usual constants: byte by byte the shipped one."""
    cases = sample_cases(name)
    provenance = {
        "made_by": "python -m archehr.optimize.students.shipped",
        "data": ", ".join(f"sample/{sample}" for sample in SAMPLES[name]),
        "data_sha256": data_sha256(cases),
        "case_sha256": case_sha256(cases),
    }
    evidence, alignment = fit_evidence(sentences_by_key(cases)), fit_alignment(pairs_by_key(cases))
    return FittedFile.of(evidence, alignment, fit_answerable(cases), provenance)


def write(names: Sequence[str] = tuple(SAMPLES), folder: Path = FOLDER) -> None:
    """Write the files of these names."""
    for name in names:
        (folder / f"{name}.json").write_text(shipped_file(name).as_text(), encoding="utf-8")


if __name__ == "__main__":
    write()
