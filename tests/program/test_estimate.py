"""--dry-run, and what makes a provider's prefix cache work: shared text stands first in every prompt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from archehr.data.dataset import read_cases
from archehr.program.lm import make_lm
from archehr.program.lm.backend import prompt_parts
from archehr.program.pipeline import GroundedQA
from archehr.program.prompts.program_file import load_program
from archehr.program.run.estimate import estimate
from archehr.program.run.job import Job
from archehr.program.run.run import run_cases
from archehr.program.stages.registry import PIPELINE, STAGES
from tests.conftest import Ran
from tests.scripted_stages import gold_lm, stage_of
from tests.stub_server import StubServer

Command = Callable[..., Ran]
ALL = tuple(stage.name for stage in PIPELINE)


def with_demos() -> GroundedQA:
    program = load_program("handwritten")
    for stage in PIPELINE:
        shown = [stage.taught().demo(case) for case in read_cases("sample/dev") if stage.has_gold(case)]
        getattr(program, stage.name).predict.demos = shown[:12]
    return program


def test_shared_text_stands_first_byte_for_byte_even_when_asked_again() -> None:
    """Instructions and demos are the same in all prompts of a stage; the case, and what was wrong with the last
    reply, come after them."""
    cases, broken = read_cases("sample/dev")[:4], set()

    def once_broken(stage: str, case: object, reply: dict) -> dict:
        if stage in broken:
            return reply
        broken.add(stage)
        return {"nonsense": 1}

    lm = gold_lm(cases, once_broken)
    result = run_cases(cases, with_demos(), lm)
    assert sum(n["kind"] == "retried" for r in result.records for n in r.notices) == len(ALL)
    shared: dict[str | None, set[tuple]] = {}
    for request in lm.requests:
        shared.setdefault(stage_of(request), set()).add(tuple(prompt_parts(request)[:-1]))
    assert shared.keys() >= set(ALL)
    assert {stage: len(prefixes) for stage, prefixes in shared.items()} == dict.fromkeys(shared, 1)
    assert all(len(prefix) > 1 for prefixes in shared.values() for prefix in prefixes), "with the demos"


def test_an_estimate_counts_what_a_run_sends() -> None:
    cases = read_cases("sample/test")[:3]
    with StubServer() as server:
        lm = make_lm("openai/m", api_base=server.openai)
        found = estimate(Job(load_program("handwritten"), lm, "own", ALL), cases)
        assert server.received == [] and lm.ledger.totals()["calls"] == 0
        run_cases(cases, load_program("handwritten"), lm, stages=ALL)
        sent = len(server.received), sum(len(r.prompt) for r in server.received) / 4
    assert sum(its.calls for its in found.values()) == sent[0]
    assert sum(its.tokens_in for its in found.values()) == pytest.approx(sent[1], rel=0.1)
    assert {its.cost for its in found.values()} == {None}


def test_a_prefix_cache_is_reckoned_from_the_second_prompt_on() -> None:
    lm = make_lm("gemini/gemini-3.8-flash", api_key="k")
    cases = read_cases("sample/test")[:3]
    found = estimate(Job(with_demos(), lm, "own", ALL), cases)["score"]
    bare = estimate(Job(load_program("handwritten"), lm, "own", ALL), cases)["score"]
    assert bare.shared == 0 and bare.saved == 0, "4,096 tokens are not reached"
    assert found.shared > 2 * 4096 and found.calls == 3
    assert found.cost is not None and found.saved == pytest.approx(found.shared * (0.75 - 0.075) / 1e6, rel=0.3)
    assert 0 < found.saved < found.cost


def test_a_dry_run_writes_and_sends_nothing(command: Command) -> None:
    with StubServer() as server:
        lm = ("--lm", "openai/m", "--lm", "score=openai/s", "--api-base", server.openai)
        price = ("--price-in", 1, "--price-out", 2)
        ran = command("run", "sample/test", *lm, *price, "--cases", "101-104", "--out", "r", "--dry-run")
        assert server.received == [] and not Path("r").exists()
        assert ran.code == 0 and "Nothing was sent. 4 cases to answer;" in ran.out
        rows = {line.split()[0]: line.split() for line in ran.out.splitlines() if line}
        assert rows["score"][1:3] == ["openai/s", "4"] and rows["align"][1] == "openai/m"
        assert rows["all"][-1].startswith("$0.0")
        assert command("run", "sample/test", *lm, *price, "--cases", "101", "--out", "r").code == 0
        told = command(
            "run", "sample/test", *lm, *price, "--cases", "101-104", "--out", "r", "--dry-run", "--json"
        )  # fmt: skip
        made = json.loads(told.out)
        assert (made["cases"], made["done_before"]) == (3, 1) and set(made["stages"]) <= set(STAGES)
    none = command("run", "sample/test", "--dry-run")
    assert none.out == "Nothing would be sent: this program asks no LM.\n"
