"""The batch jobs of a run folder, as a table: `archehr run --batch-status` and `--batch-cancel`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from archehr.terminal.display import print_columns


def show_jobs(program: Any, lms: Any, folder: Path, *, cancel: bool, as_json: bool) -> None:
    """The table (or JSON) on stdout; with `cancel`, after what has not ended was cancelled."""
    from archehr.program.run.engines.batch.status import job_status
    from archehr.program.run.job import Job
    from archehr.program.stage_lms import with_lms

    jobs = job_status(Job(*with_lms(program, lms), "own", ()), folder, cancel=cancel)
    if as_json:
        print(json.dumps([asdict(one) for one in jobs], indent=1))
        return
    rows = [("job", "LM", "sent", "requests", "fetched", "state")]
    rows += [(one.job or "-", one.lm, one.sent, str(one.requests), str(one.fetched), one.state) for one in jobs]
    print_columns(rows)
