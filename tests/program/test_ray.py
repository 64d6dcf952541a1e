"""The ray engine on real Ray, on this machine: `pip install '.[ray]'`, then `pytest -m ray`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import archehr
from archehr.data.case import Case, DataError, Sentence
from archehr.program.lm import Budget, BudgetExceeded
from archehr.program.run.engines.on_ray.shape import SHARE, WAITING_SHARE, Shape
from archehr.program.run.engines.order import Order, budgets_of, case_as_json, keys_of
from archehr.program.run.engines.ray import RayEngine
from archehr.program.run.job import Job, RunStopped
from archehr.program.run.records import CaseRecord
from archehr.program.stage_lms import lm_identity, stage_lms, with_lms
from archehr.program.stages.registry import STAGES
from tests.fake_lm import fake_lm
from tests.stub_server import Received, Reply, StubServer, answer_stage

needs_ray = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra is not installed: pip install '.[ray]'"),
]
KEY = "sk-never-to-be-seen-1234567890"
CASES = archehr.read_cases("sample/test")


def small_case(number: int) -> Case:
    said = f"He was given {number} mg of furosemide for his swollen legs.", "His legs were less swollen in the morning."
    sentences = tuple(Sentence(str(i), text) for i, text in enumerate(said, 1))
    return Case(f"c{number}", narrative="Why was my father given furosemide?", sentences=sentences)


def said(record: CaseRecord) -> dict[str, Any]:
    return record.model_dump(mode="json", exclude={"seconds"})


def job(name: str = "zero_shot", lm: Any = None) -> Job:
    program, other = with_lms(archehr.load_program(name), lm)
    return Job(program, other, "own", tuple(STAGES))


# What an order makes again


def test_the_lms_of_an_order_are_those_of_the_job() -> None:
    budget = Budget(max_calls=5)
    own = {
        "": archehr.make_lm("openai/a", api_base="http://127.0.0.1:1/v1", api_key=KEY, budget=budget, max_tokens=99),
        "score": archehr.make_lm("openai/b", api_base="http://127.0.0.1:2/v1", budget=budget, seed=4),
        "align": archehr.make_lm("knn"),
    }
    ours = job(lm=own)
    order = Order.of(ours)
    assert order is not None and KEY not in order.model_dump_json() and KEY not in repr(order)
    assert keys_of(ours) == {"": KEY}
    shared = Budget(max_calls=5)
    made = Order.model_validate_json(order.model_dump_json()).job(keys_of(ours), [shared])
    theirs, here = stage_lms(made.program, made.lm), stage_lms(ours.program, ours.lm)
    assert {s: lm_identity(lm) for s, lm in theirs.items()} == {s: lm_identity(lm) for s, lm in here.items()}
    assert theirs["reformulate"] is theirs["generate"] is made.lm
    assert theirs["reformulate"].engine.asked.api_key == KEY
    assert budgets_of(ours) == [budget] and budgets_of(made) == [shared]


def test_an_lm_that_is_another_elsewhere_is_refused() -> None:
    order = Order.of(job(lm=archehr.make_lm("openai/a", api_base="http://127.0.0.1:1/v1")))
    assert order is not None
    order.lms[0].settings["api_base"] = "http://127.0.0.1:2/v1"
    with pytest.raises(ValueError, match=r"^openai/a is another here \(endpoint\)"):
        order.job()


@pytest.mark.parametrize(
    ("workers", "asks", "cpus", "nodes", "shape"),
    [
        (8, False, 2, 1, (2, 1, 8)),
        (1, False, 2, 1, (1, 1, 8)),
        (8, True, 2, 1, (1, 8, 1)),
        (16, True, 2, 1, (2, 8, 1)),
        (64, True, 2, 1, (2, 32, 1)),
        (6400, True, 800, 100, (800, 1, 8)),
    ],
)
def test_actors_calls_and_blocks_of_a_pool(
    workers: int, asks: bool, cpus: int, nodes: int, shape: tuple[int, int, int]
) -> None:
    made = Shape.of(workers, asks, cpus, nodes)
    assert made == Shape(*shape, WAITING_SHARE if asks else SHARE)
    assert not asks or workers <= made.workers <= 1.3 * workers


# What is refused, in one line


def test_without_ray_the_extra_is_named(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    ran = command("run", "sample/test", "--engine", "ray", "--out", "r")
    assert ran.code == 2 and ran.err.strip().endswith(
        "--engine ray needs the extra `ray`: pip install 'archehr-dspy[ray]'"
    )
    assert not Path("r").exists()


class TestRefused:
    pytestmark = needs_ray

    @pytest.mark.parametrize(
        ("address", "why"),
        [("127.0.0.1:1", "no Ray cluster answers there"), ("ray://h:1", "give HOST:PORT"), ("x", "no Ray cluster")],
    )
    def test_no_cluster_at_the_address(self, command: Any, address: str, why: str) -> None:
        ran = command("run", "sample/test", "--engine", "ray", "--ray-address", address, "--out", "r")
        assert ran.code == 2 and f"--ray-address {address}: {why}" in ran.err and len(ran.err.splitlines()) == 1
        assert not Path("r").exists()

    def test_an_address_is_for_ray(self, command: Any) -> None:
        ran = command("run", "sample/test", "--ray-address", "auto", "--out", "r")
        assert ran.code == 2 and "--ray-address is for --engine ray" in ran.err

    def test_lms_that_only_this_process_has(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="is not one of make_lm"):
            RayEngine().check(job(lm=fake_lm(["x"])))
        with pytest.raises(DataError, match="--record"):
            RayEngine().check(job(lm=archehr.make_lm("knn", record=tmp_path / "r.jsonl")))

    @pytest.mark.parametrize("lm", [[], ["--lm", "knn"]], ids=["no LM", "knn"])
    def test_local_only_keeps_the_notes_off_other_machines(
        self, lm: list[str], command: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The nodes are made up; nothing is sent to them, so that it does not matter."""
        from archehr.program.run.engines.on_ray import connection

        def node(address: str, alive: bool = True) -> dict[str, Any]:
            return {"NodeManagerAddress": address, "NodeID": address, "Alive": alive}

        nodes = [node("10.0.0.1"), node("10.0.0.2"), node("10.0.0.3", alive=False)]
        monkeypatch.setattr(connection.ray, "is_initialized", lambda: True)
        monkeypatch.setattr(connection.ray, "nodes", lambda: nodes)
        monkeypatch.setattr(connection.ray.util, "get_node_ip_address", lambda: "10.0.0.1")
        monkeypatch.setattr(connection, "_check_nodes", lambda nodes: pytest.fail("it was sent something"))
        call = ("run", "sample/test", *lm, "--cases", "101", "--engine", "ray", "--ray-address", "auto", "--out")
        refused = command(*call, "r", "--local-only")
        assert refused.code == 2, refused
        assert "--local-only: the Ray cluster has other machines than this one; leave --ray-address out" in refused.err
        monkeypatch.setenv("ARCHEHR_LOCAL_ONLY", "1")
        assert "--local-only: the Ray cluster has other machines" in command(*call, "r2").err
        monkeypatch.delenv("ARCHEHR_LOCAL_ONLY")
        with pytest.raises(pytest.fail.Exception, match="it was sent something"):
            command(*call, "r3")

    def test_a_node_without_the_package_or_with_another_version(self) -> None:
        from archehr.program.run.engines.on_ray.connection import check_versions

        here = {name: version(name) for name in ("archehr-dspy", "dspy")}
        check_versions("10.0.0.2", here)
        with pytest.raises(DataError, match=r"^Ray node 10.0.0.2 has no archehr-dspy; install the same on every node"):
            check_versions("10.0.0.2", {**here, "archehr-dspy": ""})
        with pytest.raises(DataError, match=r"has dspy 3.0, here is"):
            check_versions("10.0.0.2", {**here, "dspy": "3.0"})


class TestDesk:
    pytestmark = needs_ray

    def test_what_a_dead_worker_set_aside_is_spent_and_a_budget_is_never_passed(self) -> None:
        from archehr.program.run.engines.on_ray.desk import BudgetState, Desk

        async def play() -> dict[str, Any]:
            desk = Desk()
            await desk.open({}, [BudgetState.of(Budget(max_tokens_total=100)).model_dump()])
            await desk.hello("a", "a1")
            await desk.hello("b", "b1")
            assert await desk.reserve("a", "a1", 0, 60, 0.0) is None
            waits = asyncio.create_task(desk.reserve("b", "b1", 0, 60, 0.0))
            await asyncio.sleep(0.01)
            assert not waits.done()  # it may fit yet
            await desk.hello("a", "a2")  # killed, and started again
            assert "--max-tokens-total 100: 60 are used" in str(await waits)
            await desk.settle("a1", 0, (60, 0.0), 10, 0.0)  # what it had under way comes back: booked already
            return (await desk.budgets())[0]

        state = asyncio.run(play())
        assert (state["calls"], state["tokens"]) == (1, 60) and state["stopped"]

    def test_a_reader_that_starts_again_reads_the_same_blocks(self) -> None:
        from archehr.program.run.engines.on_ray.desk import Desk

        async def play() -> list[str | None]:
            desk = Desk()
            waits = asyncio.create_task(desk.block(0))
            for number in range(3):
                await desk.put(number, f"cases {number}")
            assert await waits == "cases 0"
            await desk.done(0)
            await desk.end()
            return [await desk.block(number) for number in range(4)]

        assert asyncio.run(play()) == ["", "cases 1", "cases 2", None]

    def test_a_block_that_its_workers_die_of_is_given_up(self) -> None:
        from archehr.program.run.engines.on_ray.desk import ATTEMPTS, FATAL, GO, STOPPED, Desk

        async def play() -> list[str]:
            desk = Desk()
            leave = [await desk.begin(0) for _ in range(ATTEMPTS + 1)]
            await desk.stop()
            return [*leave, await desk.begin(1)]

        assert asyncio.run(play()) == [GO] * ATTEMPTS + [FATAL, STOPPED]


# Runs, two actors each


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Ray of two cores, whose workers keep their replies apart from the developer's; the address."""
    import ray

    before = dict(os.environ)
    os.environ |= {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("replies")), "RAY_USAGE_STATS_ENABLED": "0"}
    context = ray.init(
        address="local", num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False
    )
    yield context.address_info["gcs_address"]
    ray.shutdown()
    os.environ.clear()
    os.environ |= before


@pytest.mark.usefixtures("cluster")
class TestRuns:
    pytestmark = needs_ray

    def test_two_thousand_cases_as_a_plain_run_answers_them(self, tmp_path: Path) -> None:
        cases = [small_case(n) for n in range(2000)]
        program = archehr.load_program("extractive")
        on_ray = archehr.run_cases(cases, program, engine="ray", workers=2, out=tmp_path / "ray")
        plain = archehr.run_cases(cases, program, engine="processes", workers=2, out=tmp_path / "plain")
        assert [said(record) for record in on_ray.records] == [said(record) for record in plain.records]
        for subtask, file in plain.files.items():
            assert on_ray.files[subtask].read_bytes() == file.read_bytes()

    def test_an_lm_is_booked_as_in_a_plain_run_and_its_key_stands_nowhere(self, tmp_path: Path) -> None:
        import ray

        with StubServer() as server:
            lm = archehr.make_lm("openai/stub", api_base=server.openai, api_key=KEY)
            on_ray = archehr.run_cases(CASES[:6], job().program, lm, engine="ray", workers=16, out=tmp_path / "ray")
            asked = [json.dumps(received.body["messages"]) for received in server.received]
            plain = archehr.run_cases(CASES[:6], job().program, lm, engine="threads", out=tmp_path / "plain")
            assert {received.headers["authorization"] for received in server.received} == {f"Bearer {KEY}"}
        assert len(asked) == len(set(asked)) == 30
        assert [said(record) for record in on_ray.records] == [said(record) for record in plain.records]
        ours, theirs = (m.as_json() for m in (on_ray.manifest, plain.manifest))
        sessions = [m.pop("sessions")[0] for m in (ours, theirs)]
        assert ours == theirs and all(s.pop("started") and s.pop("seconds") for s in sessions)
        assert sessions[0] == sessions[1] and sessions[0]["models"] == {"stub": 30}
        logs = Path(ray._private.worker._global_node.get_logs_dir_path())
        written = [p.read_bytes() for folder in (logs, tmp_path) for p in folder.rglob("*") if p.is_file()]
        assert len(written) > 10 and not any(KEY.encode() in text for text in written)
        quoted = CASES[0].narrative[:60].encode()
        assert not any(quoted in p.read_bytes() for p in logs.rglob("*") if p.is_file())

    def test_a_budget_is_shared_by_the_actors_and_never_overspent(self, tmp_path: Path) -> None:
        with StubServer(lambda received: Reply(answer_stage(received.ask), delay=0.02)) as server:
            budget = Budget(max_calls=37)
            lm = archehr.make_lm("openai/stub", api_base=server.openai, budget=budget)
            with pytest.raises(BudgetExceeded, match="--max-calls 37 is reached"):
                archehr.run_cases(CASES, job().program, lm, engine="ray", workers=16, out=tmp_path / "r")
            assert len(server.received) == budget.calls == 37 and budget.stopped
        manifest = json.loads((tmp_path / "r" / "run.json").read_text())
        assert manifest["usage"]["calls"] == 37

    def test_what_ends_a_plain_run_ends_this_one(self, tmp_path: Path) -> None:
        with StubServer(lambda _: Reply(status=401, message=f"no such key {KEY}")) as server:
            lm = archehr.make_lm("openai/stub", api_base=server.openai, api_key=KEY)
            with pytest.raises(RunStopped) as stopped:
                archehr.run_cases(CASES, job().program, lm, engine="ray", workers=16, out=tmp_path / "r")
        why = stopped.value
        assert type(why.__cause__).__name__ == "LMAuthError" and KEY not in str(why) and not why.begun
        gone = archehr.make_lm("openai/stub", api_base=server.openai, num_retries=0)
        with pytest.raises(RunStopped, match=r"no reply in \d cases in a row"):
            archehr.run_cases(CASES, job().program, gone, engine="ray", workers=16, out=tmp_path / "gone")

    def test_a_worker_of_another_version_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        order = Order.of(job("extractive"))
        assert order is not None
        other = order.model_copy(update={"program_hash": "0" * 64})
        monkeypatch.setattr(Order, "of", lambda _: other)
        with pytest.raises(
            DataError, match=r"^[0-9.:a-f]+: this worker makes another program .* same archehr everywhere"
        ):
            archehr.run_cases(CASES, archehr.load_program("extractive"), engine="ray", workers=2)

    def test_the_source_is_read_as_it_is_answered_and_its_error_ends_the_run(self) -> None:
        from archehr.program.run.engines.registry import answers

        taken = 0

        def stream() -> Iterator[Case]:
            nonlocal taken
            for taken in range(1000):
                yield small_case(taken)
                if taken == 600:
                    raise DataError("line 601: torn")

        records = []
        with pytest.raises(DataError, match="line 601: torn"):
            for record in answers(RayEngine(), job("extractive"), stream(), 2):
                records.append(record)
                assert taken < len(records) + 150
        assert len(records) > 400

    def test_an_actor_that_is_killed_loses_no_case(self, tmp_path: Path) -> None:
        killed: list[int] = []

        def kill_once(_: CaseRecord) -> None:
            if not killed:
                killed.append(_actors()[0])
                os.kill(killed[0], signal.SIGKILL)

        with StubServer(lambda received: Reply(answer_stage(received.ask), delay=0.05)) as server:
            lm = archehr.make_lm("openai/stub", api_base=server.openai)
            result = archehr.run_cases(
                CASES, job().program, lm, engine="ray", workers=16, out=tmp_path / "r", on_case=kill_once
            )
            asked = Counter(json.dumps(received.body["messages"]) for received in server.received)
            plain = archehr.run_cases(CASES, job().program, lm, engine="threads")
        assert killed and [_bare(record) for record in result.records] == [_bare(record) for record in plain.records]
        # Of each of the eight cases that it had in flight, the call under way is asked again.
        assert set(asked.values()) <= {1, 2} and sum(asked.values()) - len(asked) <= 8

    def test_a_driver_that_is_killed_is_resumed(self, cluster: str, tmp_path: Path) -> None:
        def slow(received: Received) -> Reply:
            return Reply(answer_stage(received.ask), delay=0.1)

        with StubServer(slow) as server:
            driver = _start(server, cluster, tmp_path, workers=4)
            finished = _until(tmp_path, cases=3)
            driver.kill()
            driver.wait()
            _until_no_actors()
            finished = _journal(tmp_path)
            before = Counter(json.dumps(received.body["messages"]) for received in server.received)
            ran = _start(server, cluster, tmp_path, workers=4)
            assert ran.wait(timeout=300) == 0
            asked = Counter(json.dumps(received.body["messages"]) for received in server.received)
        assert 3 <= len(finished) < len(CASES) and set(before.values()) == {1}
        journal = _journal(tmp_path)
        assert journal[: len(finished)] == finished and sorted(journal) == [case.id for case in CASES]
        assert sum(asked.values()) - len(asked) <= 4  # one call of each case in flight

    def test_ctrl_c_keeps_what_is_in_flight_and_is_resumed(self, cluster: str, tmp_path: Path) -> None:
        with StubServer(lambda received: Reply(answer_stage(received.ask), delay=0.1)) as server:
            driver = _start(server, cluster, tmp_path, workers=4)
            _until(tmp_path, cases=2)
            os.killpg(driver.pid, signal.SIGINT)
            _, err = driver.communicate(timeout=120)
            assert driver.returncode == 130 and "interrupted; finished cases are kept" in err, err
            assert "Traceback" not in err
            finished = _journal(tmp_path)
            assert 2 <= len(finished) < len(CASES) and len(server.received) == 5 * len(finished)
            assert _start(server, cluster, tmp_path, workers=4).wait(timeout=300) == 0
            assert len(server.received) == 5 * len(CASES)
        assert _journal(tmp_path)[: len(finished)] == finished and len(_journal(tmp_path)) == len(CASES)


def test_the_rows_are_plain_json() -> None:
    assert all("\n" not in case_as_json(case) for case in CASES)


def _bare(record: CaseRecord) -> dict[str, Any]:
    """Without what depends on which replies were cached."""
    return record.model_dump(mode="json", exclude={"seconds", "usage"})


def _actors() -> list[int]:
    """The pids of Answerers that stem from this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if command.startswith("ray::") and "Answerer" in command and _is_ours(int(folder.name)):
            found.append(int(folder.name))
    return found


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def _start(server: StubServer, cluster: str, folder: Path, workers: int) -> subprocess.Popen[str]:
    lm = ["--lm", "openai/stub", "--api-base", server.openai]
    engine = ["--engine", "ray", "--ray-address", cluster, "--workers", str(workers)]
    return subprocess.Popen(
        [sys.executable, "-m", "archehr", "run", "sample/test", *lm, *engine, "--out", str(folder / "r")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _until(folder: Path, cases: int) -> list[str]:
    deadline = time.monotonic() + 200
    while len(finished := _journal(folder)) < cases:
        assert time.monotonic() < deadline, "no case was finished"
        time.sleep(0.02)
    return finished


def _until_no_actors() -> None:
    deadline = time.monotonic() + 60
    while _actors():
        assert time.monotonic() < deadline, "the actors of a dead driver live on"
        time.sleep(0.1)


def _journal(folder: Path) -> list[str]:
    path = folder / "r" / "predictions.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line)["case_id"] for line in lines]
