"""BatchService: what a run asks of a provider's batches, the same for every provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dspy import lm15

Body = dict[str, Any]  # one request, as it stands in a provider's batch
Raw = dict[str, Any]  # one answer, as the provider gave it: plain JSON, kept in the run folder

SUCCEEDED, CANCELLED = "SUCCEEDED", "CANCELLED"


@dataclass(frozen=True)
class JobView:
    """A job as its provider describes it. `state` is SUCCEEDED, CANCELLED or the provider's own word; `ended` says
    that nothing more will come of it, `why` what it failed on, where it says so."""

    state: str
    ended: bool
    why: str = ""


class BatchService(Protocol):
    """A provider's batches for one model. Every method raises the lm15 errors that a direct call would."""

    most_requests: int
    most_bytes: int

    def body(self, request: lm15.Request) -> Body:
        """The request with the settings of a direct call, where batches want them."""

    def create(self, name: str, bodies: Mapping[str, Body]) -> str:
        """Submit a job of requests by id; `name` is ours, by which `find` knows it. Gives the provider's id."""

    def find(self, name: str) -> str | None:
        """The provider's id of the job that was created under our name, or None where there is none."""

    def look(self, job: str) -> JobView:
        """How the job stands."""

    def answers(self, job: str, ids: list[str]) -> dict[str, Raw]:
        """What an ended job has for the requests `ids`, in the order they were sent; none for those it never got to."""

    def reply(self, request: lm15.Request, raw: Raw) -> lm15.Response:
        """The answer as a direct call would give it, or the lm15 error that it would raise."""

    def cancel(self, job: str) -> None:
        """Ask the provider to stop; what is answered by then is still there."""

    def clear(self, job: str) -> None:
        """Remove the files of an ended job, which hold note text, from the provider's storage."""

    def forget(self, name: str) -> None:
        """Remove what was uploaded under our name for a job that was never created."""
