"""Writes report.html: one page up to 200 cases, else an index over pages that are written as the cases come."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from archehr.data.case import Case, DataError
from archehr.data.files import write_private
from archehr.program.extractive.fitted.file import kept_models
from archehr.program.run.html import page_pieces
from archehr.program.run.manifest import Manifest
from archehr.program.run.records import CaseRecord
from archehr.program.run.report.looks import CLEAR, LOOKS, NOTICES, CaseScores
from archehr.program.run.report.overall import SUBTASK_4, Sums, score_rows
from archehr.program.run.report.view import Shown, in_page, list_line, view_of, why_scored, with_words, words_of

ONE_PAGE = 200  # cases; a browser opens a page of more of them slowly
PER_PAGE = 50
MOST_SEARCHED = 200_000  # cases; with the words of all of 500,000, the list is a text longer than a browser can hold
PAGES = Path(__file__).parent / "pages"

Pair = tuple[Case, CaseRecord]


def write_report(
    manifest: Manifest, scores: Mapping[str, Any], cases: Iterable[Case], records: Iterable[CaseRecord], path: Path
) -> None:
    """Write the page at `path`, or an index there and its pages in a folder beside it (report.html, report/0001.html).

    `records` are in the order of `cases`; both are read once, and no more than one page of them is held. All files
    are 0600: they hold the notes. Raises DataError.
    """
    report = _Report(manifest, scores, path)
    pairs = zip(cases, records, strict=True)
    first = list(islice(pairs, ONE_PAGE + 1))
    if len(first) <= ONE_PAGE:
        report.write_one_page(first)
    else:
        report.write_pages(chain(first, pairs))


class _Report:
    def __init__(self, manifest: Manifest, scores: Mapping[str, Any], path: Path) -> None:
        self.manifest, self.scores, self.path = manifest, scores, path
        self.folder = path.with_suffix("")
        self.case_scores = CaseScores(scores)
        self.fitted = kept_models(path.with_name("program.json"))
        self.sums = Sums()

    def write_one_page(self, pairs: Sequence[Pair]) -> None:
        # Why a sentence was scored so takes about 10 ms a case: where there are many cases, it would double the run.
        shown = [self._view(number, pair, reasons=True) for number, pair in enumerate(pairs, 1)]
        lines = [with_words(list_line(one, f"#{one['anchor']}"), words_of(one)) for one in shown]
        self._write(self.path, "report.html.j2", ["list.js", "cases.js"], cases=shown, list_data=self._list_data(lines))
        self._remove_pages(0)

    def write_pages(self, pairs: Iterable[Pair]) -> None:
        number, pages = 0, 0
        with self._rows() as rows:
            batch, pairs = list(islice(pairs, PER_PAGE)), iter(pairs)
            while batch:
                following, pages = list(islice(pairs, PER_PAGE)), pages + 1
                shown = [self._view(number + i, pair, reasons=False) for i, pair in enumerate(batch, 1)]
                name = _page_name(pages)
                for one in shown:
                    line = list_line(one, f"{self.folder.name}/{name}#{one['anchor']}")
                    rows.write(f"{line}\t{words_of(one)}\n")  # neither has a tab in it
                self._write(
                    self.folder / name,
                    "part.html.j2",
                    ["cases.js"],
                    cases=shown,
                    index=f"../{self.path.name}",
                    earlier=_page_name(pages - 1) if pages > 1 else None,
                    later=_page_name(pages + 1) if following else None,
                )
                number, batch = number + len(batch), following
            rows.seek(0)
            split = (row.rstrip("\n").partition("\t") for row in rows)
            lines = (with_words(line, words) if self._searched else line for line, _, words in split)
            names = [f"{self.folder.name}/{_page_name(n)}" for n in range(1, pages + 1)]
            self._write(self.path, "index.html.j2", ["list.js"], pages=names, list_data=self._list_data(lines))
        self._remove_pages(pages)

    def _view(self, number: int, pair: Pair, *, reasons: bool) -> Shown:
        run = self.manifest
        given = run.question == "given"
        why = why_scored(*pair, extractive=run.lm is None, given=given, fitted=self.fitted) if reasons else {}
        shown = view_of(number, *pair, self.case_scores, why)
        self.sums.add(pair[1], shown["looks"])
        return shown

    @property
    def _searched(self) -> bool:
        """Whether a search looks through messages and answers, not through ids and questions alone."""
        return self.sums.cases <= MOST_SEARCHED

    def _list_data(self, lines: Iterable[str]) -> Iterator[str]:
        """What list.js reads, piece by piece."""
        looks = {name: {"sign": look.sign, "name": look.name, "tone": look.tone} for name, look in LOOKS.items()}
        yield f'{{"looks":{in_page(looks)},"cases":[\n'
        for place, line in enumerate(lines):
            yield f"{',' if place else ''}{line}\n"
        yield "]}"

    def _write(self, path: Path, template: str, scripts: Sequence[str], **values: Any) -> None:
        style, *code = ((PAGES / name).read_text(encoding="utf-8") for name in ("report.css", *scripts))
        pieces = page_pieces(
            PAGES / template,
            "\n".join(code),
            style=style,
            run=self.manifest,
            sums=self.sums,
            looks=LOOKS,
            clear=CLEAR,
            searched=self._searched,
            notices=NOTICES,
            scores=list(score_rows(self.scores)),
            not_scored=self.scores.get("not_scored", {}),
            subtask_4=SUBTASK_4[self.manifest.subtask_4_links],
            **values,
        )
        write_private(path, pieces)

    @contextlib.contextmanager
    def _rows(self) -> Iterator[IO[str]]:
        """A file of its own for the lines of the list, gone when it is closed. Raises DataError."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile("w+", dir=self.folder, encoding="utf-8") as rows:
                yield rows
        except OSError as error:
            raise DataError(f"{self.folder}: cannot be written ({error.strerror}); free space or mend it") from None

    def _remove_pages(self, keep: int) -> None:
        """Pages that an earlier, longer report left behind."""
        kept = {_page_name(n) for n in range(1, keep + 1)}
        for page in self.folder.glob("[0-9]*.html"):
            if page.name not in kept:
                page.unlink()
        if not keep:
            with contextlib.suppress(OSError):  # there is none, or it holds something of the user's
                self.folder.rmdir()


def _page_name(number: int) -> str:
    return f"{number:04}.html"
