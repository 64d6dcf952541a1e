"""Needs `pip install '.[neural]'`; run with `pytest -m neural`. Stand-in weights pin the algorithm, not its values."""

import argparse
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from archehr.data.case import DataError
from archehr.metrics.components import Resources
from archehr.metrics.score import score_submission
from archehr.metrics.scorers import neural

VECTORS = Path(__file__).parents[1] / "vectors"
DISTILBERT = str(VECTORS / "tiny_models" / "distilbert-base-uncased")
ROBERTA = str(VECTORS / "tiny_models" / "roberta-base")
CHECKPOINT = VECTORS / "tiny_models" / "AlignScore-base.ckpt"
needs_models = [
    pytest.mark.neural,
    pytest.mark.skipif(
        any(find_spec(m) is None for m in ("torch", "transformers", "bert_score", "punkt")),
        reason="the extra is not installed: pip install '.[neural]', then pytest -m neural",
    ),
]


def load(name):
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def test_without_a_model_the_remedy_is_said():
    with pytest.raises(neural.Missing, match="--bertscore-model"):
        neural.bertscore(["x"], ["x"], None)
    with pytest.raises(neural.Missing, match="--alignscore-checkpoint"):
        neural.alignscore(["x"], ["x"], None, ROBERTA)


class TestModels:
    pytestmark = needs_models

    @pytest.mark.parametrize("name", ["text_subtask1.json", "text_subtask3.json"])
    def test_official_values(self, name):
        pairs = load(name)["pairs"]
        texts = [p["prediction"] for p in pairs], [p["reference"] for p in pairs]
        expected = {
            score: [p["expected_tiny_models"][score] for p in pairs] for score in ("bertscore_f1", "alignscore")
        }
        assert neural.bertscore(*texts, DISTILBERT)[0] == pytest.approx(expected["bertscore_f1"], abs=1e-5, rel=0)
        scores, unscorable = neural.alignscore(*texts, CHECKPOINT, ROBERTA)
        assert scores == pytest.approx(expected["alignscore"], abs=1e-5, rel=0) and not unscorable

    def test_chunking_and_truncation_of_long_texts(self):
        for vector in load("alignscore_long.json")["vectors"]:
            scores, unscorable = neural.alignscore([vector["claim"]], [vector["context"]], CHECKPOINT, ROBERTA)
            if "error" in vector["expected"]:
                assert scores == [0] and "no sentence" in unscorable[0]
            else:
                assert len(neural.chunks(vector["context"])) == vector["n_chunks"]
                assert scores[0] == pytest.approx(vector["expected"]["alignscore"], abs=1e-5, rel=0), vector["name"]

    def test_an_empty_prediction_gets_the_rescaled_0(self):
        scores, _ = neural.bertscore(["", "fever"], ["fever", "fever"], DISTILBERT)
        assert scores == pytest.approx([-1.5088, 1.0], abs=1e-4)

    def test_a_component_computed_is_no_longer_missing(self):
        from archehr.data.case import Case

        case = Case("1", narrative="n", clinician_question="Why a stent?")
        resources = Resources(bertscore_model=DISTILBERT, alignscore_checkpoint=CHECKPOINT, roberta_model=ROBERTA)
        result = score_submission([{"case_id": "1", "prediction": "Why a stent?"}], [case], 1, resources=resources)
        assert result.leaderboard["bertscore"] == pytest.approx(100, abs=1e-3)
        assert set(result.missing) == {"medcon"} and result.mean_of == ["alignscore", "rougeLsum", "bertscore"]

    def test_a_checkpoint_that_runs_code_is_refused_unrun(self, tmp_path):
        import torch

        class Evil:
            def __reduce__(self):
                return (Path.touch, (tmp_path / "ran",))

        torch.save({"state_dict": {}, "hyper_parameters": Evil()}, tmp_path / "evil.ckpt")
        with pytest.raises(DataError, match="more than weights"):
            neural._weights(str(tmp_path / "evil.ckpt"))
        assert not (tmp_path / "ran").exists()

    def test_hyperparameters_in_a_namespace_are_accepted(self, tmp_path):
        import torch

        state = {"tri_layer.bias": torch.zeros(3)}
        torch.save({"state_dict": state, "hyper_parameters": argparse.Namespace(model="m")}, tmp_path / "c.ckpt")
        assert list(neural._weights(str(tmp_path / "c.ckpt"))) == ["tri_layer.bias"]

    @pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\x80\x02."])
    def test_broken_checkpoints_are_one_line(self, tmp_path, content):
        (tmp_path / "c.ckpt").write_bytes(content)
        with pytest.raises(DataError, match=r"c\.ckpt"):
            neural._weights(str(tmp_path / "c.ckpt"))

    def test_models_that_are_not_there_are_one_line(self, tmp_path):
        with pytest.raises(DataError, match="not a DistilBERT"):
            neural.bertscore(["x"], ["x"], str(tmp_path))
        with pytest.raises(DataError, match="not a DistilBERT"):
            neural.bertscore(["x"], ["x"], ROBERTA)
        with pytest.raises(DataError, match="not a RoBERTa"):
            neural.alignscore(["x"], ["x"], CHECKPOINT, str(tmp_path))
        with pytest.raises(DataError, match=r"none\.ckpt"):
            neural.alignscore(["x"], ["x"], tmp_path / "none.ckpt", ROBERTA)
