"""How fast scoring is beside a plain re-creation of the official loop: `python -m tests.benchmarks.scoring`.

The official scripts call `evaluate` once per case, and its ROUGE resamples that one case 1000 times; that loop is
rebuilt here on the same `rouge_score`, without the Arrow files `evaluate` writes on top, so the ratio is a lower bound.
BLEU and SARI differ by the tokenizer only, which the official code builds anew for every case.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from archehr.data.case import Case
from archehr.data.dataset import read_cases
from archehr.metrics.intervals import RESAMPLES, bootstrap
from archehr.metrics.score import ScoreResult, score_submission
from archehr.metrics.scorers import text

CASES = 100
# The plain bootstrap loop is timed on this many resamples and scaled to RESAMPLES.
LOOPED = 500


def main() -> None:
    triples = _triples(random.Random(1))
    official, official_time = _timed(lambda: _as_the_official_loop(triples))
    ours, our_time = _timed(lambda: _ours(triples))
    assert np.allclose(official, ours, atol=1e-12, rtol=0), "the two must agree to be compared"
    print(f"ROUGE + BLEU + SARI, {CASES} cases, same values to 1e-12:")
    print(f"  plain re-creation of the official loop {official_time:7.3f} s")
    print(f"  metrics.text                           {our_time:7.3f} s   {official_time / our_time:.0f} times faster")

    results = _scored(random.Random(2))
    _, vectorised = _timed(lambda: [bootstrap(result.table) for result in results])
    _, looped = _timed(lambda: _loop(results, LOOPED))
    looped *= RESAMPLES / LOOPED
    print(f"Intervals of subtasks 2 and 4, {CASES} cases, {RESAMPLES} resamples:")
    print(f"  plain loop, scaled up from {LOOPED} resamples {looped:7.3f} s")
    print(f"  metrics.intervals                      {vectorised:7.3f} s   {looped / vectorised:.0f} times faster")


def _triples(rng: random.Random) -> list[tuple[str, str, str]]:
    """(source, prediction, reference): sample answers, and the same with words lost and swapped."""
    cases = _sample()
    triples = []
    for i in range(CASES):
        case = cases[i % len(cases)]
        assert case.gold is not None and case.gold.answer is not None
        words = [w for w in case.gold.answer.split() if rng.random() > 0.2]
        cut = rng.randrange(len(words))
        triples.append((case.narrative, " ".join(words[cut:] + words[:cut]), case.gold.answer))
    return triples


def _ours(triples: list[tuple[str, str, str]]) -> list[float]:
    rows = [
        [
            *text.rouge(prediction, reference).values(),
            text.bleu(prediction, reference),
            text.sari(source, prediction, reference),
        ]
        for source, prediction, reference in triples
    ]
    return [float(mean) for mean in np.mean(rows, axis=0)]


def _as_the_official_loop(triples: list[tuple[str, str, str]]) -> list[float]:
    from rouge_score import rouge_scorer, scoring

    kinds = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    rows = []
    for source, prediction, reference in triples:
        scorer = rouge_scorer.RougeScorer(kinds, use_stemmer=False)
        aggregator = scoring.BootstrapAggregator()
        aggregator.add_scores(scorer.score(reference, prediction))
        found = aggregator.aggregate()
        row = [found[kind].mid.fmeasure for kind in kinds]
        for metric, arguments in ((text.bleu, (prediction, reference)), (text.sari, (source, prediction, reference))):
            text._tokenizer_13a.cache_clear()
            row.append(metric(*arguments))
        rows.append(row)
    return [float(mean) for mean in np.mean(rows, axis=0)]


def _scored(rng: random.Random) -> list[ScoreResult]:
    sample = _sample()
    cases = [replace(sample[i % len(sample)], id=str(i)) for i in range(CASES)]
    picks = [
        {"case_id": c.id, "prediction": [i for i in (c.gold.relevance if c.gold else None) or () if rng.random() < 0.4]}
        for c in cases
    ]
    links = [
        {
            "case_id": c.id,
            "prediction": [
                {"answer_id": s.id, "evidence_id": [n.id for n in c.sentences if rng.random() < 0.1]}
                for s in (c.gold.answer_sentences if c.gold else ())
            ],
        }
        for c in cases
    ]
    return [score_submission(picks, cases, 2), score_submission(links, cases, 4)]


def _loop(results: list[ScoreResult], resamples: int) -> None:
    """The bootstrap as one would write it first: draw cases, score the draw, again."""
    rng = np.random.default_rng(0)
    for table in [result.table for result in results]:
        for _ in range(resamples):
            table.board(table.values[rng.integers(0, CASES, CASES)].sum(axis=0), CASES)


def _sample() -> list[Case]:
    return read_cases("sample/dev") + read_cases("sample/test")


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """CPU seconds, so that other work on the machine does not count."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


if __name__ == "__main__":
    main()
