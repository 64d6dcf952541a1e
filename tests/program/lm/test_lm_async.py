"""`await lm.acall(…)`: the same engine, so the same counts, checks, budgets and cache as a plain call."""

from __future__ import annotations

import asyncio
from pathlib import Path

import dspy
import pytest

from archehr.program.lm import Budget, BudgetExceeded, budget_error, make_lm
from archehr.program.pipeline import GroundedQA
from tests.stub_server import Reply, StubServer

YES = '{"answer": "yes"}'


def test_acall_answers_and_is_counted_as_a_call_is() -> None:
    async def both(lm: dspy.LM) -> None:
        assert (await lm.acall("one"))[0] == (await lm.acall("one"))[0] == YES

    with StubServer(lambda r: YES) as server:
        lm = make_lm("openai/stub", api_base=server.openai)
        asyncio.run(both(lm))
        assert len(server.received) == 1
    counted = lm.ledger.totals()
    assert (counted["calls"], counted["cache_hits"], counted["tokens_in"]) == (1, 1, 100)


def test_calls_at_once_are_told_apart_and_retried(waits: list[float]) -> None:
    async def many(lm: dspy.LM) -> list[list[str]]:
        return await asyncio.gather(*(lm.acall(f"question {n % 4}") for n in range(4)), lm.acall("x", rollout_id=1))

    with StubServer(lambda r: YES, script=[Reply(status=503, headers={"retry-after": "0"})]) as server:
        lm = make_lm("openai/stub", api_base=server.openai)
        assert asyncio.run(many(lm)) == [[YES]] * 5
        asyncio.run(many(lm))
    counted = lm.ledger.totals()
    assert (counted["calls"], counted["retries"], counted["failed"], counted["cache_hits"]) == (6, 1, 1, 5)


def test_a_predictor_is_awaited_with_the_schema_and_the_checks() -> None:
    async def asked(lm: dspy.LM) -> dspy.Prediction:
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            return await dspy.Predict("question -> answer").acall(question="Why?")

    with StubServer(lambda r: YES) as server:
        assert asyncio.run(asked(make_lm("openai/stub", api_base=server.openai))).answer == "yes"
        assert server.received[0].body["response_format"]["type"] == "json_schema"
        server.reply = lambda r: Reply(YES, model="totally-different")
        with pytest.raises(dspy.LMUnsupportedModelError, match="answered by totally-different"):
            asyncio.run(asked(make_lm("openai/stub", api_base=server.openai, cache=False)))


def test_a_budget_stops_awaited_calls_too() -> None:
    async def two(lm: dspy.LM) -> None:
        await lm.acall("one")
        await lm.acall("two")

    with pytest.raises(Exception) as caught:
        asyncio.run(two(make_lm("knn", budget=Budget(max_calls=1))))
    assert isinstance(budget_error(caught.value), BudgetExceeded)


def test_a_stream_that_is_awaited_is_one_checked_piece() -> None:
    async def heard(lm: dspy.LM) -> list[object]:
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            stream = dspy.streamify(dspy.Predict("question -> answer"), is_async_program=True)
            return [part async for part in stream(question="Why?")]

    with StubServer(lambda r: YES) as server:
        *_, last = asyncio.run(heard(make_lm("openai/stub", api_base=server.openai)))
    assert isinstance(last, dspy.Prediction) and last.answer == "yes"


def test_a_program_that_is_copied_and_saved_keeps_one_engine(tmp_path: Path) -> None:
    with StubServer(lambda r: YES) as server:
        program = GroundedQA()
        program.set_lm(make_lm("openai/stub", api_base=server.openai, api_key="sk-very-secret-key"))
        copied = program.deepcopy()
        asyncio.run(copied.score.predict.lm.acall("one"))
        assert program.get_lm().ledger.totals()["calls"] == 1
        program.save(tmp_path / "p.json")
    assert "secret" not in (tmp_path / "p.json").read_text()
