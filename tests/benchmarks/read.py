"""How fast tables are read and what memory that takes, against plain pandas on the same file.

`python -m tests.benchmarks.read` prints rows a second of processor time and peak memory, a process for each, for 1,000
to 100,000 rows. "rows" is reading alone; "cases" splits every note into sentences too, which pandas does not.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

NOTE = "He came in with chest pain. Troponin was negative twice.\nHe was given furosemide, 40 mg, for oedema. " * 10
READ = {
    "pandas": "import pandas; n = len(pandas.read_csv(path, dtype=str, keep_default_na=False))",
    "rows": "n = sum(1 for _ in rows_of(Path(path), ReadOptions()))",
    "cases": "n = sum(1 for _ in iter_cases(path))",
}
MEASURED = """
import resource, sys, time
from pathlib import Path
path = sys.argv[1]
import pandas
from archehr.data.dataset import iter_cases
from archehr.data.reading.reader import ReadOptions
from archehr.data.reading.rows import rows_of
start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{read}
took, after = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(n / took, (after - before) / 1024)
"""


def measure(path: Path, read: str) -> tuple[float, float]:
    """Rows a second, and MB of memory beyond what the imports took."""
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED.format(read=read), str(path)], capture_output=True, text=True, check=True
    )
    speed, memory = ran.stdout.split()
    return float(speed), float(memory)


def main() -> None:
    print(f"{'rows':>8}  {'reader':7}  {'rows/s':>9}  {'MB':>7}   notes of {len(NOTE):,} characters")
    for count in (1_000, 10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "t.csv"
            with path.open("w", newline="") as out:
                table = csv.writer(out)
                table.writerow(("id", "message", "note"))
                table.writerows((i, "Why did I get the water pills?", NOTE) for i in range(count))
            for name, read in READ.items():
                speed, memory = measure(path, read)
                print(f"{count:>8,}  {name:7}  {speed:>9,.0f}  {memory:>7.1f}", flush=True)


if __name__ == "__main__":
    main()
