"""STAGES: the stages there are, by name and in order; `add_stage` adds one to the four of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from archehr.data import plugins
from archehr.data.case import Case, DataError
from archehr.program.stages import align, generate, reformulate, score_sentences
from archehr.program.stages.stage import Stage
from archehr.program.types import StageName, shorten

PIPELINE: tuple[Stage, ...] = (reformulate.STAGE, score_sentences.STAGE, generate.STAGE, align.STAGE)
STAGES: dict[StageName, Stage] = {stage.name: stage for stage in PIPELINE}
GROUP = "archehr.stages"  # the entry points by which other packages add theirs


def add_stage(stage: Stage) -> None:
    """Let every program made from now on run `stage` after the ones there are. Raises DataError for a name that is
    taken, or a stage without `inputs`, which would never be called.

    Example:
        >>> from archehr.program.stages.registry import STAGES, add_stage
        >>> add_stage(STAGES["score"])
        Traceback (most recent call last):
        archehr.data.case.DataError: stage score: the name is taken
    """
    if stage.name in STAGES:
        raise DataError(f"stage {stage.name}: the name is taken")
    if stage.inputs is None:
        raise DataError(f"stage {stage.name}: give it `inputs`, which makes its arguments from a case and a prediction")
    STAGES[stage.name] = stage


def _add_those_of_other_packages() -> None:
    for point, stage in plugins.added(GROUP, Stage):
        try:
            add_stage(stage)
        except DataError as error:
            raise DataError(f"{plugins.told(point)}: {error}") from None


def added_stages() -> list[Stage]:
    """The stages beyond the pipeline's own."""
    return [stage for stage in STAGES.values() if stage.inputs is not None]


def has_gold(stage: StageName, case: Case) -> bool:
    """Whether the case holds the stage's inputs and outputs in full; labelled in part is not labelled."""
    return STAGES[stage].has_gold(case)


def possible_stages(case: Case) -> frozenset[StageName]:
    """The stages that the case has input for: most need note sentences."""
    return frozenset(s.name for s in STAGES.values() if case.sentences or not s.needs_sentences)


def parse_stages(text: str, option: str = "--stages") -> tuple[StageName, ...]:
    """ "score,align" or "all" -> stage names in order. Raises DataError for a name that is no stage."""
    names: Sequence[str] = list(STAGES) if text == "all" else text.replace(" ", "").split(",")
    if unknown := [n for n in names if n not in STAGES]:
        raise DataError(f"{option} {text}: no stage {shorten(unknown)}; the stages are {', '.join(STAGES)}")
    return tuple(s for s in STAGES if s in names)


_add_those_of_other_packages()
