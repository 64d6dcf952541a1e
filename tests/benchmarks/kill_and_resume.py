"""kill -9 at random moments of a run with a slow LM, resumed each time. `python -m tests.benchmarks.kill_and_resume`
does it 30 times and prints what was lost, repeated or paid twice."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tests.stub_server import Received, StubServer, answer_stage

DELAY = 0.05
# A reply may be lost on its way if the process dies within this time of the server's sending it.
IN_TRANSIT = 0.1


@dataclass
class Report:
    """What the kills cost. All but `kills` should be 0, and the files those of an undisturbed run."""

    kills: int = 0
    lost: int = 0
    repeated: int = 0
    paid_twice: int = 0
    same_files: bool = False


class Log:
    """When each prompt came and when its reply was sent."""

    def __init__(self) -> None:
        self.times: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._lock = threading.Lock()

    def reply(self, received: Received) -> str:
        came = time.monotonic()
        time.sleep(DELAY)
        with self._lock:
            self.times[json.dumps(received.body["messages"])].append((came, time.monotonic()))
        return answer_stage(received.ask)

    def paid_twice(self, kills: list[float]) -> int:
        """Prompts asked again although no kill fell between their coming and their reply's arrival."""
        return sum(
            not any(came <= kill <= sent + IN_TRANSIT for kill in kills)
            for times in self.times.values()
            for came, sent in times[:-1]
        )


def kill_and_resume(folder: Path, kills: int, seed: int) -> Report:
    """Kill a run of sample/test `kills` times, finish it, and compare with an undisturbed run."""
    report, draw, log = Report(), random.Random(seed), Log()
    killed_at: list[float] = []
    finished: set[str] = set()
    with StubServer(log.reply) as server:
        while report.kills < kills:
            process = subprocess.Popen(_call(server, folder / "killed"), **_quiet())
            time.sleep(draw.uniform(0.8, 3.0))
            if process.poll() is not None:  # done before the kill: start over
                (folder / "killed" / "predictions.jsonl").unlink()
                finished.clear()
                continue
            process.kill()
            process.wait()
            killed_at.append(time.monotonic())
            report.kills += 1
            now = _journal(folder / "killed")
            report.lost += len(finished - set(now))
            report.repeated += len(now) - len(set(now))
            finished = set(now)
        subprocess.run(_call(server, folder / "killed"), check=True, **_quiet())
        now = _journal(folder / "killed")
        report.lost += len(finished - set(now))
        report.repeated += len(now) - len(set(now))
        report.paid_twice = log.paid_twice(killed_at)
    with StubServer() as server:
        subprocess.run(_call(server, folder / "calm"), check=True, **_quiet())
    names = [f"submission_subtask_{n}.json" for n in (1, 2, 3, 4)] + ["scores.json"]
    report.same_files = all((folder / "killed" / n).read_text() == (folder / "calm" / n).read_text() for n in names)
    return report


def _call(server: StubServer, out: Path) -> list[str]:
    lm = ["--lm", "openai/stub", "--api-base", server.openai, "--workers", "2"]
    return [sys.executable, "-m", "archehr", "run", "sample/test", *lm, "--out", str(out)]


def _quiet() -> dict:
    environment = {**os.environ, "OPENAI_API_KEY": "stub"}
    return {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": environment,
        "cwd": Path(__file__).parents[2],
    }


def _journal(folder: Path) -> list[str]:
    """Case ids of the whole lines."""
    path = folder / "predictions.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line)["case_id"] for line in lines]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(kill_and_resume(Path(scratch), kills=30, seed=0))
