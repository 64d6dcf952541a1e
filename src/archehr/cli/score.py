"""archehr score: the official scores of a submission."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from archehr.data.case import DataError
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
from archehr.terminal.submissions import submission_files


@with_data_options
def score(
    submission: Annotated[Path, typer.Argument(help="a submission file, or a run folder")],
    subtask: Annotated[
        int | None,
        typer.Option(min=1, max=4, help="1 question, 2 evidence, 3 answer, 4 alignment [read from the name]"),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="the data it answers, with its key [that of the run, for a run folder]")
    ] = None,
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
    from archehr.metrics.score import MissingReference, read_references, score_file
    from archehr.terminal.display import print_scores

    keep_offline(local_only)
    resources = Resources(bertscore_model, alignscore_checkpoint, roberta_model, umls_index, spacy_model)
    files = submission_files(submission, subtask)
    chosen: str | Collection[str] | None = cases
    if submission.is_dir():
        data, finished = _of_run(submission, data, key)
        chosen = cases or finished
    options = data_options.read_options()
    several = len(files) > 1 and not as_official
    references = read_references(data, key, options) if several else data
    results = {}
    for number, path in files.items():
        try:
            results[number] = score_file(
                path,
                number,
                data=references,
                key=key,
                cases=chosen,
                as_official=as_official,
                resources=resources,
                options=options,
            )
        except MissingReference as error:
            if len(files) == 1:
                raise
            say(f"subtask {number}: not scored, {error}")
    if not results:
        raise DataError(f"{data or key}: holds no reference for any subtask; pass its --key")
    for note in dict.fromkeys(note for result in results.values() for note in result.notes):
        say(note)
    print_scores(results, as_json=json)


def _of_run(folder: Path, data: str | None, key: Path | None) -> tuple[str | None, Collection[str]]:
    """The data to score a run on, where it is not given that which it was run on, and the ids of its cases."""
    from archehr.program.run.folder import read_run_folder
    from archehr.terminal.display import IN_SAMPLE

    manifest, records = read_run_folder(folder)
    if manifest.in_sample:
        say(f"IN SAMPLE: {IN_SAMPLE}")
    if data is None and key is None:
        data = manifest.data or None
    return data, records.keys()
