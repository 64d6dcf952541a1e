"""What BatchServer plays of Google Cloud: batch prediction jobs, and the bucket with their files."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.batch_server import BatchServer, Job

JOBS = "projects/project/locations/europe-west4/batchPredictionJobs"
BUCKET = "gs://a-bucket/batches"


def signed_in(environ: pytest.MonkeyPatch, folder: Path) -> None:
    """An environment with a login, a project and a bucket; STORAGE_EMULATOR_HOST, a server's url, is left to set."""
    key = folder / "application_default_credentials.json"
    key.write_text(json.dumps({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r", "token": "a-token",
        "expiry": "2999-01-01T00:00:00Z",
    }))  # fmt: skip
    environ.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    environ.setenv("GOOGLE_CLOUD_PROJECT", "project")
    environ.setenv("GOOGLE_CLOUD_LOCATION", "europe-west4")
    environ.setenv("STORAGE_EMULATOR_HOST", "")
    environ.setenv("ARCHEHR_BATCH_BUCKET", BUCKET)


def line(request: dict[str, Any], status: int, payload: dict[str, Any]) -> dict[str, Any]:
    """A line of a file of replies, which holds the request."""
    said = "" if status == 200 else f"Bad Request: {json.dumps({'error': payload['error']})}"
    return {
        "status": said,
        "processed_time": "2026-11-30T10:00:00.000+00:00",
        "request": request,
        "response": {} if said else payload,
    }


def route(
    server: BatchServer, method: str, path: str, query: dict[str, str], data: bytes, headers: dict[str, str]
) -> Any:
    """The answer to one request, or None for what is not Google Cloud's."""
    if path.startswith(f"/v1beta1/{JOBS}"):
        return _jobs(server, method, path.removeprefix(f"/v1beta1/{JOBS}").strip("/"), query, data)
    if "/storage/v1/" in path:
        return _storage(server, method, path, query, data, headers)
    return None


def _jobs(server: BatchServer, method: str, id: str, query: dict[str, str], data: bytes) -> Any:
    its = [job for job in server.jobs if job.service == "vertex" and not job.deleted]
    if not id and method == "POST":
        asked = json.loads(data)
        (source,) = asked["inputConfig"]["gcsSource"]["uris"]
        lines = server.objects[source.removeprefix("gs://")].decode().strip().split("\n")
        requests = [json.loads(one)["request"] for one in lines]
        (label,) = requests[0]["labels"]
        model = asked["model"].removeprefix("publishers/google/models/")
        job = server.make_job("vertex", asked["displayName"], model, {one["labels"][label]: one for one in requests})
        job.config = {"inputConfig": asked["inputConfig"], "outputConfig": asked["outputConfig"]}
        return _job(server, job)
    if not id:
        named = re.fullmatch(r'display_name="(\w+)"', query["filter"])
        assert named
        return {"batchPredictionJobs": [_job(server, job) for job in its if job.name == named[1]]}
    if id.endswith(":cancel"):
        server.cancelled.append(id.removesuffix(":cancel"))
        return {}
    if method == "DELETE":
        next(job for job in its if job.id == id).deleted = True
        return {"name": f"{JOBS}/operations/1", "done": True}
    return _job(server, server.look(id))


def _job(server: BatchServer, job: Job) -> dict[str, Any]:
    """As Google Cloud describes it; what is answered is put into two files, as of a large job."""
    folder = job.config["outputConfig"]["gcsDestination"]["outputUriPrefix"] if job.config else ""
    for name, some in (("000000000000", job.output[::2]), ("000000000001", job.output[1::2])):
        if some:
            url = f"{folder}/prediction-model-2026-11-30T10:00:00.000000Z/predictions_{name}.jsonl"
            text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in some)
            server.objects.setdefault(url.removeprefix("gs://"), text.encode())
    described = {
        "name": f"{JOBS}/{job.id}",
        "displayName": job.name,
        "model": f"publishers/google/models/{job.model}",
        "state": f"JOB_STATE_{job.state}",
        "createTime": "2026-11-30T10:00:00.000000Z",
        **job.config,
    }
    if job.state == "FAILED":
        described["error"] = {"code": 3, "message": job.plan.why}
    return described


def _storage(
    server: BatchServer, method: str, path: str, query: dict[str, str], data: bytes, headers: dict[str, str]
) -> Any:
    """Objects are uploaded in parts, listed, read by ranges and deleted."""
    from google_crc32c import Checksum

    from tests.batch_server import StatusError

    found = re.search(r"/storage/v1/b/([^/]+)/o(?:/(.+))?$", path)
    if found is None:
        raise StatusError(403)  # the bucket itself is not ours to look at
    bucket, name = found[1], unquote(found[2] or "")
    if bucket == "no-such-bucket":
        raise StopIteration
    if method == "POST":
        name = json.loads(data)["name"]
        server.objects[f"{bucket}/{name}.part"] = b""
        return {}, {"location": f"{server.url}/upload/storage/v1/b/{bucket}/o/{name}"}
    part = f"{bucket}/{name}.part"
    if method == "PUT":
        server.objects[part] += data
        server.at("uploaded")
        if headers["content-range"].endswith("/*"):
            return {}, {"range": f"bytes=0-{len(server.objects[part]) - 1}"}, 308
        server.objects[f"{bucket}/{name}"] = server.objects.pop(part)
        checksum = base64.b64encode(Checksum(server.objects[f"{bucket}/{name}"]).digest()).decode()
        return {"name": name, "bucket": bucket, "crc32c": checksum}
    if method == "DELETE":
        del server.objects[f"{bucket}/{name}"]
        return {}
    if not name:
        full = f"{bucket}/{query['prefix']}"
        names = [key.removeprefix(f"{bucket}/") for key in server.objects if key.startswith(full)]
        return {"kind": "storage#objects", "items": [{"name": one, "bucket": bucket} for one in names]}
    server.at("fetch")
    whole = server.objects[f"{bucket}/{name}"]
    first, last = (int(n) if n else len(whole) - 1 for n in headers["range"].removeprefix("bytes=").split("-"))
    if first >= len(whole):
        return {}, {}, 416
    some = whole[first : last + 1]
    return some, {"content-range": f"bytes {first}-{first + len(some) - 1}/{len(whole)}"}, 206
