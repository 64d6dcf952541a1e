"""Gemini's batches on Google Cloud: requests and replies are files in a storage bucket.

A job's files are in a folder of its own, called as the job is by us: `requests.jsonl`, and below it what Google writes.
The bucket's folder is read from the job, so that one which was sent from another is still found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dspy import lm15

from archehr.program.lm.batch_service import Body, Raw
from archehr.program.lm.batches.gemini import GeminiBatches, quiet
from archehr.program.lm.batches.lines import text_at
from archehr.program.lm.wire.gemini import lm15_errors

if TYPE_CHECKING:
    from archehr.program.lm.batches.bucket import Bucket

REQUESTS = "requests.jsonl"
LABEL = "archehr-request"  # Google gives a request back with its reply, and its labels alone are ours to choose


class VertexBatches(GeminiBatches):
    """Google Cloud's batches, whose files are in `bucket` at the place `url` (gs://BUCKET/FOLDER)."""

    most_requests = 50_000  # of 200,000
    most_bytes = 900_000_000  # of the GB that a file may have

    def __init__(self, *args: Any, bucket: Bucket, url: str) -> None:
        super().__init__(*args)
        self._bucket, self._url = bucket, url

    def create(self, name: str, bodies: Mapping[str, Body]) -> str:
        folder = f"{self._url}/{name}"
        rows = ({"request": {**body, "labels": {LABEL: key}}} for key, body in bodies.items())
        self._bucket.write(f"{folder}/{REQUESTS}", rows)
        with lm15_errors():
            job = self._client().batches.create(
                model=self._model,
                src=f"{folder}/{REQUESTS}",
                config={"display_name": name, "dest": f"{folder}/replies"},
            )
        return str(job.name)

    def find(self, name: str) -> str | None:
        with lm15_errors(), quiet():
            jobs = self._client().batches.list(config={"page_size": 100, "filter": f'display_name="{name}"'})
            return next((str(job.name) for job in jobs if job.display_name == name), None)

    def answers(self, job: str, ids: list[str]) -> dict[str, Raw]:
        wanted, raws, strangers = set(ids), dict[str, Raw](), 0
        for row in self._bucket.rows(f"{self._folder(job)}/replies"):
            key = text_at(row, "request", "labels", LABEL)
            strangers += key is None
            if key is not None and key in wanted and (raw := _raw(row)) is not None:
                raws[key] = raw
        if strangers and not raws:
            raise lm15.InvalidRequestError("the replies of the batch job do not say which request they answer")
        return raws

    def clear(self, job: str) -> None:
        """The job's files, and then the job, which alone knows where they are."""
        self._bucket.remove(self._folder(job))
        super().clear(job)

    def forget(self, name: str) -> None:
        self._bucket.remove(f"{self._url}/{name}")

    def _folder(self, job: str) -> str:
        source = self._get(job).src
        return str(source.gcs_uri[0]).removesuffix(f"/{REQUESTS}")


def _raw(row: Mapping[str, Any]) -> Raw | None:
    """A row's response or error, as the Developer API has it; None for a request that the job never got to."""
    if isinstance(response := row.get("response"), dict) and response:
        return {"response": response}
    status = text_at(row, "status")
    return {"error": _error(status)} if status else None


def _error(status: str) -> dict[str, Any]:
    """The words of a failed row: a direct call's error as JSON among them, or some that tell little. What is not known
    to be the request's own fault is the server's, and asked again."""
    try:
        return dict(json.loads(status[status.index("{") : status.rindex("}") + 1])["error"])
    except (ValueError, KeyError, TypeError):
        number = re.search(r"\b[45]\d\d\b", status)
        own = re.search(r"bad request|invalid.argument", status, re.IGNORECASE)
        return {"code": int(number[0]) if number else 400 if own else 500, "message": status}
