"""The files of fitted models: the same when made again, as scikit-learn predicts, refused where they do not fit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from archehr.data.case import DataError
from archehr.data.dataset import read_cases
from archehr.optimize.students.fit import as_arrays
from archehr.optimize.students.shipped import FOLDER, sample_cases, shipped_file
from archehr.program.extractive.fitted.answerable import COMMON
from archehr.program.extractive.fitted.file import PARTS, SHIPPED, shipped
from archehr.program.extractive.fitted.odds import chance
from archehr.program.extractive.fitted.tfidf import cosines, idf, pieces
from archehr.program.extractive.text import content_terms
from archehr.program.prompts.program_file import load_program, program_hash
from archehr.program.run.records import fitted_cases
from archehr.program.run.run import run_cases

CASE = read_cases("sample/test")[0]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_file_is_byte_for_byte_what_the_command_makes(name: str) -> None:
    """After a change of features: python -m archehr.optimize.students.shipped."""
    assert shipped_file(name).as_text() == (FOLDER / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_file_tells_its_cases_and_no_word_of_fewer_than_three_of_them(name: str) -> None:
    cases = sample_cases(name)
    assert fitted_cases(load_program(name).provenance, cases) == [c.id for c in cases]
    having = [{t for s in case.sentences for t in content_terms(s.text)} for case in cases]
    listed = shipped(name).answerable.spread.counts
    assert all(sum(term in found for found in having) >= COMMON for term in listed)


def test_chances_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    rows, labels = random.normal(3, 2, (300, 12)), random.random(300) < 0.3
    fitted = make_pipeline(StandardScaler(), LogisticRegression(C=0.05)).fit(rows, labels)
    names = [f"f{i}" for i in range(12)]
    ours = as_arrays(fitted[0], fitted[1], names)
    assert abs(chance(ours.odds(rows, names)) - fitted.predict_proba(rows)[:, 1]).max() < 1e-9
    shuffled = random.permutation(12)
    same = ours.odds(rows[:, shuffled], [names[i] for i in shuffled])
    assert np.allclose(same, ours.odds(rows, names), atol=1e-9)


@given(st.lists(st.text("ab c\u00e9.-", max_size=12), min_size=2, max_size=6))
def test_cosines_and_pieces_are_those_of_scikit_learn(texts: list[str]) -> None:
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    try:
        rows = vectorizer.fit_transform(texts)
    except ValueError:  # no piece anywhere
        return
    ours = [pieces(text) for text in texts]
    assert np.allclose(cosines(ours, ours, idf(ours)), (rows @ rows.T).toarray(), atol=1e-9)


def test_an_answer_without_an_lm_imports_no_scikit_learn() -> None:
    code = (
        "import sys, archehr; case = archehr.read_cases('sample/test')[0]\n"
        "archehr.load_program('extractive')(case=case)\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('sklearn', 'scipy')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_fitted_file_answers_as_the_program_of_its_models(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(shipped("extractive-dev").as_text())
    mine, dev = load_program(path), load_program("extractive-dev")
    assert program_hash(mine) == program_hash(dev) != program_hash(load_program("extractive"))
    ours, theirs = (run_cases([CASE], program).records[0] for program in (mine, dev))
    assert ours.model_copy(update={"seconds": 0}) == theirs.model_copy(update={"seconds": 0})


def _weigh(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda raw: change(raw["evidence"]["logistic"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda raw: raw.update(format=9), "extractive model of format 9, this version reads 1; fit it again"),
        (lambda raw: raw.update(features=0), "extractive model of features 0, this version reads"),
        (lambda raw: raw.update(kind="other"), "program file"),
        (lambda raw: raw.pop("alignment"), "sha256 differs"),
        (lambda raw: [raw.pop(name) for name in PARTS], "an extractive program without a model"),
        (lambda raw: raw.update(alignment=[]), "not an extractive model, alignment"),
        (lambda raw: raw.update(code="os.system"), "not an extractive model, code"),
        (lambda raw: raw["alignment"].update(cut=2), "not an extractive model, alignment.cut"),
        (lambda raw: raw["evidence"].update(edges=[0.5, 0.4, 0.3, 0.2]), "edges are not in ascending order"),
        (_weigh(lambda part: part["weights"].pop()), "not of one length"),
        (_weigh(lambda part: part["names"].__setitem__(0, "unheard_of")), "weighs 1 features that this version"),
        (_weigh(lambda part: part["scale"].__setitem__(0, 0)), "evidence.logistic.scale.0"),
        (_weigh(lambda part: part["weights"].__setitem__(0, 5.0)), "sha256 differs"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    change: Callable[[dict[str, Any]], None], reason: str, tmp_path: Path
) -> None:
    raw = json.loads(shipped().as_text())
    change(raw)
    path = tmp_path / "p.json"
    path.write_text(json.dumps(raw))
    with pytest.raises(DataError, match=re.escape(reason)) as refused:
        load_program(path)
    assert str(path) in str(refused.value) and "\n" not in str(refused.value)
