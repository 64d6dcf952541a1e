"""The text of FHIR attachments, from their data or a local file; a URL elsewhere is never fetched."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from archehr.data.case import DataError
from archehr.data.readers.fhir_resources import Attachment, Section
from archehr.data.reading.reader import Reading
from archehr.data.reading.texts import html_text, read_text, text_of

_PREFERRED = (r"text/plain", r"text/(?!html|xml|rtf)", r"(text|application)/(xhtml|html|xml)", r".*rtf", r".*pdf", r"")


@dataclass(frozen=True, slots=True)
class Attachments:
    """Reads attachments; `by_url` holds the resources of their Bundle, `binaries` the Binary resources seen so far."""

    reading: Reading
    by_url: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    binaries: dict[str, dict[str, Any]] = field(default_factory=dict)

    def within(self, by_url: Mapping[str, dict[str, Any]]) -> Attachments:
        """The same for the resources of one Bundle."""
        return replace(self, by_url=by_url)

    def remember(self, binary: dict[str, Any]) -> None:
        """Keep a Binary resource, for the notes that refer to it."""
        self.binaries[f"Binary/{binary.get('id')}"] = binary

    def text(self, forms: Sequence[Attachment], where: str) -> str:
        """The text of the form that is the plainest of those that can be read. Raises DataError if none can."""
        faults: list[DataError] = []
        for form in sorted(forms, key=_rank):
            try:
                return self._text(form, where)
            except DataError as error:
                faults.append(error)
        raise faults[0] if faults else DataError(f"{where}: has no attachment, so there is no note")

    def _text(self, form: Attachment, where: str) -> str:
        limit = self.reading.options.max_bytes
        charset = re.search(r"charset\s*=\s*\"?([\w-]+)", form.contentType or "")
        if form.data is not None:
            return text_of(_decoded(form.data, where, limit), where, limit, charset[1] if charset else None)
        if not form.url:
            raise DataError(f"{where}: its attachment has neither data nor url, so there is no note")
        for name in _names_of(form.url):
            binary = self.by_url.get(name) or self.binaries.get(name)
            if binary is not None and isinstance(binary.get("data"), str):
                return text_of(_decoded(binary["data"], where, limit), where, limit, charset[1] if charset else None)
        return read_text(self._file(form.url, where), limit, self.reading.tell)

    def _file(self, url: str, where: str) -> Path:
        folder = self.reading.path if self.reading.path.is_dir() else self.reading.path.parent
        for name in _names_of(url):
            path = folder / name
            try:
                matches = [path] if path.is_file() else sorted(path.parent.glob(f"{_literal(path.name)}.*"))
            except (OSError, ValueError):  # no path at all
                continue
            if matches and matches[0].resolve().is_relative_to(folder.resolve()):
                return matches[0]
        what = "is not local, and nothing is ever fetched" if urlsplit(url).netloc else "names no file beside the data"
        raise DataError(f"{where}: its attachment's url {what}; put the file into {folder} by its name")


def _literal(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _names_of(url: str) -> Iterator[str]:
    """What a URL may be called here: itself, the path below the server's, Binary/ID, and the last part."""
    yield url
    path = unquote(urlsplit(url).path).split("/_history/")[0]
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if parts:
        yield "/".join(parts)
        yield "/".join(parts[-2:])
        yield parts[-1]


def _rank(form: Attachment) -> int:
    kind = (form.contentType or "").lower()
    return next(i for i, pattern in enumerate(_PREFERRED) if re.match(pattern, kind))


def _decoded(data: str, where: str, limit: int) -> bytes:
    bare = "".join(data.split())
    if len(bare) > limit * 4 / 3 + 4:
        raise DataError(f"{where}: a note of over {limit / 1e6:g} MB; raise --max-mb if it really is one note")
    try:
        return base64.b64decode(bare, validate=True)
    except (binascii.Error, ValueError):
        raise DataError(f"{where}: its data is no base64; export the resource again") from None


def composed_text(sections: Sequence[Section], depth: int = 0) -> str:
    """The text of a Composition: each section's title as a header line, then its narrative."""
    parts: list[str] = []
    for section in sections:
        body = html_text(section.text.div) if section.text else ""
        below = composed_text(section.section, depth + 1)
        if body or below:
            title = f"{section.title.strip().rstrip(':')}:" if section.title and section.title.strip() else ""
            parts.append("\n".join(part for part in (title, body, below) if part))
    return "\n\n".join(parts)
