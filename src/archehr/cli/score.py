"""archehr score: the official scores of a submission."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archehr.terminal.options import (
    AlignscoreOpt,
    BertscoreOpt,
    CasesOpt,
    DataOptions,
    JsonOpt,
    KeyOpt,
    LocalOnlyOpt,
    RobertaOpt,
    SpacyOpt,
    UmlsOpt,
    keep_offline,
    say,
    with_data_options,
)


@with_data_options
def score(
    submission: Annotated[Path, typer.Argument(help="a submission file")],
    subtask: Annotated[int, typer.Option(min=1, max=4, help="1 question, 2 evidence, 3 answer, 4 alignment")],
    data: Annotated[str | None, typer.Option(help="the data it answers, with its key")] = None,
    key: KeyOpt = None,
    cases: CasesOpt = None,
    as_official: Annotated[bool, typer.Option("--as-official", help="as the official scorer, faults included")] = False,
    bertscore_model: BertscoreOpt = None,
    alignscore_checkpoint: AlignscoreOpt = None,
    roberta_model: RobertaOpt = None,
    umls_index: UmlsOpt = None,
    spacy_model: SpacyOpt = "en_core_web_sm",
    local_only: LocalOnlyOpt = False,
    json: JsonOpt = False,
    *,
    data_options: DataOptions,
) -> None:
    """The official scores of a submission, with 95 % intervals over cases."""
    from archehr.metrics.components import Resources
    from archehr.metrics.score import score_file
    from archehr.terminal.display import print_scores

    keep_offline(local_only)
    resources = Resources(bertscore_model, alignscore_checkpoint, roberta_model, umls_index, spacy_model)
    result = score_file(
        submission,
        subtask,
        data=data,
        key=key,
        cases=cases,
        as_official=as_official,
        resources=resources,
        options=data_options.read_options(),
    )
    for note in result.notes:
        say(note)
    print_scores(result, as_json=json)
