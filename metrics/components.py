"""Which scores there are: one record per component, those that other packages add, and what a subtask is judged by."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from archehr.data import plugins
from archehr.data.case import DataError
from archehr.metrics.scorers import medcon, neural, text

# Other packages name their components here: [project.entry-points."archehr.metrics"].
GROUP = "archehr.metrics"
OVERALL, MEAN = "overall_score", "mean"


@dataclass(frozen=True, slots=True)
class Subtask:
    """One subtask: what it asks for, where its references stand in the data, the score it is judged by (the first of
    `headline` that there is) and the official scores shown beside that under a short name.

    `adds_up` is the order in which the official script adds components up, on which the last digit of the overall
    score depends.
    """

    asks_for: str
    reference: str
    headline: tuple[str, ...]
    beside: Mapping[str, str] = field(default_factory=dict)
    adds_up: tuple[str, ...] = ()


SUBTASKS = {
    1: Subtask(
        "question",
        "clinician questions (archehr-qa.xml)",
        headline=(OVERALL, MEAN),
        adds_up=("alignscore", "rougeLsum", "medcon", "bertscore"),
    ),
    2: Subtask(
        "evidence",
        "relevance labels (answers in the key)",
        headline=("strict_micro_f1",),
        beside={"P": "strict_micro_precision", "R": "strict_micro_recall"},
    ),
    3: Subtask(
        "answer",
        "clinician answers (clinician_answer_without_citations in the key)",
        headline=(OVERALL, MEAN),
        adds_up=("bleu", "rougeLsum", "sari", "bertscore", "alignscore", "medcon"),
    ),
    4: Subtask(
        "alignment",
        "citations (clinician_answer_sentences in the key)",
        headline=("micro_f1",),
        beside={"P": "micro_precision", "R": "micro_recall"},
    ),
}
SHORT = {"strict_micro_f1": "strict F1", "micro_f1": "F1", OVERALL: "overall", MEAN: MEAN}


def headline(subtask: int, scores: Container[str]) -> str:
    """The name of the score that `subtask` is judged by, among the names of the `scores` there are.

    "mean" is that of the components of the official overall score that could be computed, where some could not.
    """
    return next(name for name in SUBTASKS[subtask].headline if name in scores)


@dataclass(frozen=True, slots=True)
class Resources:
    """What the model-based components need and no package brings: names or folders of models, an index.

    `bertscore_model` is distilbert-base-uncased, `alignscore_checkpoint` AlignScore-base.ckpt and `roberta_model` the
    roberta-base it was trained from, `umls_index` a QuickUMLS index of the user's own UMLS.
    """

    bertscore_model: str | None = None
    alignscore_checkpoint: Path | None = None
    roberta_model: str | None = None
    umls_index: Path | None = None
    spacy_model: str = "en_core_web_sm"


@dataclass(frozen=True, slots=True)
class Batch:
    """What a component scores: one subtask's predictions and their keys, case by case.

    A prediction is the text (subtasks 1 and 3), the set of sentence ids (2) or (answer id, evidence ids) pairs (4);
    its key a TextKey, EvidenceKey or AlignmentKey (metrics.keys).
    """

    predictions: Sequence[Any]
    keys: Sequence[Any]
    resources: Resources

    @property
    def references(self) -> list[str]:
        """The reference texts (subtasks 1 and 3)."""
        return [key.reference for key in self.keys]


# One number per case, and why a case (by position) has none and counts 0.
Scores = tuple[Sequence[float], Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class Component:
    """One score of `subtasks`: the mean over cases of what `compute` gives for each, times `scale`, which makes 0-100.

    `compute` raises `neural.Missing`, saying what to install or pass, where it cannot be computed here: the component
    is then named as missing, never counted as 0. Only components `in_overall` are averaged in the overall score.
    """

    name: str
    compute: Callable[[Batch], Scores]
    subtasks: tuple[int, ...]
    scale: float = 100.0
    in_overall: bool = False


def case_by_case(metric: Callable[[Any, Any], float]) -> Callable[[Batch], Scores]:
    """A component's `compute` from `metric(prediction, key)` of one case, which may raise `text.Unscorable`."""
    return lambda batch: text.over_cases(metric, batch.predictions, batch.keys)


def _rouge(name: str) -> Callable[[Batch], Scores]:
    return case_by_case(lambda prediction, key: text.rouge(prediction, key.reference)[name])


def _sari(batch: Batch) -> Scores:
    sources = [key.source for key in batch.keys]
    if None in sources:
        raise neural.Missing("compares with the patient's message: pass --data, a key alone does not hold it")
    return text.over_cases(text.sari, sources, batch.predictions, batch.references)


def _bertscore(batch: Batch) -> Scores:
    return neural.bertscore(batch.predictions, batch.references, batch.resources.bertscore_model)


def _medcon(batch: Batch) -> Scores:
    resources = batch.resources
    return medcon.medcon(batch.predictions, batch.references, resources.umls_index, resources.spacy_model)


def _alignscore(batch: Batch) -> Scores:
    resources = batch.resources
    return neural.alignscore(
        batch.predictions, batch.references, resources.alignscore_checkpoint, resources.roberta_model
    )


# In the order of the official leaderboards. SARI is 0-100 by nature; all others are fractions, of which MEDCON can
# exceed 1 and BERTScore fall below 0. Subtasks 2 and 4 have none: their official scores all come from counts.
OFFICIAL = (
    Component("bleu", case_by_case(lambda p, key: text.bleu(p, key.reference)), (3,), in_overall=True),
    Component("rouge1", _rouge("rouge1"), (1, 3)),
    Component("rouge2", _rouge("rouge2"), (1, 3)),
    Component("rougeL", _rouge("rougeL"), (1, 3)),
    Component("rougeLsum", _rouge("rougeLsum"), (1, 3), in_overall=True),
    Component("sari", _sari, (3,), scale=1.0, in_overall=True),
    Component("bertscore", _bertscore, (1, 3), in_overall=True),
    Component("medcon", _medcon, (1, 3), in_overall=True),
    Component("alignscore", _alignscore, (1, 3), in_overall=True),
)


def components(subtask: int, *, official_only: bool = False) -> list[Component]:
    """The components of a subtask: the official ones, then those that other packages add.

    Raises DataError, naming the package, for one that cannot be used.
    """
    return [c for c in (OFFICIAL if official_only else (*OFFICIAL, *added())) if subtask in c.subtasks]


def mean_of(columns: Collection[str], subtask: int) -> list[str]:
    """The components of the overall score that are among `columns`, in the order they are added up."""
    order = SUBTASKS[subtask].adds_up
    named = [c.name for c in components(subtask) if c.in_overall and c.name in columns]
    return sorted(named, key=lambda name: order.index(name) if name in order else len(order))


@cache
def added() -> tuple[Component, ...]:
    """The components of the entry point group "archehr.metrics", by name."""
    by_name: dict[str, Component] = {}
    for point, component in plugins.added(GROUP, Component):
        _check(point, component)
        if component.name in by_name or _TAKEN.fullmatch(component.name):
            raise DataError(f"{plugins.told(point)}: there is a score of that name already; rename or uninstall it")
        by_name[component.name] = component
    return tuple(by_name.values())


def compute(component: Component, batch: Batch) -> Scores:
    """The component's scores. Raises `neural.Missing` where they cannot be had, whatever an added one does."""
    if component in OFFICIAL:
        return component.compute(batch)
    try:
        scores, unscorable = component.compute(batch)
        numbers = [float(score) for score in scores]
    except (neural.Missing, DataError):
        raise
    except Exception as error:  # another package's code; its message may hold note text
        raise neural.Missing(f"failed with {type(error).__name__}; mend the package that adds it") from error
    if len(numbers) != len(batch.predictions) or not all(map(math.isfinite, numbers)):
        raise neural.Missing("gave no finite number for every case; mend the package that adds it")
    return numbers, unscorable


# Every name on an official leaderboard.
_TAKEN = re.compile("|".join([*(c.name for c in OFFICIAL), *SHORT, r"(\w+_)?(micro|macro)_(precision|recall|f1)"]))


def _check(point: EntryPoint, component: Component) -> None:
    if not component.subtasks or not set(component.subtasks) <= set(SUBTASKS):
        raise DataError(f"{plugins.told(point)}: its subtasks are {component.subtasks}; there are 1, 2, 3 and 4")
    if component.in_overall and not set(component.subtasks) <= {1, 3}:
        raise DataError(f"{plugins.told(point)}: is in_overall, but only subtasks 1 and 3 average components")
