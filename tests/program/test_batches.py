"""Runs by batches: the answers, books and limits of a direct run, whatever becomes of the jobs."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import archehr
from archehr.data.dataset import read_dataset
from archehr.program.lm import Budget, BudgetExceeded, make_lm
from archehr.program.run.engines.batch.store import Store
from archehr.program.run.job import RunStopped
from archehr.program.run.run import RunResult
from archehr.program.settings import parse_views
from tests.batch_server import BatchServer, Plan, StatusError
from tests.stub_server import Received, Reply, answer_stage

DATA = read_dataset("sample/dev").only("1-6")
SERVICES = ("gemini", "openai", "vertex")
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("batch_services")


def lm_of(server: BatchServer, service: str, budget: Budget | None = None, **settings: Any) -> Any:
    budget = budget or Budget(price_in=1, price_out=2)
    if service == "vertex":
        os.environ["STORAGE_EMULATOR_HOST"] = server.url
        return make_lm("vertex_ai/gemini-2.5-flash", api_base=server.gemini, budget=budget, cache=False, **settings)
    if service == "gemini":
        return make_lm("gemini/gemini-2.5-flash", api_base=server.gemini, budget=budget, cache=False, **settings)
    return make_lm("openai/gpt-4o-mini", api_base=server.openai, budget=budget, cache=False, **settings)


def run(server: BatchServer, service: str, out: Path, engine: str = "batch", **given: Any) -> RunResult:
    views, budget = given.pop("views", None), given.pop("budget", None)
    told = given.pop("tell", lambda _: None)
    program = archehr.load_program("default", {"views": parse_views(views)} if views else {})
    lm = lm_of(server, service, budget, **given)
    return archehr.run_cases(DATA, program, lm, out=out, engine=engine, tell=told)


def said(result: RunResult) -> list[dict[str, Any]]:
    """The records but for time and dollars."""
    records = [record.model_dump(mode="json", exclude={"seconds"}) for record in result.records]
    return [{**r, "usage": {k: v for k, v in r["usage"].items() if k != "cost"}} for r in records]


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.glob("submission_subtask_*.json"))}


def spelled(body: dict[str, Any]) -> str:
    """A request under one spelling of a name that google-genai writes in snake case where it writes the others in
    camel case, and without what tells requests of one job apart."""
    written = json.dumps({name: value for name, value in body.items() if name != "labels"}, sort_keys=True)
    return written.replace("property_ordering", "propertyOrdering")


def bodies(job: Any) -> list[str]:
    return sorted(spelled(body) for body in job.requests.values())


def faulty(received: Received) -> str | Reply:
    """Some replies that a stage asks again for, some that cannot be used, some errors; always the same for the same
    request."""
    number = len(received.prompt) % 7
    if number == 1:
        return "no JSON at all"
    if number == 2:
        return Reply(status=400, message="this one is refused")
    if number == 3:
        return Reply(finish="length", text="{")
    if number == 4:
        return Reply(answer_stage(received.ask), thinking=7, cached=30)
    if number == 5:
        return json.dumps(json.loads(answer_stage(received.ask)), ensure_ascii=False).replace("What", "What\u2028\x85x")
    return answer_stage(received.ask)


class Flaky:
    """Fails the first time that a request is made, in two of three."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> str | Reply:
        said = spelled(received.body)
        with self._lock:
            self.seen[said] += 1
        first = self.seen[said] == 1 and len(said) % 3
        return Reply(status=503, headers={"retry-after": "0"}) if first else answer_stage(received.ask)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("reply", [None, faulty, "flaky"], ids=["good", "faulty", "flaky"])
def test_a_run_by_batches_is_the_direct_run_at_half_the_price(service: str, reply: Any, tmp_path: Path) -> None:
    made = Flaky if reply == "flaky" else lambda: reply
    with BatchServer() as server:
        server.reply = made() or server.reply
        direct = run(server, service, tmp_path / "direct", "threads")
        asked = Counter(spelled(r.body) for r in server.received)
        server.reply = made() or server.reply
        batch = run(server, service, tmp_path / "batch")
        assert Counter(spelled(r.body) for r in server.received) == asked + asked
        assert all(job.state == "SUCCEEDED" for job in server.jobs) and len(server.jobs) >= 4
    assert files(tmp_path / "batch") == files(tmp_path / "direct") and len(files(tmp_path / "batch")) == 4
    assert said(batch) == said(direct)
    ours, theirs = batch.manifest.sessions[-1], direct.manifest.sessions[-1]
    assert ours.usage is not None and theirs.usage is not None and theirs.usage.cost
    assert ours.usage.cost == pytest.approx(theirs.usage.cost / 2)
    assert replace(ours.usage, cost=0) == replace(theirs.usage, cost=0)
    assert {k: replace(v, cost=0) for k, v in ours.by_stage.items()} == {
        k: replace(v, cost=0) for k, v in theirs.by_stage.items()
    }
    assert batch.manifest.notices == direct.manifest.notices and ours.models == theirs.models


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    "plans",
    [
        {0: Plan(state="EXPIRED", skipped=None)},
        {0: Plan(state="EXPIRED", skipped=frozenset({1, 3})), 1: Plan(state="EXPIRED", skipped=frozenset({0}))},
        {1: Plan(state="FAILED", skipped=None, why="internal"), 2: Plan(looks=4)},
        {0: Plan(state="PARTIALLY_SUCCEEDED", skipped=frozenset({0, 5})), 3: Plan(skipped=frozenset({2}))},
    ],
    ids=["expired", "partly expired", "failed, slow", "partly succeeded"],
)
def test_what_a_job_never_got_to_goes_into_the_next(service: str, plans: dict[int, Plan], tmp_path: Path) -> None:
    told: list[str] = []
    with BatchServer(plan=lambda n: plans.get(n, Plan())) as server:
        direct = run(server, service, tmp_path / "direct", "threads")
        batch = run(server, service, tmp_path / "batch", tell=told.append)
        assert set(server.answered.values()) == {1}
    assert files(tmp_path / "batch") == files(tmp_path / "direct")
    assert said(batch) == said(direct)
    assert sum("are asked again" in line for line in told) == sum(p.skipped != frozenset() for p in plans.values())


def test_a_request_that_no_job_gets_to_is_an_outage_in_the_end(tmp_path: Path) -> None:
    with BatchServer(plan=lambda _: Plan(state="EXPIRED", skipped=None)) as server:
        with pytest.raises(RunStopped, match="ended without an answer"):
            run(server, "gemini", tmp_path / "run", num_retries=0)
        assert len(server.jobs) == 4
        server.plan = lambda _: Plan()
        assert len(run(server, "gemini", tmp_path / "run").records) == len(DATA.cases)


@pytest.mark.parametrize("service", SERVICES)
def test_all_samples_of_a_prompt_are_in_one_job(service: str, tmp_path: Path) -> None:
    with BatchServer() as server:
        direct = run(server, service, tmp_path / "direct", "threads", views="score*3")
        batch = run(server, service, tmp_path / "batch", views="score*3")
        assert 3 * len(DATA.cases) in [len(job.requests) for job in server.jobs]
    assert said(batch) == said(direct)


def test_answers_without_their_keys_are_taken_in_order(tmp_path: Path) -> None:
    with BatchServer(keep_metadata=False) as server:
        direct = run(server, "gemini", tmp_path / "direct", "threads")
        assert said(run(server, "gemini", tmp_path / "batch")) == said(direct)


def test_a_large_job_goes_as_a_file_with_the_same_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with BatchServer() as server:
        inline = run(server, "gemini", tmp_path / "inline")
        count = len(server.jobs)
        monkeypatch.setattr("archehr.program.lm.batches.gemini.INLINE_BYTES", 0)
        filed = run(server, "gemini", tmp_path / "filed")
        first, second = server.jobs[:count], server.jobs[count:]
        assert all(job.by_file for job in second) and not any(job.by_file for job in first)
        assert [bodies(job) for job in first] == [bodies(job) for job in second]
        body = next(iter(second[1].requests.values()))
    assert said(filed) == said(inline)
    settings = body["generationConfig"]
    assert settings["responseSchema"]["type"] == "OBJECT" and settings["responseMimeType"] == "application/json"
    assert "responseJsonSchema" not in json.dumps(body) and settings["temperature"] == 0.0
    assert body["safetySettings"][0]["threshold"] == "BLOCK_NONE"


@pytest.mark.parametrize("limit", ["most_requests", "most_bytes"])
def test_what_is_too_much_for_one_job_goes_as_several(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = {"most_requests": 4, "most_bytes": 20_000}[limit]
    monkeypatch.setattr(f"archehr.program.lm.batches.gemini.GeminiBatches.{limit}", most)
    with BatchServer(plan=lambda n: Plan(looks=1 + n % 3)) as server:
        direct = run(server, "gemini", tmp_path / "direct", "threads")
        assert said(run(server, "gemini", tmp_path / "batch")) == said(direct)
        if limit == "most_requests":
            assert max(len(job.requests) for job in server.jobs) == 4
        assert len(server.jobs) > 8 and set(server.answered.values()) == {1}


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("limit", ["max_calls", "max_tokens_total", "max_cost"])
def test_a_budget_is_never_overspent_and_the_next_call_goes_on(service: str, limit: str, tmp_path: Path) -> None:
    def long(received: Received) -> Reply:
        return Reply(answer_stage(received.ask), tokens_in=len(received.prompt) // 4, tokens_out=400)

    def taken(used: dict[str, int], calls: int) -> dict[str, float]:
        made, given = used["tokens_out"], used["tokens_in"]
        return {"max_calls": calls, "max_tokens_total": given + made, "max_cost": (given + 2 * made) / 2e6}

    with BatchServer(long) as server:
        direct = run(server, service, tmp_path / "direct", "threads")
        most: Any = taken(server.served, len(server.received))[limit] * 0.4
        most = most if limit == "max_cost" else int(most)
        for calls in range(1, 30):  # noqa: B007
            before, spent = sum(server.answered.values()), dict(server.served)
            budget = Budget(**{limit: most}, price_in=1, price_out=2)
            try:
                batch = run(server, service, tmp_path / "batch", budget=budget, max_tokens=500)
            except BudgetExceeded:
                batch = None
            used = {k: v - spent[k] for k, v in server.served.items()}
            assert taken(used, sum(server.answered.values()) - before)[limit] <= most
            if batch is not None:
                break
        assert calls > 2 and batch is not None and set(server.answered.values()) == {1}
    assert files(tmp_path / "batch") == files(tmp_path / "direct")
    used_calls = sum(s.usage.calls for s in batch.manifest.sessions if s.usage)
    assert used_calls == direct.manifest.usage.calls  # type: ignore[union-attr]


def test_an_unreached_service_is_tried_again(tmp_path: Path) -> None:
    told: list[str] = []
    with BatchServer() as server:
        server.faults = [503]  # the creation

        def lost(step: str) -> None:
            if step == "created" and len(server.jobs) == 2:
                server.faults = []
                raise ConnectionError  # it is there, but the client is not told

        server.at = lost
        result = run(server, "gemini", tmp_path / "run", tell=told.append)
        assert set(server.answered.values()) == {1}
    assert len(result.records) == len(DATA.cases)


@pytest.mark.parametrize("status, error", [(401, "LMAuthError"), (400, "LMConfigurationError")])
def test_a_service_that_refuses_stops_the_run_and_leaves_no_job(status: int, error: str, tmp_path: Path) -> None:
    with BatchServer() as server:
        server.faults = [status]
        with pytest.raises(RunStopped) as stopped:
            run(server, "openai", tmp_path / "run")
        assert type(stopped.value.__cause__).__name__ == error
        assert not server.jobs
        assert len(run(server, "openai", tmp_path / "run").records) == len(DATA.cases)


@pytest.mark.parametrize("service", SERVICES)
def test_a_schema_that_is_refused_is_left_out(service: str, tmp_path: Path) -> None:
    def no_schema(received: Received) -> str | Reply:
        if "json_schema" in json.dumps(received.body) or "responseSchema" in json.dumps(received.body):
            return Reply(status=400, message="response_format json_schema is not supported")
        return answer_stage(received.ask)

    with BatchServer(no_schema) as server:
        direct = run(server, service, tmp_path / "direct", "threads")
    with BatchServer(no_schema) as server:
        batch = run(server, service, tmp_path / "batch")
    assert files(tmp_path / "batch") == files(tmp_path / "direct")
    assert [r.answer for r in batch.records] == [r.answer for r in direct.records]
    assert batch.manifest.sessions[-1].told == direct.manifest.sessions[-1].told


def test_two_services_in_one_run_and_no_folder(tmp_path: Path) -> None:
    with BatchServer() as server:
        lms = {"": lm_of(server, "gemini"), "score": lm_of(server, "openai")}
        program = archehr.load_program("default")
        direct = archehr.run_cases(DATA, program, lms, engine="threads")
        batch = archehr.run_cases(DATA, program, lms, engine="batch")
        assert {job.service for job in server.jobs} == {"gemini", "openai"}
        assert [job.service for job in server.jobs].count("openai") == 1
    assert said(batch) == said(direct)
    ours, theirs = batch.manifest.sessions[-1].by_lm, direct.manifest.sessions[-1].by_lm
    assert {lm: used.calls for lm, used in ours.items()} == {lm: used.calls for lm, used in theirs.items()}
    assert len(ours) == 2


def test_few_cases_are_under_way_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archehr.program.run.engines.batch.loop.MOST_CASES", 2)
    with BatchServer() as server:
        direct = run(server, "gemini", tmp_path / "direct", "threads")
        assert said(run(server, "gemini", tmp_path / "batch")) == said(direct)
        assert max(len(job.requests) for job in server.jobs) == 2


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_of_a_finished_job_stays_at_the_provider(service: str, tmp_path: Path) -> None:
    with BatchServer() as server:
        run(server, service, tmp_path / "run")
        assert all(job.deleted for job in server.jobs if job.service != "openai")
        assert not [name for name in server.files if name.startswith("file-")] and not server.objects


@pytest.mark.parametrize("service", SERVICES)
def test_what_the_provider_has_no_room_for_goes_when_a_job_has_ended(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = {"gemini": "Gemini", "openai": "OpenAI", "vertex": "Vertex"}[service]
    monkeypatch.setattr(f"archehr.program.lm.batches.{service}.{kind}Batches.most_requests", 3)
    told: list[str] = []

    def one_at_a_time(step: str) -> None:
        if step == "create" and any(job.state == "PENDING" for job in server.jobs):
            raise StatusError(429)

    with BatchServer() as server:
        direct = run(server, service, tmp_path / "direct", "threads")
        server.at = one_at_a_time
        batch = run(server, service, tmp_path / "batch", tell=told.append, num_retries=0)
        assert set(server.answered.values()) == {1} and max(len(job.requests) for job in server.jobs) == 3
    assert said(batch) == said(direct)
    assert any("takes no more batch jobs now" in line for line in told)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.tuples(st.integers(0, 2000), st.integers(0, 2000)), asked=st.lists(st.sampled_from("abc"), max_size=6))
def test_a_store_cut_off_anywhere_keeps_what_is_whole(cut: tuple[int, int], asked: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store(folder)
        sent = store.intend("lm", asked, Counter())
        store.created(sent, "batches/1")
        answers = {place: {"response": {"n": place}} for place in sent.places()}
        store.keep(sent, answers)
        store.close()
        for file, at in zip((folder / "jobs.jsonl", folder / "replies.jsonl"), cut, strict=True):
            os.truncate(file, min(at, file.stat().st_size))
        again = Store(folder)
        whole = (folder / "replies.jsonl").read_bytes().count(b"\n")
        kept = [again.answer(key, n) for key in set(asked) for n in range(asked.count(key))]
        assert sum(one is not None for one in kept) == whole
        if known := again.jobs.get(sent.id):
            again.keep(known, answers)
            assert all(again.answer(key, asked.count(key) - 1) for key in asked)
            assert not any(again.answer(key, asked.count(key)) for key in asked)
        again.close()
