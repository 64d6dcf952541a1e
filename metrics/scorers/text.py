"""ROUGE, BLEU and SARI per case, equal to what the official scorers get from `evaluate`, without its bootstrap."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
_MAX_N = 4


class Unscorable(ValueError):
    """The official formula has no value for this text; the message says why."""


def rouge(prediction: str, reference: str) -> dict[str, float]:
    """F1 (0-1) of ROUGE-1, -2, -L and -Lsum: rouge_score without stemming, as in the official rouge_scorer.py.

    rougeLsum splits on line breaks only, so it equals rougeL on single lines. Only [a-z0-9] makes tokens.
    """
    return dict(zip(ROUGE, _rouge(prediction, reference), strict=True))


@lru_cache(maxsize=2_000)  # each of the four is a component, and one search finds them all
def _rouge(prediction: str, reference: str) -> tuple[float, ...]:
    # On single lines the two longest-common-subsequence scores are one, and finding it takes nearly all the time.
    names = ROUGE if "\n" in prediction or "\n" in reference else ROUGE[:3]
    scores = {name: float(score.fmeasure) for name, score in _rouge_scorer(names).score(reference, prediction).items()}
    return tuple(scores.get(name, scores["rougeL"]) for name in ROUGE)


def rouge_l_sum(prediction: str, reference: str) -> float:
    """F1 (0-1) of ROUGE-Lsum, the ROUGE of the official overall score."""
    return rouge(prediction, reference)["rougeLsum"]


def bleu(prediction: str, reference: str) -> float:
    """BLEU-4 (0-1) of one case against one reference: 13a tokens, case kept, no smoothing (tensorflow/nmt).

    0 when any n-gram precision is 0, so also for identical texts of under four tokens. Raises Unscorable when either
    text has no token; the official script divides by zero there.
    """
    predicted, expected = _tokens(prediction), _tokens(reference)
    if not predicted or not expected:
        raise Unscorable(f"the {'prediction' if not predicted else 'reference'} has no tokens")
    precisions = []
    for n in range(1, _MAX_N + 1):
        grams = _ngrams(predicted, n)
        matched = (grams & _ngrams(expected, n)).total() if grams else 0
        precisions.append(matched / grams.total() if grams else 0.0)
    if min(precisions) == 0:
        return 0.0
    ratio = len(predicted) / len(expected)
    brevity = 1.0 if ratio > 1 else math.exp(1 - 1 / ratio)
    return brevity * math.exp(sum(math.log(p) for p in precisions) / _MAX_N)


def sari(source: str, prediction: str, reference: str) -> float:
    """SARI (0-100) with one reference (Xu et al. 2016), as `evaluate` computes it: lower case, 13a, n-grams 1-4.

    What was kept, deleted and added against the source, compared with the reference. 0/0 counts as 1, so unrelated
    texts score high.
    """
    # Splitting on single blanks keeps the empty text as one empty token, as the original does.
    texts = [" ".join(_tokens(text.lower())).split(" ") for text in (source, prediction, reference)]
    parts = [_sari_n(*(_ngrams(text, n) for text in texts)) for n in range(1, _MAX_N + 1)]
    keep, delete, add = (sum(scores) / _MAX_N for scores in zip(*parts, strict=True))
    return 100 * (keep + delete + add) / 3


def over_cases(metric: Callable[..., float], *texts: Sequence[str]) -> tuple[list[float], dict[int, str]]:
    """`metric` case by case, and why a case (by position) could not be scored; such a case counts 0.

    0 and not left out: leaving a case out of the mean would reward the prediction that broke it.
    """
    scores, unscorable = [], {}
    for i, row in enumerate(zip(*texts, strict=True)):
        try:
            scores.append(metric(*row))
        except Unscorable as error:
            scores.append(0.0)
            unscorable[i] = str(error)
    _forget_tokens()
    return scores, unscorable


def _sari_n(source: Counter[Any], prediction: Counter[Any], reference: Counter[Any]) -> tuple[float, float, float]:
    """F1 of keeping, precision of deleting, F1 of adding."""
    kept, should_keep = _common(source, prediction), _common(source, reference)
    well_kept = _common(kept, reference)
    keep_precision = _over(sum(well_kept[g] / kept[g] for g in well_kept), len(kept))
    # Recall divides by occurrences, precision by types: so it stands in the implementation the official scorer uses.
    keep_recall = _over(sum(well_kept.values()), sum(should_keep.values()))
    deleted = _without(source, prediction)
    well_deleted = _without(deleted, reference)
    delete_precision = _over(sum(well_deleted[g] / deleted[g] for g in well_deleted), len(deleted))
    added, should_add = set(prediction) - set(source), set(reference) - set(source)
    well_added = len(added & should_add)
    return (
        _f1(keep_precision, keep_recall),
        delete_precision,
        _f1(_over(well_added, len(added)), _over(well_added, len(should_add))),
    )


# As Counter's & and -, which ask in a slow way for what the other side lacks: most of a source, at n-grams.
def _common(a: Mapping[Any, int], b: Mapping[Any, int]) -> dict[Any, int]:
    return {g: min(n, other) for g, n in a.items() if (other := b.get(g))}


def _without(a: Mapping[Any, int], b: Mapping[Any, int]) -> dict[Any, int]:
    return {g: left for g, n in a.items() if (left := n - b.get(g, 0)) > 0}


def _over(above: float, below: int) -> float:
    return above / below if below else 1.0


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(_windows(tokens, n))


def _windows(tokens: Sequence[str], n: int) -> Iterable[tuple[str, ...]]:
    return zip(*(tokens[i:] for i in range(n)), strict=False)


def _tokens(text: str) -> list[str]:
    tokens: list[str] = _tokenizer_13a()(text).split()
    return tokens


def _forget_tokens() -> None:
    """sacrebleu keeps the last 65,536 texts and their tokens, which are 100 MB and more where cases are many."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

    for tokenizer in (Tokenizer13a, TokenizerRegexp):
        tokenizer.__call__.cache_clear()


@lru_cache(maxsize=1)
def _tokenizer_13a() -> Any:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    return Tokenizer13a()


@lru_cache(maxsize=2)
def _rouge_scorer(names: tuple[str, ...]) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(list(names), use_stemmer=False)
