"""Files of JSON lines in a Cloud Storage bucket, through google-cloud-storage (the extra `vertex`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dspy import lm15

from archehr.program.lm.batches.lines import rows_of
from archehr.program.lm.policy import LMConfigError

if TYPE_CHECKING:
    from google.cloud import storage

REMEDIES = {
    401: "sign in with `gcloud auth application-default login`",
    403: "the account needs the role Storage Object User on it",
    404: "there is no such bucket; --batch-bucket names it",
}


class Bucket:
    """A place `gs://BUCKET/FOLDER`, written and read a line at a time: a file has a whole job's prompts. Nothing is
    tried again here, since its user does. Raises lm15 errors, in which no name but the bucket's stands."""

    def __init__(self, project: str, timeout: float) -> None:
        self._project, self._timeout = project, timeout
        self._made: storage.Client | None = None

    def write(self, url: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Put rows into a file, in place of one that is there."""
        with _lm15_errors(url):
            from google.cloud import storage

            blob = storage.Blob.from_uri(url, self._client())
            with blob.open("wb", content_type="application/jsonl", retry=None, timeout=self._timeout) as file:
                file.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)

    def rows(self, folder: str) -> Iterator[dict[str, Any]]:
        """Those of every .jsonl file under a folder, as `rows_of` gives them."""
        with _lm15_errors(folder):
            for blob in self._blobs(folder):
                if blob.name.endswith(".jsonl"):
                    with blob.open("rb", retry=None, timeout=self._timeout) as file:
                        yield from rows_of(file)

    def remove(self, folder: str) -> None:
        """Every file under a folder."""
        with _lm15_errors(folder):
            for blob in self._blobs(folder):
                blob.delete(retry=None, timeout=self._timeout)

    def _blobs(self, folder: str) -> list[storage.Blob]:
        bucket, _, prefix = folder.removeprefix("gs://").partition("/")
        listed = self._client().list_blobs(bucket, prefix=f"{prefix}/", retry=None, timeout=self._timeout)
        return list(listed)

    def _client(self) -> storage.Client:
        if self._made is None:
            from google.cloud import storage

            self._made = storage.Client(project=self._project)
        return self._made


def check_place(url: str | None, name: str) -> str:
    """gs://BUCKET or gs://BUCKET/FOLDER, without a slash at its end. Raises LMConfigError, with what to do, for
    another one, and where google-cloud-storage is not installed."""
    if not url:
        raise LMConfigError(
            f"{name}: batches of Google Cloud go through a storage bucket; --batch-bucket gs://BUCKET/FOLDER names it"
        )
    if not re.fullmatch(r"gs://[a-z0-9][\w.-]+(/[^/?#\s]+)*/?", url):
        raise LMConfigError(f"--batch-bucket {url}: write gs://BUCKET or gs://BUCKET/FOLDER")
    try:
        import google.cloud.storage  # noqa: F401
    except ImportError:
        raise LMConfigError(f'{name}: batches need google-cloud-storage: pip install "archehr-dspy[vertex]"') from None
    return url.rstrip("/")


@contextmanager
def _lm15_errors(url: str) -> Iterator[None]:
    """What google-cloud-storage raises inside, as the lm15 error of the same meaning."""
    import requests
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.storage.exceptions import DataCorruption, InvalidResponse

    bucket = f"gs://{url.removeprefix('gs://').partition('/')[0]}"
    try:
        yield
    except (GoogleAPICallError, InvalidResponse) as exc:
        status = int(exc.code or 500) if isinstance(exc, GoogleAPICallError) else exc.response.status_code
        kind: type[lm15.LM15Error] = lm15.ServerError if status >= 500 else lm15.InvalidRequestError
        kind = lm15.RateLimitError if status == 429 else kind
        remedy = f"; {REMEDIES[status]}" if status in REMEDIES else ""
        raise kind(f"{bucket}: HTTP {status} of Cloud Storage{remedy}", provider="gemini", status=status) from exc
    except DataCorruption as exc:
        raise lm15.ServerError(f"{bucket}: a file did not arrive whole", provider="gemini") from exc
    except GoogleAuthError as exc:
        raise lm15.AuthError(f"{exc}; `gcloud auth application-default login`", provider="gemini") from exc
    except requests.Timeout as exc:
        raise lm15.TimeoutError(f"{bucket}: Cloud Storage did not answer in time", provider="gemini") from exc
    except requests.RequestException as exc:
        raise lm15.TransportError(f"{bucket}: Cloud Storage cannot be reached ({type(exc).__name__})") from exc
