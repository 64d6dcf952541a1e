"""Fit the two models to labels, and choose their constants by what serves cases held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, log
from typing import TYPE_CHECKING, Any, TypeVar

from archehr.optimize.students.examples import Pairs, Sentences
from archehr.program.extractive.fitted.features import NAMES
from archehr.program.extractive.fitted.models import AlignmentModel, EvidenceModel, Logistic
from archehr.program.extractive.fitted.pairs import PAIR_NAMES

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

Model = TypeVar("Model", EvidenceModel, AlignmentModel)
Example = TypeVar("Example", Sentences, Pairs)

REGULARISATION = 0.05  # scikit-learn's C
DIGITS = 6  # significant ones: the same file on any machine, whatever the last bits of its arithmetic
FOLDS = 5
NEEDED = 4  # of FOLDS in which another constant must serve better to be taken
# What is tried of each constant, as multiples of the usual value.
EVIDENCE_CONSTANTS = {"usual": (0.67, 0.8, 1.25, 1.5), "concepts_weight": (0, 0.5, 1.5), "cut": (0.7, 0.85, 1.15, 1.3)}
ALIGNMENT_CONSTANTS = {"usual": (0.75, 1.25), "pull": (0.5, 1.5, 2.0), "cut": (0.8, 0.9, 1.1, 1.25)}


def fit_evidence(
    examples: Sequence[Sentences], start: EvidenceModel | None = None, names: Sequence[str] = NAMES
) -> EvidenceModel:
    """The evidence model fitted to `examples`, with the constants of `start`; `names` are the features it sees."""
    import numpy as np

    columns = [NAMES.index(name) for name in names]
    rows = np.vstack([e.rows[:, columns] for e in examples])
    essential, counts = (np.concatenate([getattr(e, part) for e in examples]) for part in ("essential", "counts"))
    logistic = fit_logistic(rows, essential, counts, names)
    return start.model_copy(update={"logistic": logistic}) if start else EvidenceModel(logistic=logistic)


def fit_alignment(examples: Sequence[Pairs], start: AlignmentModel | None = None) -> AlignmentModel:
    """The alignment model fitted to `examples`, with the constants of `start`."""
    import numpy as np

    rows, linked = np.vstack([e.rows for e in examples]), np.concatenate([e.linked.ravel() for e in examples])
    logistic = fit_logistic(rows, linked, np.ones(len(rows)), PAIR_NAMES)
    return start.model_copy(update={"logistic": logistic}) if start else AlignmentModel(logistic=logistic)


def fit_logistic(rows: Matrix, likely: Matrix, counts: Matrix, names: Sequence[str]) -> Logistic:
    """A penalised logistic regression. A label may be soft: a sentence that is `likely` 0.7 counts as 0.7 of a yes and
    0.3 of a no. Both must occur."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(rows)
    scaled = scaler.transform(rows)
    answers = np.repeat([True, False], len(rows))
    weights = np.concatenate([likely * counts, (1 - likely) * counts])
    used = weights > 0
    model = LogisticRegression(C=REGULARISATION, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    model.fit(np.vstack([scaled, scaled])[used], answers[used], sample_weight=weights[used])
    return as_arrays(scaler, model, names, DIGITS)


def as_arrays(scaler: Any, model: Any, names: Sequence[str], digits: int = 17) -> Logistic:
    """scikit-learn's StandardScaler and LogisticRegression as what is kept, to so many significant digits."""

    def kept(values: Sequence[float]) -> tuple[float, ...]:
        return tuple(float(f"{value:.{digits}g}") for value in values)

    return Logistic(
        names=tuple(names),
        mean=kept(scaler.mean_),
        scale=kept(scaler.scale_),
        weights=kept(model.coef_[0]),
        intercept=kept(model.intercept_)[0],
    )


def choose_evidence(examples: Sequence[Sentences], start: EvidenceModel | None = None) -> EvidenceModel:
    """The evidence model and its constants; those of `start`, else the usual ones, where no other is shown to serve
    better."""
    fitted = fit_evidence(examples, start)
    return _choose(fitted, examples, lambda some: fit_evidence(some, fitted), evidence_hits, EVIDENCE_CONSTANTS)


def choose_alignment(examples: Sequence[Pairs], start: AlignmentModel | None = None) -> AlignmentModel:
    """The alignment model and its constants, chosen likewise."""
    fitted = fit_alignment(examples, start)
    return _choose(fitted, examples, lambda some: fit_alignment(some, fitted), _link_hits, ALIGNMENT_CONSTANTS)


def _choose(
    fitted: Model,
    examples: Sequence[Example],
    fit: Callable[[Sequence[Example]], Model],
    hits: Callable[[Model, Example], tuple[float, float]],
    constants: Mapping[str, Sequence[float]],
) -> Model:
    """Each constant in turn, the others as chosen so far: the value with the best F1 over all folds, each judged by a
    model fitted without it, if its F1 is higher in NEEDED of the FOLDS."""
    folds = [list(examples[k::FOLDS]) for k in range(FOLDS)]
    held_out = [fit([e for other in folds if other is not fold for e in other]) for fold in folds]
    for name, factors in constants.items():
        best, best_f1 = 1.0, pooled_f1(held_out, folds, hits)
        before = [pooled_f1([model], [fold], hits) for model, fold in zip(held_out, folds, strict=True)]
        for factor in factors:
            tried = [with_constant(model, name, factor) for model in held_out]
            after = [pooled_f1([model], [fold], hits) for model, fold in zip(tried, folds, strict=True)]
            better = sum(a > b for a, b in zip(after, before, strict=True))
            if better >= NEEDED and (f1 := pooled_f1(tried, folds, hits)) > best_f1:
                best, best_f1 = factor, f1
        held_out = [with_constant(model, name, best) for model in held_out]
        fitted = with_constant(fitted, name, best)
    return fitted


def with_constant(model: Model, name: str, factor: float) -> Model:
    """The model with one constant times `factor`; all edges of the scores move with the cut, in log-odds."""
    if factor == 1:
        return model
    if isinstance(model, EvidenceModel) and name == "cut":
        cut = model.edges[2]
        shift = _odds(cut * factor) - _odds(cut)
        edges = tuple(round(1 / (1 + exp(-_odds(edge) - shift)), 4) for edge in model.edges)
        return model.model_copy(update={"edges": edges})
    return model.model_copy(update={name: round(min(getattr(model, name) * factor, _MOST.get(name, 1e9)), 4)})


_MOST = {"pull": 1.0, "cut": 0.95}


def _odds(chance: float) -> float:
    chance = min(chance, 0.95)
    return log(chance / (1 - chance))


def pooled_f1(
    models: Sequence[Model],
    folds: Sequence[Sequence[Example]],
    hits: Callable[[Model, Example], tuple[float, float]],
) -> float:
    """Pooled F1 (0..1) of each fold by its model."""
    found = [hits(model, e) for model, fold in zip(models, folds, strict=True) for e in fold]
    right, all_ = sum(r for r, _ in found), sum(a for _, a in found)
    return 2 * right / all_ if all_ else 0.0


def evidence_hits(model: EvidenceModel, example: Sentences) -> tuple[float, float]:
    """What was found rightly; what was found and what there is, together."""
    chosen = model.judge(example.rows, example.concepts, example.asked) >= model.edges[2]
    return float(example.essential[chosen].sum()), float(chosen.sum() + example.essential.sum())


def _link_hits(model: AlignmentModel, example: Pairs) -> tuple[float, float]:
    linked = model.judge(example.rows, len(example.linked)) >= model.cut
    return float(example.linked[linked].sum()), float(linked.sum() + example.linked.sum())
