"""The whole of `archehr compare`: runs what is not yet run, compares, and writes the tables and the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dspy

from data.case import Case, DataError
from data.submission import write_private
from metrics.tables import Resources
from optimize.compare import Comparison, compare
from optimize.compare_html import write_page
from optimize.compare_runs import Display, read_runs, run_programs
from optimize.compare_tables import frame, markdown
from program.state import BUILT_IN, load_program


def compare_to_folder(
    cases: Sequence[Case],
    programs: Sequence[str],
    lms: Sequence[str],
    run_folders: Sequence[Path],
    out: Path,
    *,
    make_lm: Callable[[str], dspy.LM],
    display: Display,
    tell: Callable[[str], None],
    baseline: str | None = None,
    keep_demo_cases: bool = False,
    resources: Resources | None = None,
    demo_cases: Sequence[Case] | None = None,
    **options: Any,
) -> Comparison:
    """Compare `programs`, run in `out`/runs, and `run_folders`; write comparison.csv, .md and .html to `out`.

    A folder among `programs` is taken for a run folder: of `--runs DIR/*` the option takes only the first.
    `demo_cases` fill the demos of published program files, `options` are those of run_cases. Raises DataError, and
    what run_cases raises.
    """
    _make_folder(out)
    finished = [name for name in programs if name not in BUILT_IN and Path(name).is_dir()]
    run_folders = [*run_folders, *map(Path, finished)]
    loaded = [load_program(name, None, demo_cases) for name in programs if name not in finished]
    made = run_programs(loaded, lms, make_lm, cases, out / "runs", display=display, tell=tell, **options)
    compared = compare(
        cases, read_runs([*made, *run_folders]), baseline=baseline, keep_demo_cases=keep_demo_cases, resources=resources
    )
    write_private(out / "comparison.csv", frame(compared).to_csv(index=False))
    write_private(out / "comparison.md", markdown(compared))
    write_page(compared, out / "comparison.html")
    tell(f"{out / 'comparison.html'} holds note text; keep it as you keep the data")
    return compared


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be made ({error.strerror}); name another --out") from None
