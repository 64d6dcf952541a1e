"""archehr review: correct what a run said, on a page of this machine; agreement, adjudication, export."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archehr.data.case import DataError
from archehr.terminal.ctrl_c import ended_by_ctrl_c
from archehr.terminal.options import CasesOpt, JsonOpt, KeyOpt, say

if TYPE_CHECKING:
    from archehr.review.agreement import Reviews
    from archehr.review.subject import Subject


@ended_by_ctrl_c()  # what the page called saved is on disk whenever it comes
def review(
    subject: Annotated[Path, typer.Argument(metavar="RUN_FOLDER", help="a run folder, or DATA without a run")],
    *,
    reviewer: Annotated[str | None, typer.Option(help="who reviews; each has a journal [reviewer]")] = None,
    order: Annotated[str, typer.Option(help="unsure (least confident first) or given")] = "unsure",
    blind: Annotated[float, typer.Option(min=0, max=1, help="share of cases shown without the program's marks")] = 0.0,
    agreement: Annotated[bool, typer.Option("--agreement", help="print how far reviewers agree, and stop")] = False,
    adjudicate: Annotated[bool, typer.Option("--adjudicate", help="open only what reviewers read differently")] = False,
    export: Annotated[Path | None, typer.Option(help="write the finished cases there, and stop")] = None,
    format: Annotated[str, typer.Option(help="of --export: data, jsonl, csv or label-studio")] = "data",
    data: Annotated[str | None, typer.Option(help="the run's data [where it was when it was run]")] = None,
    key: KeyOpt = None,
    cases: CasesOpt = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is a free one")] = 0,
    idle: Annotated[float, typer.Option(min=0.01, help="stop after so many minutes without use")] = 60,
    browser: Annotated[bool, typer.Option(help="open the page in the browser")] = True,
    json: JsonOpt = False,
) -> None:
    """Correct questions, evidence, answers and links on a page that only this machine sees; export them as labels.

    What the page calls saved is on disk, in a journal below RUN_FOLDER/review; the same command goes on with it.
    """
    from archehr.review.finished import read_finished
    from archehr.review.journal import ADJUDICATED, journal_path
    from archehr.review.subject import read_subject
    from archehr.terminal.display import default_folder

    if sum((agreement, adjudicate, export is not None)) > 1:
        raise DataError("--agreement, --adjudicate and --export are three tasks; ask for one")
    read = read_subject(
        subject,
        data=data,
        key=key,
        wanted=cases,
        data_folder=lambda name: default_folder(name, "review", None),
        tell=say,
    )
    path = journal_path(read.folder, reviewer or "reviewer")
    if agreement:
        _print_agreement(read_finished(read, tell=say), as_json=json)
    elif export is not None:
        finished = read_finished(read, tell=say)
        _export(read, finished, export, format, reviewer, as_json=json)
    else:
        _check_extra()
        if adjudicate:
            path = path.with_name(f"{ADJUDICATED}.jsonl")
        _open_page(read, path, reviewer or "reviewer", order, blind, adjudicate, port=port, idle=idle, browser=browser)


def _check_extra() -> None:
    try:
        import filelock  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise DataError(f"the page needs {error.name}: pip install '.[review]' in the clone") from None


def _open_page(
    subject: Subject,
    path: Path,
    reviewer: str,
    order: str,
    blind: float,
    adjudicate: bool,
    *,
    port: int,
    idle: float,
    browser: bool,
) -> None:
    from archehr.review.agreement import agreed, disputed
    from archehr.review.finished import check_same_text, read_finished
    from archehr.review.journal import Journal
    from archehr.review.order import drawn_blind, ordered
    from archehr.review.serve import listen, serve
    from archehr.review.session import Session

    ids = ordered(subject, order)
    readings = disputed(read_finished(subject, tell=say)) if adjudicate else {}
    if adjudicate and not readings:
        raise DataError(f"{path.parent}: no case that two reviewers have finished and read differently")
    if blind and not subject.records:
        raise DataError("--blind hides what a program said, and DATA alone holds no run; name a run folder")
    if adjudicate:
        ids = [i for i in ids if i in readings]
    with Journal(path) as journal:
        for line in journal.notices:
            say(line)
        check_same_text(journal.reviews, subject.cases, path)
        hidden = drawn_blind(list(subject.cases), blind, reviewer) if not adjudicate else set()
        start = {i: agreed(said) for i, said in readings.items()}
        session = Session(subject, journal, reviewer, ids, hidden, readings, start)
        listening = listen(port)
        say(f"{len(ids)} cases; what you do is kept in {path}, which holds note text; Ctrl-C stops")
        if not serve(session, listening, idle=idle, browser=browser, tell=typer.echo):
            say(f"stopped: the page was not used for {idle:g} minutes")
        done = sum(case["status"] == "finished" for case in session.overview()["cases"])
        say(f"{done} of {len(ids)} cases are finished; everything is saved in {path}")


def _export(
    subject: Subject, finished: Mapping[str, Reviews], out: Path, form: str, reviewer: str | None, *, as_json: bool
) -> None:
    from archehr.review.export.forms import export
    from archehr.review.export.settle import settled
    from archehr.review.finished import read_adjudicated

    if reviewer is not None and reviewer not in finished:
        raise DataError(f"--reviewer {reviewer}: has no journal here; there are {', '.join(finished) or 'none'}")
    found, open_ids = settled(subject.cases, finished, read_adjudicated(subject, tell=say), reviewer)
    if open_ids:
        say(
            f"left out, because reviewers read them differently: {', '.join(open_ids)}; "
            "settle them with --adjudicate, or take one reading with --reviewer"
        )
    files = export(found, out, form)
    unfinished = len(subject.cases) - len(found) - len(open_ids)
    say(
        f"{len(found)} cases exported, {unfinished} are not finished; "
        f"{out} holds note text: keep it as you keep the data"
    )
    made = {"files": [str(f) for f in files], "cases": [r.case.id for r in found], "left_out": open_ids}
    typer.echo(jsonlib.dumps(made, indent=1) if as_json else "\n".join(made["files"]))


def _print_agreement(finished: Mapping[str, Reviews], *, as_json: bool) -> None:
    from archehr.review.agreement import against_program, agreements
    from archehr.terminal.review_display import print_agreement

    found, against = agreements(finished), against_program(finished)
    if as_json:
        told = {"agreement": [asdict(a) for a in found], "against_program": [asdict(a) for a in against]}
        typer.echo(jsonlib.dumps(told, indent=1))
    else:
        print_agreement({name: len(done) for name, done in finished.items()}, found, against)
