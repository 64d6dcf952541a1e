"""Progress on stderr and the closing table of a run on stdout."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isnan, nan
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from archehr.data.json_stream import json_pieces
from archehr.metrics.components import MEAN, headline

if TYPE_CHECKING:
    from archehr.data.case import Case
    from archehr.metrics.score import ScoreResult
    from archehr.program.run.records import CaseRecord
    from archehr.program.run.run import RunResult

IN_SAMPLE = "the program was fitted on some or all of this data: these scores flatter it"


class RunDisplay:
    """A progress bar with the time left and, of the cases answered since it began, those that an LM failed on and what
    they cost; where stderr is no terminal, nothing. It fits 80 columns."""

    def __init__(self, total: int, what: str = "cases", console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("left{task.fields[took]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            speed_estimate_period=1800,  # seconds: a case may take minutes
        )
        self._task = self._progress.add_task(what, total=total, took="")
        self._failed, self._cost, self._asks_lm = 0, 0.0, False

    def __enter__(self) -> RunDisplay:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._progress.stop()

    def done_before(self, cases: int) -> None:
        """That many need no answer; they say nothing of how long the others take."""
        self._progress.reset(self._task, completed=cases)

    def case_done(self, record: CaseRecord) -> None:
        self._failed += any(n["kind"] == "lm_failed" for n in record.notices)
        cost = record.usage.get("cost", 0.0)
        self._asks_lm = self._asks_lm or bool(record.usage)
        self._cost = nan if cost is None else self._cost + cost
        self._progress.update(self._task, advance=1, took=self._took())

    def _took(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        cost = "" if not self._asks_lm else ", cost unknown" if isnan(self._cost) else f", ${self._cost:.4f}"
        return failed + cost


class AskDisplay:
    """What `ask` is doing, and which stage an LM answered last; where stderr is no terminal, nothing."""

    def __init__(self, case: Case, lm: Any, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        lms = list(lm.values()) if isinstance(lm, Mapping) else [lm] if lm else []
        names = ", ".join(dict.fromkeys(str(one.model) for one in lms))
        who = f"asking {escape(names)}" if names else "answering without an LM"
        self._doing = f"{who} from {len(case.sentences)} note sentences"
        self._ledgers = [one.ledger for one in lms if hasattr(one, "ledger")]
        self._status = console.status(self._doing) if console.is_terminal else None

    def __enter__(self) -> AskDisplay:
        if self._status is not None:
            self._status.start()
            for ledger in self._ledgers:
                ledger.on_entry = self._heard
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._status is not None:
            self._status.stop()

    def _heard(self, stage: str | None) -> None:
        assert self._status is not None
        self._status.update(f"{self._doing}; last reply: {stage or 'other'}")


def default_folder(data_title: str, program: str, *more: str | None) -> Path:
    """runs/DATA-PROGRAM-LM-SETTINGS, so that the same command finds its own folder again."""
    parts = [data_title, Path(program).stem, *(part or "" for part in more)]
    return Path("runs") / "-".join(s for p in parts if (s := re.sub(r"[^\w.]+", "-", p).strip("-.")))


def print_run(result: RunResult, *, as_json: bool) -> None:
    """The closing table (or run.json and the file names as JSON) on stdout."""
    if as_json:
        files = {str(n): str(p) for n, p in result.files.items()}
        outcome = {"files": files, "scores": result.scores, "resumed_cases": result.resumed}
        sys.stdout.writelines(json_pieces({**result.manifest.as_json(), **outcome}))
        print()
        return
    print_columns(_rows(result))


def print_columns(rows: Sequence[tuple[str, ...]]) -> None:
    """Aligned columns, never wrapped or shortened: paths and reasons are there to be copied."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _rows(result: RunResult) -> list[tuple[str, str]]:
    manifest = result.manifest
    total, session = len(result.records), manifest.sessions[-1]
    if result.resumed == total:
        cases = f"all {total} cases were already done"
    else:
        cases = f"{total} answered" + (f", {result.resumed} of them before" if result.resumed else "")
    from archehr.program.stage_lms import in_words

    notices = ", ".join(f"{n} {kind}" for kind, n in manifest.notices.items()) or "none"
    lm = manifest.lm
    rows = [
        ("program", manifest.program + (f" with {in_words(lm)}" if lm else ", no LM")),
        ("cases", cases),
        ("notices", notices),
        ("time", f"{session.seconds:.1f} s"),
    ]
    if session.usage is not None:
        rows.append(("LM use", usage_in_words(asdict(session.usage))))
        for name, used in (session.by_stage | session.by_lm).items():
            rows.append((f"  {name}", usage_in_words(asdict(used))))
        if manifest.usage is not None and len(manifest.sessions) > 1:
            rows.append(("  with earlier", usage_in_words(asdict(manifest.usage))))
    if lost := _unreached(result):
        rows.append(("WITHOUT LM", f"{lost}; it could not be reached, and the same command answers them again"))
    rows += [(f"subtask {n}", str(path)) for n, path in result.files.items()]
    rows += [("answers", str(path)) for path in result.exports]
    rows += [(f"scores {n}", _main_score(n, result.scores)) for n in result.files if f"subtask_{n}" in result.scores]
    if result.scores.keys() - {"not_scored"}:
        rows += [(f"scores {n[-1]}", f"none: {why}") for n, why in result.scores.get("not_scored", {}).items()]
    if manifest.in_sample and result.scores:
        rows.append(("IN SAMPLE", IN_SAMPLE))
    rows += [("folder", str(result.folder))] if result.folder else []
    return rows


def fallbacks_in_words(result: RunResult) -> str | None:
    """The line for a run with answers that are not the LM's for want of one, else None."""
    lost = _unreached(result)
    remedy = "the same command answers them again" if lost else "mend it, add --fresh" if result.folder else "mend it"
    if (why := result.why_lm_never_answered()) is not None:
        kind, _, reason = why.partition(": ")
        reason = f": {reason}" if reason else ""
        return f"no LM call succeeded ({kind}){reason}; all answers are fallbacks, not the LM's; {remedy}"
    return f"answered without the LM, which could not be reached: {lost}; {remedy}" if lost else None


def _unreached(result: RunResult) -> str:
    """The cases whose answers are in part or whole a fallback's because no LM was reached, with their stages."""
    if not result.manifest.unreached:
        return ""
    return ", ".join(f"{r.case_id} ({', '.join(r.unreached)})" for r in result.records if r.unreached)


def usage_in_words(usage: Mapping[str, Any]) -> str:
    """Totals of a ledger in a line."""
    cost = "cost unknown" if usage.get("cost") is None else f"${usage['cost']:.4f}"
    return (
        f"{usage['calls']} calls ({usage['retries']} retries, {usage['cache_hits']} from the cache), "
        f"{usage['tokens_in']} tokens in, {usage['tokens_out']} out ({usage['tokens_thinking']} thinking), {cost}"
    )


def _main_score(subtask: int, scores: dict[str, Any]) -> str:
    """The one number of a subtask that the leaderboard ranks by, or the mean of what could be computed."""
    result = scores[f"subtask_{subtask}"]
    name = headline(subtask, result["intervals"])
    value, low, high = (result["intervals"][name][k] for k in ("value", "low", "high"))
    text = f"{value:.1f} ({low:.1f} to {high:.1f})"
    return f"{text}, mean of {', '.join(result['mean_of'])} only" if name == MEAN else f"{name} {text}"


def print_answer(case: Case, record: CaseRecord, *, as_json: bool) -> None:
    """The answer with the ids that support each sentence, then the sentences cited; notices go to stderr. Wrapped at
    a terminal's width, one line a sentence where it is piped."""
    if as_json:
        print(json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False))
        return
    verdicts = {v.answer_id: v for v in record.verdicts or []}
    cited = {link.answer_id: link.evidence_ids for link in record.links or []}
    _print_wrapped(f"Question: {record.question or case.clinician_question}")
    print()
    for number, sentence in enumerate(record.answer_sentences or [], 1):
        ids = ", ".join(cited.get(str(number), [])) or "no direct support"
        _print_wrapped(sentence if record.declined else f"{sentence} [{ids}]")
        if verdict := verdicts.get(str(number)):
            _print_wrapped(f"  {verdict.verdict}{f': {verdict.reason}' if verdict.reason else ''}")
    cited_ids = {i for ids in cited.values() for i in ids}
    if cited_ids:
        print()
    for s in case.sentences:
        if s.id in cited_ids:
            _print_wrapped(f"[{s.id}] {' '.join(s.text.split())}")
    for notice in record.notices:
        _print_wrapped(f"notice: {notice['stage']}: {notice['kind']} {notice['detail']}", sys.stderr)


def _print_wrapped(line: str, stream: TextIO | None = None) -> None:
    """`line` as it is, or on a terminal in lines of its width that break between words."""
    stream = stream or sys.stdout
    if stream.isatty():
        width = max(shutil.get_terminal_size().columns, 20)
        line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
    print(line, file=stream)


def print_scores(results: Mapping[int, ScoreResult], *, as_json: bool) -> None:
    """The score table of each subtask (or the official keys, intervals and what is missing as JSON) on stdout."""
    if as_json:
        by_subtask = {f"subtask_{n}": result.as_json() for n, result in results.items()}
        sys.stdout.writelines(json_pieces(by_subtask if len(by_subtask) > 1 else next(iter(by_subtask.values()))))
        print()
        return
    for number, result in results.items():
        if len(results) > 1:
            print(f"subtask {number}")
        print_columns([("score", "value", "95 % interval"), *result.rows()])
        for case, why in result.unscorable.items():
            print(f"unscorable: {case}: {why}")
        print(f"{len(result.table.case_ids)} cases")
