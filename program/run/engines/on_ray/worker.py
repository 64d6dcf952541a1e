"""Answerer: an actor of the pool, with one program and its LMs, that turns blocks of cases into blocks of replies."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

import ray

from archehr.data.case import shown_id
from archehr.program.batch import in_threads
from archehr.program.lm.cache import cache_folder, configure_cache
from archehr.program.lm.ledger import booked_apart
from archehr.program.lm.wire.errors import Outages, watching_outages
from archehr.program.run.engines.crossing import crossing
from archehr.program.run.engines.on_ray.desk import ATTEMPTS, FATAL, STOPPED, BudgetState, Opening, SharedBudget
from archehr.program.run.engines.order import Order, case_from_json
from archehr.program.run.job import Job

Reply = dict[
    str, Any
]  # {"record"} or {"error": [kind, message]}, with "taken" where an LM is counted; {} for not begun


class Answerer:
    """Rows in: {"block": its number, "cases": a case a line}. Rows out: {"block", "replies": a Reply a line}."""

    def __init__(self, desk: Any) -> None:
        self.desk = desk
        self.outages = Outages()
        self.job: Job | None = None
        self.refusal: Reply = {}
        worker, life = ray.get_runtime_context().get_actor_id(), uuid.uuid4().hex
        opening = Opening(**ray.get(desk.hello.remote(worker, life)))
        states = [BudgetState(**state) for state in ray.get(desk.budgets.remote())]
        budgets = [SharedBudget(desk, worker, life, place, state) for place, state in enumerate(states)]
        try:  # what cannot be answered here is told as a reply: Ray would start the actor again and again
            if opening.keep_replies:
                configure_cache(cache_folder())
            order = Order.model_validate_json(opening.order)
            self.job = replace(order.job(opening.keys, budgets), outages=self.outages)
        except ValueError as error:  # DataError is one
            self.refusal = {"error": ["DataError", f"{ray.util.get_node_ip_address()}: {error}"]}
        except Exception as error:
            self.refusal = {"error": crossing(error)}

    def __call__(self, rows: dict[str, Any]) -> dict[str, Any]:
        number, cases = int(rows["block"][0]), str(rows["cases"][0]).split("\n")
        leave = ray.get(self.desk.begin.remote(number))
        if self.refusal or leave == STOPPED:
            replies = [self.refusal] * len(cases)
        elif leave == FATAL:
            why = f"case {shown_id(case_from_json(cases[0]).id)}: the worker that had it died, {ATTEMPTS} times"
            replies = [{"error": ["DataError", f"{why}; is there memory enough?"]}] * len(cases)
        else:
            replies = list(in_threads(cases, self._reply, len(cases) if self.job and self.job.lms else 1))
        return {"block": [number], "replies": ["\n".join(json.dumps(reply) for reply in replies)]}

    def _reply(self, line: str) -> Reply:
        assert self.job is not None
        reply: Reply
        # A ledger for each case: what it took goes with its record, and nothing piles up here.
        with booked_apart() as ledger, watching_outages(self.outages):
            job = replace(self.job, ledger=ledger if self.job.lms else None)
            try:
                reply = {"record": job.answer(case_from_json(line)).model_dump(mode="json")}
            except Exception as error:
                reply = {"error": crossing(error)}
        return {**reply, "taken": ledger.taken()} if self.job.lms else reply
