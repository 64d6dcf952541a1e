"""Counting and budgets: every attempt is booked where it was made, and no limit is passed, whatever is in flight."""

from __future__ import annotations

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from dspy import lm15
from hypothesis import given, settings
from hypothesis import strategies as st

from archehr.program.lm import Budget, BudgetExceeded, Ledger, LMConfigError, at, budget_error, make_lm
from archehr.program.lm.ledger import Need, Price, Tokens
from archehr.program.lm.wire.replies import tokens_of
from tests.fake_lm import asked, fake_lm
from tests.stub_server import Reply, StubServer

YES = '{"answer": "yes"}'


def test_calls_are_booked_on_case_and_stage(ask) -> None:
    lm = fake_lm(lambda request: YES)
    ask(lm)
    with at(case_id="7"):
        with at(stage="score"):
            ask(lm, "a")
            ask(lm, "b")
        with at(stage="align"):
            ask(lm, "c")
    assert {stage: count["calls"] for stage, count in lm.ledger.by_stage().items()} == {None: 1, "score": 2, "align": 1}
    assert lm.ledger.of_case("7")["tokens_in"] == 300
    assert lm.ledger.totals()["tokens_in"] == 400
    assert lm.ledger.totals()["tokens_out"] == 80


def test_one_ledger_may_serve_several_lms(ask) -> None:
    ledger = Ledger()
    ask(fake_lm([YES], ledger=ledger))
    ask(fake_lm([YES], ledger=ledger))
    assert ledger.totals()["calls"] == 2


def test_threads_that_carry_their_context_are_booked_apart(ask) -> None:
    lm = fake_lm(lambda request: YES)

    def one(case: str) -> None:
        with at(case_id=case):
            ask(lm, case)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(contextvars.copy_context().run, one, str(i % 5)) for i in range(40)]:
            future.result()
    assert [lm.ledger.of_case(str(i))["calls"] for i in range(5)] == [8] * 5
    assert lm.ledger.totals()["calls"] == 40


def test_retries_are_counted_per_call_not_per_thread(ask, waits: list[float]) -> None:
    lm = fake_lm([lm15.ServerError("x"), YES, lm15.ServerError("x"), YES, YES], num_retries=1)
    for question in "abc":
        assert ask(lm, question) == "yes"
    counted = lm.ledger.totals()
    assert (counted["calls"], counted["retries"], counted["failed"]) == (5, 2, 2)


def test_an_answer_from_the_cache_is_a_hit_and_not_a_call(ask) -> None:
    lm = fake_lm(lambda request: YES, cache=True)
    assert ask(lm, "q") == ask(lm, "q") == "yes"
    counted = lm.ledger.totals()
    assert (counted["calls"], counted["cache_hits"], len(lm.requests)) == (1, 1, 1)


def test_cost_is_unknown_without_a_price(ask) -> None:
    with StubServer(lambda received: YES) as server:
        unknown = make_lm("openai/m", api_base=server.openai, cache=False)
        known = make_lm("openai/m", api_base=server.openai, cache=False, budget=Budget(price_in=2, price_out=10))
        ask(unknown)
        ask(known)
    assert unknown.ledger.totals()["cost"] is None
    assert known.ledger.totals()["cost"] == pytest.approx((100 * 2 + 20 * 10) / 1e6)


def test_a_cost_limit_needs_a_price() -> None:
    with pytest.raises(LMConfigError, match="--price-in"):
        make_lm("openai/m", api_base="http://127.0.0.1:9/v1", budget=Budget(max_cost=1))


def test_a_server_that_reports_no_usage_is_said_to_and_held_to_the_estimate(ask) -> None:
    body = {"id": "1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": YES}}]}
    body["choices"][0]["message"]["role"] = "assistant"
    budget = Budget(max_tokens_total=10_000)
    with StubServer(lambda received: Reply(body=body)) as server:
        lm = make_lm("openai/m", api_base=server.openai, cache=False, budget=budget)
        ask(lm)
    assert lm.ledger.totals()["unmetered"] == 1
    assert lm.ledger.totals()["cost"] is None
    assert budget.tokens > 0


def test_max_calls_counts_retries_and_stops_before_the_next(ask, waits: list[float]) -> None:
    budget = Budget(max_calls=3)
    lm = fake_lm(lambda request: lm15.ServerError("down"), budget=budget, num_retries=9)
    with pytest.raises(dspy.LMError) as caught:
        ask(lm)
    assert isinstance(budget_error(caught.value), BudgetExceeded)
    assert len(lm.requests) == budget.calls == 3
    assert budget.stopped == "--max-calls 3 is reached"


def test_a_spent_budget_lets_nothing_more_through(ask) -> None:
    budget = Budget(max_calls=1)
    lm = fake_lm(lambda request: YES, budget=budget)
    ask(lm)
    for _ in range(3):
        with pytest.raises(dspy.LMError) as caught:
            ask(lm)
        assert budget_error(caught.value) is not None
    assert len(lm.requests) == lm.ledger.totals()["calls"] == 1


def test_other_errors_are_no_budget_errors() -> None:
    assert budget_error(None) is None
    assert budget_error(ValueError("x")) is None
    circular = ValueError("its own cause")
    circular.__cause__ = circular
    assert budget_error(circular) is None


def test_an_error_of_an_engine_is_not_its_own_cause(ask) -> None:
    with pytest.raises(dspy.LMError) as caught:
        ask(fake_lm([lm15.AuthError("no")]))
    assert isinstance(caught.value.__cause__, lm15.AuthError)
    assert caught.value.__cause__.__cause__ is None


@pytest.mark.parametrize("workers", [1, 8])
def test_no_limit_is_passed_by_calls_in_flight(workers: int, ask) -> None:
    """All workers start together; each call uses as much as was set aside for it."""
    start = threading.Barrier(workers)
    budget = Budget(max_calls=10, max_tokens_total=4000)
    lm = fake_lm(lambda request: YES, budget=budget)

    def work(number: int) -> int:
        start.wait()
        done = 0
        for i in range(11):
            try:
                ask(lm, f"{number} {i}", max_tokens=200)
            except dspy.LMError as exc:
                assert budget_error(exc) is not None
                return done
            done += 1
        return done

    with ThreadPoolExecutor(workers) as pool:
        done = sum(pool.map(work, range(workers)))
    assert done == len(lm.requests) == lm.ledger.totals()["calls"] == budget.calls <= 10
    assert budget.tokens <= 4000
    assert budget.stopped


def test_a_call_waits_for_those_in_flight_rather_than_stop_the_run() -> None:
    budget = Budget(max_tokens_total=100)
    first, second = Need(80, 0), Need(60, 0)
    budget.reserve(first)
    waiting = threading.Thread(target=budget.reserve, args=(second,))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    budget.settle(first, tokens=30, cost=0)
    waiting.join(5)
    assert not waiting.is_alive()
    assert budget.stopped is None


def test_those_waiting_are_told_when_the_budget_is_spent() -> None:
    budget = Budget(max_tokens_total=100)
    first = Need(80, 0)
    budget.reserve(first)
    told: list[BaseException] = []

    def wait() -> None:
        try:
            budget.reserve(Need(60, 0))
        except BudgetExceeded as exc:
            told.append(exc)

    waiting = threading.Thread(target=wait)
    waiting.start()
    budget.settle(first, tokens=80, cost=0)
    waiting.join(5)
    assert len(told) == 1


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), max_size=30), st.integers(0, 300))
def test_a_limit_holds_for_any_run_of_calls(calls: list[tuple[int, int]], limit: int) -> None:
    budget = Budget(max_tokens_total=limit)
    for need, used in calls:
        try:
            budget.reserve(taken := Need(need, 0))
        except BudgetExceeded:
            assert budget.tokens + need > limit or budget.stopped
            break
        budget.settle(taken, min(used, need), 0)
    assert budget.tokens <= limit


def test_the_cost_limit_stops_before_it_is_passed(ask) -> None:
    budget = Budget(max_cost=0.01, price_in=0, price_out=10)  # 200 reply tokens cost 0.002 at most
    with StubServer(lambda received: Reply(YES, tokens_out=200)) as server:
        lm = make_lm("openai/m", api_base=server.openai, cache=False, budget=budget, max_tokens=200)
        with pytest.raises(dspy.LMError) as caught:
            for i in range(9):
                ask(lm, str(i))
    assert "--max-cost" in str(budget_error(caught.value))
    assert len(server.received) == 5
    assert budget.cost <= 0.01


def test_thinking_and_cached_tokens_are_counted_as_each_provider_means_them() -> None:
    def response(**usage: int) -> lm15.Response:
        message = lm15.Message.assistant([lm15.TextPart("x")])
        return lm15.Response(id=None, model="m", message=message, finish_reason="stop", usage=lm15.Usage(**usage))

    used = response(input_tokens=100, output_tokens=20, cache_read_tokens=40, reasoning_tokens=5)
    assert tokens_of(used, "openai-chat") == Tokens(100, 20, 5, 40)
    assert tokens_of(used, "xai") == Tokens(100, 25, 5, 40)
    assert tokens_of(used, "anthropic") == Tokens(140, 20, 5, 40)
    assert tokens_of(response(), "openai-chat") is None


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_cost_is_linear_in_the_tokens(fresh: int, cached: int, made: int) -> None:
    price = Price(input=3, output=15, cached=0.3)
    parts = price.cost(Tokens(fresh)) + price.cost(Tokens(cached, 0, 0, cached)) + price.cost(Tokens(0, made))
    assert price.cost(Tokens(fresh + cached, made, 0, cached)) == pytest.approx(parts)


def test_the_scripted_lm_answers_in_turn_and_keeps_what_it_was_asked(ask) -> None:
    lm = fake_lm(['{"answer": "1"}', '{"answer": "2"}'])
    assert [ask(lm, "first"), ask(lm, "second")] == ["1", "2"]
    assert "second" in asked(lm.requests[1])
