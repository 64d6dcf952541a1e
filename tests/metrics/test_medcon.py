"""Needs `pip install '.[medcon]'`; run with `pytest -m medcon`. The formula itself is tested without it."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from archehr.data.case import DataError
from archehr.metrics.scorers import medcon
from archehr.metrics.scorers.neural import Missing

VECTORS = Path(__file__).parents[1] / "vectors"
needs_quickumls = [
    pytest.mark.medcon,
    pytest.mark.skipif(
        find_spec("quickumls") is None or find_spec("spacy") is None,
        reason="the extra is not installed: pip install '.[medcon]', then pytest -m medcon",
    ),
]


def pairs():
    for name in ("text_subtask1.json", "text_subtask3.json"):
        yield from json.loads((VECTORS / name).read_text(encoding="utf-8"))["pairs"]


@pytest.mark.parametrize("variant", ["default", "lower"])
def test_official_values_from_the_recorded_concepts(variant):
    scored = 0
    for pair in pairs():
        reference, prediction = (pair["medcon_detail"][variant][side][0] for side in ("reference", "prediction"))
        expected = pair["expected"][f"medcon_{variant}"]
        assert medcon.concept_f1(reference, prediction) == pytest.approx(expected, abs=1e-12), pair["name"]
        scored += expected > 0
    assert scored > 10


def test_synonyms_in_the_reference_lift_the_score_over_1():
    # Two reference terms, one CUI; one predicted term: hits 2, precision 2/1, recall 2/2, F1 4/3.
    assert medcon.concept_f1({"fever": ["C1"], "pyrexia": ["C1"]}, {"fever": ["C1"]}) == pytest.approx(4 / 3)
    assert medcon.concept_f1({"fever": ["C1"]}, {"fever": ["C1"], "pain": ["C2"]}) == pytest.approx(2 / 3)


def test_no_concept_scores_0_even_for_identical_texts():
    assert medcon.concept_f1({}, {}) == 0


def test_what_is_missing_is_said():
    with pytest.raises(Missing, match="umls-index"):
        medcon.medcon(["x"], ["x"], None)


def build_index(folder, *flags):
    from quickumls import install

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(install, "install_spacy", lambda lang: None)
        patch.setattr(sys, "argv", ["install", *flags, str(VECTORS / "mini_umls"), str(folder)])
        install.main()
    return medcon._matcher(str(folder))


def recorded_docs():
    """text -> the Doc the official run had, with its part-of-speech tags."""
    import spacy
    from spacy.tokens import Doc

    vocab = spacy.blank("en").vocab
    texts = json.loads((VECTORS / "medcon_detail.json").read_text(encoding="utf-8"))["texts"]
    for text in texts:
        words, _, spaces, tags, *_, lemmas = zip(*text["tokens"], strict=True)
        yield text, Doc(vocab, words=list(words), spaces=[bool(s) for s in spaces], pos=list(tags), lemmas=list(lemmas))


class TestQuickUmls:
    pytestmark = needs_quickumls

    def test_concepts_equal_the_official_run_given_its_tags(self, tmp_path):
        matcher, seen = build_index(tmp_path), 0
        for text, doc in recorded_docs():
            assert [list(ngram) for ngram in matcher._make_ngrams(doc)] == text["ngrams"]
            found = medcon.concepts(matcher, doc)
            assert found == text["concepts"], text["text"]
            seen += bool(found)
        assert seen > 20

    @pytest.mark.parametrize(("variant", "flags"), [("default", []), ("lower", ["-L"])])
    def test_pairs_equal_the_official_run_given_its_tags(self, tmp_path, variant, flags):
        matcher = build_index(tmp_path, *flags)
        docs = {text["text"]: doc for text, doc in recorded_docs()}
        scored = 0
        for pair in pairs():
            if pair["reference"] in docs and pair["prediction"] in docs:
                found = [medcon.concepts(matcher, docs[pair[side]]) for side in ("reference", "prediction")]
                assert medcon.concept_f1(*found) == pytest.approx(pair["expected"][f"medcon_{variant}"], abs=1e-12)
                scored += 1
        assert scored > 20

    def test_a_folder_without_index_is_one_line(self, tmp_path):
        with pytest.raises(DataError, match="not a QuickUMLS index"):
            medcon._matcher(str(tmp_path))

    def test_a_missing_tagger_is_said(self, tmp_path):
        with pytest.raises(Missing, match="spacy download no_such_model"):
            medcon.medcon(["x"], ["x"], tmp_path, "no_such_model")
