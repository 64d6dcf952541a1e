"""What another view buys where each misses what the other finds: the chosen mixture against each alone, out of sample.

Run `python -m tests.benchmarks.views`. The LM is scripted (tests/habitual_lm.py), so this says that the choice is made
well, not what a real LM gains.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from archehr.data.dataset import Dataset, read_cases
from archehr.metrics.intervals import bootstrap
from archehr.optimize.optimize import Optimised
from archehr.optimize.optimizers.optimizer import Options
from archehr.optimize.report import report
from archehr.optimize.session import optimize_to_file
from archehr.program.settings import ViewUse, parse_views
from tests.habitual_lm import habitual_lm


def chosen(views: tuple[ViewUse, ...], cases: int = 20) -> Optimised:
    """The optimisation of stage score on sample/dev with these views to choose from."""
    dev = read_cases("sample/dev")[:cases]
    lm = habitual_lm(dev)
    options = Options(stages=("score",), demos=2, views=views, weights={2: 1.0})
    with tempfile.TemporaryDirectory() as folder:
        return optimize_to_file(options, Dataset.of(dev), lm, lm, Path(folder) / "p.json")[0]


def out_of_sample(optimised: Optimised) -> float:
    """Strict micro F1 (0-100)."""
    return bootstrap(optimised.tables["out_of_sample"][2])["strict_micro_f1"].value


def main() -> None:
    for views in ("score", "answer_first"):
        print(f"{views} alone, its cut fitted: {out_of_sample(chosen(parse_views(views))):.1f} out of sample")
    print(report(chosen(parse_views("score,answer_first"))))


if __name__ == "__main__":
    main()
