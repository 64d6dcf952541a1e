"""What processes gain where no LM is asked. `python -m tests.benchmarks.processes [CASES] [WORKERS]` answers 2,000
cases (the samples' notes, every sentence made unlike the others) on threads and on processes, a worker a core, the
whole command each time: reading, answering, journal, submissions, scores, report."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from archehr.program.run.engines.processes import cores
from tests.benchmarks.stream import write_table


def run(table: Path, out: Path, engine: str, workers: int) -> tuple[float, float]:
    """Wall and CPU seconds of `archehr run`."""
    spent, began = _cpu(), time.perf_counter()
    asked = ["--engine", engine, "--workers", str(workers), "--program", "extractive", "--out", str(out)]
    subprocess.run([sys.executable, "-m", "archehr", "run", str(table), *asked], check=True, capture_output=True)
    return time.perf_counter() - began, _cpu() - spent


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(cases: int, workers: int) -> None:
    print(f"{cases:,} cases, extractive, {cores()} cores")
    walls = []
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.jsonl"
        write_table(table, cases, 999)
        for engine, number in (("threads", workers), ("processes", 1), ("processes", workers)):
            wall, cpu = run(table, Path(folder) / f"{engine}-{number}", engine, number)
            walls.append(wall)
            print(f"{engine:>10} {number:>3}  {wall:7.1f} s  {1000 * cpu / cases:6.1f} ms CPU a case", flush=True)
    print(f"{workers} processes: {walls[0] / walls[2]:.2f}x of the threads, {walls[1] / walls[2]:.2f}x of one process")


if __name__ == "__main__":
    numbers = [int(given) for given in sys.argv[1:]]
    main(*(numbers + [2_000, cores()][len(numbers) :]))
