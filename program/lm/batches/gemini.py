"""Gemini's batches through google-genai's `client.batches`: requests inline under 20 MB, else in an uploaded file."""

from __future__ import annotations

import copy
import io
import json
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dspy import lm15

from archehr.program.lm.batch_service import SUCCEEDED, Body, JobView, Raw
from archehr.program.lm.batches.lines import rows_of, text_at
from archehr.program.lm.wire.gemini import api_error, lm15_errors, to_response

if TYPE_CHECKING:
    from google import genai

INLINE_BYTES = 18_000_000  # of 20 MB, the client's own fields left aside
ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"})
# An answer that is an error carries a code of google.rpc; what it is as HTTP decides what is done about it.
HTTP_OF_RPC = {1: 499, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501, 14: 503}
HTTP_OF_RPC |= {16: 401}  # any other is 500
OUTSIDE = ("safetySettings", "systemInstruction")  # of generationConfig, in a request of the REST API


class GeminiBatches:
    """The Developer API's batches, reached with the client and the settings of direct calls."""

    most_requests = 50_000
    most_bytes = 1_000_000_000  # of the 2 GB that a file may have

    def __init__(
        self,
        model: str,
        client: Callable[[], genai.Client],
        arguments: Callable[[lm15.Request], dict[str, Any]],
    ) -> None:
        self._model, self._client, self._arguments = model, client, arguments

    def body(self, request: lm15.Request) -> Body:
        """The REST form, which a file must have: settings under generationConfig, the schema as responseSchema."""
        from google.genai._transformers import t_schema  # what the client does to a schema on its way

        arguments = self._arguments(request)
        settings = arguments["config"].model_dump(mode="json", by_alias=True, exclude_none=True)
        if (schema := t_schema(None, settings.get("responseSchema"))) is not None:
            settings["responseSchema"] = schema.model_dump(mode="json", by_alias=True, exclude_none=True)
        body: Body = {"contents": arguments["contents"]}
        if (system := settings.pop("systemInstruction", None)) is not None:
            body["systemInstruction"] = {"parts": [{"text": system}], "role": "user"}
        body["safetySettings"] = settings.pop("safetySettings")
        return {**body, "generationConfig": settings}

    def create(self, name: str, bodies: Mapping[str, Body]) -> str:
        lines = [json.dumps({"key": key, "request": body}, ensure_ascii=False) for key, body in bodies.items()]
        with lm15_errors():
            source: Any
            if sum(len(line.encode()) for line in lines) < INLINE_BYTES:
                source = [_inlined(key, body) for key, body in bodies.items()]
            else:
                source = self._uploaded(name, lines)
            job = self._client().batches.create(model=self._model, src=source, config={"display_name": name})
        return str(job.name)

    def find(self, name: str) -> str | None:
        with lm15_errors(), quiet():
            jobs = self._client().batches.list(config={"page_size": 100})
            return next((str(job.name) for job in jobs if job.display_name == name), None)

    def look(self, job: str) -> JobView:
        its = self._get(job)
        state = _word(its.state)
        # Its output may come a moment after the word that it is done.
        there = state != SUCCEEDED or its.dest is not None
        return JobView(state, state in ENDED and there, f"code {its.error.code}" if its.error else "")

    def answers(self, job: str, ids: list[str]) -> dict[str, Raw]:
        dest, wanted = self._get(job).dest, set(ids)
        if dest is not None and dest.file_name:
            with lm15_errors():
                raw = self._client().files.download(file=dest.file_name)
            rows = list(rows_of(raw.split(b"\n")))
            keys = [text_at(row, "key") for row in rows]
        else:
            rows = [r.model_dump(mode="json", by_alias=True, exclude_none=True) for r in _inlined_responses(dest)]
            # The key comes back in the metadata; without it the order is that of the requests.
            keys = [text_at(row, "metadata", "key") for row in rows]
            if not any(keys) and len(rows) == len(ids):
                keys = list(ids)
        raws = {key: _raw(row) for key, row in zip(keys, rows, strict=True) if key in wanted}
        return {key: raw for key, raw in raws.items() if key is not None and raw is not None}

    def reply(self, request: lm15.Request, raw: Raw) -> lm15.Response:
        from google.genai import errors, types

        if (error := raw.get("error")) is not None:
            code = error.get("code")
            code = code if isinstance(code, int) else 500
            http = code if code >= 100 else HTTP_OF_RPC.get(code, 500)
            raise api_error(errors.APIError(http, {"error": {**error, "code": http}}))
        # As the client reads a reply: what it does not know is left out instead of refused.
        response = types.GenerateContentResponse._from_response(response=copy.deepcopy(raw["response"]), kwargs={})
        return to_response(response, self._model)

    def cancel(self, job: str) -> None:
        with lm15_errors():
            self._client().batches.cancel(name=job)

    def clear(self, job: str) -> None:
        """The job with all it holds; an uploaded file goes by itself after 48 hours."""
        with lm15_errors():
            self._client().batches.delete(name=job)

    def forget(self, name: str) -> None:
        """Nothing: an uploaded file goes by itself."""

    def _get(self, job: str) -> Any:
        with lm15_errors(), quiet():
            return self._client().batches.get(name=job)

    def _uploaded(self, name: str, lines: list[str]) -> str:
        file = io.BytesIO(("\n".join(lines) + "\n").encode())
        upload = self._client().files.upload(file=file, config={"display_name": name, "mime_type": "application/jsonl"})
        return str(upload.name)


def _inlined(key: str, body: Body) -> dict[str, Any]:
    """A body as the client takes it, which flattens what it then writes as the same body."""
    settings = {**body["generationConfig"], **{name: body[name] for name in OUTSIDE if name in body}}
    return {"contents": body["contents"], "config": settings, "metadata": {"key": key}}


def _inlined_responses(dest: Any) -> list[Any]:
    return list(dest.inlined_responses or ()) if dest is not None else []


def _raw(row: Mapping[str, Any]) -> Raw | None:
    """The response or the error alone (files call some errors `status`); None for what the job never got to."""
    for kind, name in (("response", "response"), ("error", "error"), ("error", "status")):
        if isinstance(value := row.get(name), dict) and value:
            return {kind: value}
    return None


def _word(state: Any) -> str:
    """JOB_STATE_SUCCEEDED and BATCH_STATE_SUCCEEDED are the same."""
    word = str(getattr(state, "value", state) or "UNSPECIFIED")
    return word.removeprefix("JOB_STATE_").removeprefix("BATCH_STATE_")


class quiet(warnings.catch_warnings):
    """google-genai warns of a state that it has no name for; every state is dealt with here."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        warnings.simplefilter("ignore")
        return entered
