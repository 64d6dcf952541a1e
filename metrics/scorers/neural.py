"""BERTScore and AlignScore (extra `neural`), on models the user names or has on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from archehr.data.case import DataError
from archehr.metrics.scorers.text import Unscorable, over_cases

# Official settings: distilbert-base-uncased, its layer 4, rescaled with the baseline F1 bert-score ships for that layer
# (rescale_baseline/en/distilbert-base-uncased.tsv), batches of 8.
_LAYER = 4
_BASELINE_F1 = 0.6014007
_BATCH = 8
# AlignScore (Zha et al. 2023), mode nli_sp: contexts are cut into groups of sentences of about this many words.
_CHUNK_WORDS = 350
_MAX_TOKENS = 512


class Missing(Exception):
    """A component cannot be computed here; the message says what to install or pass."""


def bertscore(
    predictions: Sequence[str], references: Sequence[str], model: str | None
) -> tuple[list[float], dict[int, str]]:
    """Rescaled BERTScore F1 per case (1 is identical, unrelated texts fall below 0), and no unscorable case.

    `model` is distilbert-base-uncased by name or folder; an empty prediction gets what a raw 0 rescales to, -1.51.
    Raises Missing without the extra or the model, DataError for a model that cannot be loaded.
    """
    _need(("torch", "transformers", "bert_score"), model, "--bertscore-model distilbert-base-uncased")
    assert model is not None
    import torch
    from bert_score.utils import bert_cos_score_idf

    tokenizer, encoder = _distilbert(model)
    # Start and end markers can be matched but do not count themselves.
    weights: defaultdict[int, float] = defaultdict(lambda: 1.0, {tokenizer.cls_token_id: 0, tokenizer.sep_token_id: 0})
    raw = [0.0] * len(predictions)
    # bert-score gives blank texts 0 as well, but asks newer tokenizers for a method they lost.
    filled = [i for i, texts in enumerate(zip(predictions, references, strict=True)) if all(t.strip() for t in texts)]
    if filled:
        expected, predicted = ([texts[i] for i in filled] for texts in (references, predictions))
        with torch.inference_mode():
            scores = bert_cos_score_idf(
                encoder, expected, predicted, tokenizer, weights, batch_size=_BATCH, device=_device()
            )
        for i, f1 in zip(filled, scores[..., 2].tolist(), strict=True):
            raw[i] = f1
    return [(f1 - _BASELINE_F1) / (1 - _BASELINE_F1) for f1 in raw], {}


def alignscore(
    predictions: Sequence[str], references: Sequence[str], checkpoint: Path | None, roberta: str | None
) -> tuple[list[float], dict[int, str]]:
    """AlignScore (0-1) per case: how far the reference supports each sentence of the prediction.

    `checkpoint` is AlignScore-base.ckpt and `roberta` roberta-base by name or folder. A blank prediction has no
    sentence: unscorable, 0. Raises Missing without the extra or the models, DataError for models that cannot be loaded.
    """
    _need(("torch", "transformers", "punkt"), checkpoint, "--alignscore-checkpoint AlignScore-base.ckpt")
    _need((), roberta, "--roberta-model roberta-base")
    model = _aligner(str(checkpoint), str(roberta))
    return over_cases(lambda prediction, reference: _align(model, prediction, reference), predictions, references)


def chunks(context: str) -> list[str]:
    """The context in groups of whole sentences, of about 350 words; short contexts are one group."""
    from punkt import sent_tokenize

    sentences = sent_tokenize(context) or [""]
    size = max(len(sentences) // (len(context.split()) // _CHUNK_WORDS + 1), 1)
    return [" ".join(sentences[i : i + size]) for i in range(0, len(sentences), size)]


def _align(model: tuple[Any, Any, Any], prediction: str, reference: str) -> float:
    from punkt import sent_tokenize

    claims = sent_tokenize(prediction)
    if not claims:
        raise Unscorable("the prediction has no sentence")
    contexts = chunks(reference)
    pairs = [(context, claim) for context in contexts for claim in claims]
    supported = [p for i in range(0, len(pairs), _BATCH) for p in _probabilities(model, pairs[i : i + _BATCH])]
    best = [max(supported[i :: len(claims)]) for i in range(len(claims))]
    return sum(best) / len(best)


def _probabilities(model: tuple[Any, Any, Any], pairs: list[tuple[str, str]]) -> list[float]:
    """The probability of "aligned", the first of three classes, for each (context, claim)."""
    import torch

    tokenizer, encoder, head = model
    contexts, claims = (list(texts) for texts in zip(*pairs, strict=True))
    options = {"max_length": _MAX_TOKENS, "padding": True, "return_tensors": "pt"}
    try:
        tokens = tokenizer(contexts, claims, truncation="only_first", **options)
    except Exception:
        # A claim that fills the window alone; the original falls back in the same way. The tokenizers' Rust side
        # raises plain Exception here.
        tokens = tokenizer(contexts, claims, truncation=True, **options)
    with torch.inference_mode():
        logits = head(encoder(**tokens.to(_device())).pooler_output)
        scores: list[float] = logits.softmax(dim=-1)[:, 0].tolist()
    return scores


@lru_cache(maxsize=1)
def _distilbert(model: str) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    _quiet()
    try:
        tokenizer = AutoTokenizer.from_pretrained(model, use_fast=False, model_max_length=_MAX_TOKENS)
        encoder = AutoModel.from_pretrained(model).eval().to(_device())
        encoder.transformer.layer = encoder.transformer.layer[:_LAYER]
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{model}: not a DistilBERT that can be loaded; name a model or the folder of one") from error
    return tokenizer, encoder


@lru_cache(maxsize=1)
def _aligner(checkpoint: str, roberta: str) -> tuple[Any, Any, Any]:
    """Tokenizer, encoder and three-way head. The checkpoint's encoder replaces that of roberta-base."""
    import torch
    from transformers import AutoTokenizer, RobertaConfig, RobertaModel

    _quiet()
    state = _weights(checkpoint)
    try:
        tokenizer = AutoTokenizer.from_pretrained(roberta)
        encoder = RobertaModel(RobertaConfig.from_pretrained(roberta))
    except (OSError, ValueError) as error:
        raise DataError(f"{roberta}: not a RoBERTa that can be loaded; name a model or the folder of one") from error
    head = torch.nn.Linear(encoder.config.hidden_size, 3)
    try:
        # Older transformers kept position_ids among the weights.
        encoder.load_state_dict(_below(state, "base_model.", "embeddings.position_ids"))
        head.load_state_dict(_below(state, "tri_layer."))
    except RuntimeError as error:
        raise DataError(
            f"{checkpoint}: its weights do not fit {roberta}; use the checkpoint's own base model"
        ) from error
    return tokenizer, encoder.eval().to(_device()), head.eval().to(_device())


def _weights(checkpoint: str) -> dict[str, Any]:
    """The state dict of a checkpoint, without running what its pickle may hold beside weights."""
    import argparse
    import pickle

    import torch

    try:
        # Hyperparameters may sit in a Namespace, which is inert.
        with torch.serialization.safe_globals([argparse.Namespace]):
            loaded = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise DataError(f"{checkpoint}: refused, its pickle holds more than weights; get the original file") from error
    except Exception as error:  # damaged pickles raise anything
        raise DataError(f"{checkpoint}: cannot be read as a checkpoint; is the file complete?") from error
    state = loaded.get("state_dict") if isinstance(loaded, dict) else None
    if not isinstance(state, dict):
        raise DataError(f"{checkpoint}: holds no state_dict; is this AlignScore-base.ckpt?")
    return state


def _below(state: dict[str, Any], prefix: str, *but: str) -> dict[str, Any]:
    inner = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    return {name: value for name, value in inner.items() if name not in but}


def _need(modules: tuple[str, ...], model: object, option: str) -> None:
    if any(find_spec(module) is None for module in modules):
        raise Missing(f"needs the extra, pip install '.[neural]' in the clone, and {option}")
    if model is None:
        raise Missing(f"needs its model, pass {option}, a name or a path")


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _quiet() -> None:
    """Loading reports of transformers are not results."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
