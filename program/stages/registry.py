"""STAGES and VIEWS: the stages, and the ways of asking for evidence, that there are; `add_stage` and `add_view` add
one."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from archehr.data import plugins
from archehr.data.case import Case, DataError
from archehr.program.settings import PipelineSettings
from archehr.program.stages import align, generate, reformulate, score_sentences
from archehr.program.stages.stage import Stage, has_prompt
from archehr.program.stages.verify import verify
from archehr.program.stages.views import answer_first
from archehr.program.stages.views.view import View
from archehr.program.types import StageName, shorten

PIPELINE: tuple[Stage, ...] = (reformulate.STAGE, score_sentences.STAGE, generate.STAGE, align.STAGE)
STAGES: dict[StageName, Stage] = {stage.name: stage for stage in PIPELINE}
GROUP, VIEW_GROUP = "archehr.stages", "archehr.views"  # the entry points by which other packages add theirs

# Ways of asking for evidence beside `score`, which is one too. A program has those that its settings name.
VIEWS: dict[StageName, Stage] = {view.name: view for view in (answer_first.STAGE,)}

# Stages that a program has if its settings ask for them.
_ON_DEMAND: dict[StageName, Stage] = {verify.STAGE.name: verify.STAGE}


class _Prompted(ChainMap[StageName, Stage]):
    """Stages and views by name; a view is there under every name of its own too, as score_b."""

    def __missing__(self, name: StageName) -> Stage:
        ways = [view for view in _views() if name.startswith(f"{view}_")]
        if not ways:
            raise KeyError(name)
        return _voter(name, _views()[max(ways, key=len)])

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or any(str(name).startswith(f"{view}_") for view in _views())


def _views() -> dict[StageName, Stage]:
    return {"score": STAGES["score"], **VIEWS}


def _voter(name: StageName, view: Stage) -> Stage:
    """The view once more as a voter called `name`, with its own prompt, demos and LM."""

    def module(settings: PipelineSettings) -> View:
        voter = view.module(settings)
        assert isinstance(voter, View)
        voter.name = name
        return voter

    return replace(view, name=name, module=module, twin=None, subtask=None)


# Whatever has a prompt of its own.
PROMPTED: Mapping[StageName, Stage] = _Prompted(_ON_DEMAND, VIEWS, STAGES)  # iterates STAGES first


def add_stage(stage: Stage) -> None:
    """Let every program made from now on run `stage` after the ones there are. Raises DataError for a name that is
    taken, or a stage without `inputs`, which would never be called.

    Example:
        >>> from archehr.program.stages.registry import STAGES, add_stage
        >>> add_stage(STAGES["score"])
        Traceback (most recent call last):
        archehr.data.case.DataError: stage score: the name is taken
    """
    if stage.name in PROMPTED:
        raise DataError(f"stage {stage.name}: the name is taken")
    if stage.inputs is None:
        raise DataError(f"stage {stage.name}: give it `inputs`, which makes its arguments from a case and a prediction")
    STAGES[stage.name] = stage


def add_view(view: Stage) -> None:
    """Let programs name `view` in their settings' `views`: a Stage whose module is a View. Raises DataError for a
    name that is taken."""
    if view.name in PROMPTED:
        raise DataError(f"view {view.name}: the name is taken")
    VIEWS[view.name] = view


def used_views(settings: PipelineSettings) -> list[Stage]:
    """The views that the settings name; `score_b` is a second voter that asks as `score` does. Raises DataError for
    one that is not there."""
    others = {*STAGES, *_ON_DEMAND} - {"score"}
    if unknown := [view.name for view in settings.views if view.name not in PROMPTED or view.name in others]:
        known = ", ".join(_views())
        raise DataError(f"--views {unknown[0]}: there are {known}; add it first, or name one once more, as score_b")
    return [PROMPTED[view.name] for view in settings.views]


def held(settings: PipelineSettings) -> list[Stage]:
    """All that a program with these settings is made of. Raises DataError for a view that is not there."""
    views = [view for view in used_views(settings) if view.name not in STAGES]
    return [*STAGES.values(), *views, *(_ON_DEMAND.values() if settings.verify != "off" else ())]


def prompted(program: Any) -> list[StageName]:
    """The stages and views of a GroundedQA that ask an LM."""
    names = dict.fromkeys([*PROMPTED, *(view.name for view in program.settings.views)])
    return [name for name in names if has_prompt(getattr(program, name, None))]


def added_stages() -> list[Stage]:
    """The stages beyond the pipeline's own."""
    return [stage for stage in STAGES.values() if stage.inputs is not None]


def has_gold(stage: StageName, case: Case) -> bool:
    """Whether the case holds the stage's inputs and outputs in full; labelled in part is not labelled."""
    return PROMPTED[stage].has_gold(case)


def possible_stages(case: Case) -> frozenset[StageName]:
    """The stages that the case has input for: most need note sentences."""
    return frozenset(s.name for s in STAGES.values() if case.sentences or not s.needs_sentences)


def parse_stages(text: str, option: str = "--stages") -> tuple[StageName, ...]:
    """ "score,align" or "all" -> stage names in order. Raises DataError for a name that is no stage."""
    names: Sequence[str] = list(STAGES) if text == "all" else text.replace(" ", "").split(",")
    if unknown := [n for n in names if n not in STAGES]:
        raise DataError(f"{option} {text}: no stage {shorten(unknown)}; the stages are {', '.join(STAGES)}")
    return tuple(s for s in STAGES if s in names)


def _add_those_of_other_packages() -> None:
    for group, add in ((GROUP, add_stage), (VIEW_GROUP, add_view)):
        for point, stage in plugins.added(group, Stage):
            try:
                add(stage)
            except DataError as error:
                raise DataError(f"{plugins.told(point)}: {error}") from None


_add_those_of_other_packages()
