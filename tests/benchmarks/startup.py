"""How long a user waits before anything happens: `python -m tests.benchmarks.startup` prints seconds and ratios."""

from __future__ import annotations

import subprocess
import sys
import time


def seconds(*call: str, tries: int = 5) -> float:
    """The best of `tries` runs."""
    best = float("inf")
    for _ in range(tries):
        began = time.perf_counter()
        subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - began)
    return best


if __name__ == "__main__":
    python = seconds(sys.executable, "-c", "pass")
    for name, call in {
        "archehr --help": (sys.executable, "-m", "archehr", "--help"),
        "import archehr": (sys.executable, "-c", "import archehr"),
        "import archehr, all of its API": (
            sys.executable,
            "-c",
            "import archehr as a; a.GroundedQA, a.load_program, a.make_lm, a.run_cases",
        ),
        "import dspy alone": (sys.executable, "-c", "import dspy"),
    }.items():
        took = seconds(*call)
        print(f"{name:32s} {took:.2f} s, {took / python:.0f} x an empty python")
