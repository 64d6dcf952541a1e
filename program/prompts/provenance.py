"""Provenance: how a program file came about and how it scored, as a model that reads the files of earlier versions."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Provenance(BaseModel):
    """Where a program is from. A value that is None was not told; what a later version adds is kept as it is.

    `data_sha256` and `case_sha256` say what the program was made with; `demo_case_ids` where each demo of a stage is
    from, in the order shown; `scores` the headline scores (0-100) by table and subtask, with 95 % intervals; `votes`
    subtask 2 by calls a case; `cut_fitted_to` the LM, and the hash of the prompts, which the cut was chosen for.
    """

    model_config = ConfigDict(extra="allow")

    made_by: str | None = None
    optimizer: str | None = None
    options: dict[str, Any] | None = None
    lm: dict[str, Any] | None = None
    teacher_lm: dict[str, Any] | None = None
    model_version: list[str] | None = None
    versions: dict[str, str] | None = None
    data: str | None = None
    data_sha256: str | None = None
    case_sha256: list[str] | None = None
    demo_case_ids: dict[str, list[str]] = {}
    prompt_tokens_estimated: dict[str, int] | None = None
    candidate_objectives: list[float] | None = None
    scores: dict[str, Any] | str | None = None
    votes: dict[str, Any] | None = None
    cut_fitted_to: dict[str, str] | None = None
    created: str | None = None
    published: dict[str, Any] | None = None

    def told(self) -> dict[str, Any]:
        """The values that are told, as a program file holds them."""
        return {name: value for name, value in self.model_dump(mode="json").items() if value not in (None, {})}


def provenance_of(program: Any, told: Provenance | None = None) -> Provenance:
    """Where a program is from, as `told` or as it says itself; the cases that its fitted models have learned from are
    among those that it was made with."""
    provenance: Provenance = getattr(program, "provenance", Provenance()) if told is None else told
    fitted = program.fitted
    known = [*(provenance.case_sha256 or ()), *((fitted and fitted.provenance.get("case_sha256")) or ())]
    return provenance.model_copy(update={"case_sha256": list(dict.fromkeys(known)) or None})
