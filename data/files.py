"""Files on disk: where the shipped samples are, bytes to JSON and XML, and private writing; each fault in one line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, ParseError

from archehr.data.case import DataError

XML_NAME = "archehr-qa.xml"
KEY_NAME = "archehr-qa_key.json"
SAMPLES = Path(__file__).parent / "sample"


LAYOUT = " \t\r\n\f\v"  # stripped around a text; a non-breaking space is the text's own
_HEAD = 65_536  # bytes, enough to tell what a file is


def shipped_sample(name: str) -> Path:
    """The folder of the sample set `dev` or `test` that is shipped with the package, whatever the user's own are."""
    return SAMPLES / name


def is_shipped(path: Path) -> bool:
    """Is this the folder of a shipped sample?"""
    return path.is_dir() and path.resolve().parent == SAMPLES.resolve()


def names_sample(path: Path) -> bool:
    """Could this relative path mean a shipped sample, as sample/dev does?"""
    return not path.is_absolute() and path.parts[:1] == ("sample",) and is_shipped(SAMPLES / Path(*path.parts[1:]))


def located(path: Path) -> Path:
    """The path itself or, where there is none, the shipped sample of that name."""
    return SAMPLES / Path(*path.parts[1:]) if names_sample(path) and not path.exists() else path


def unpacked_head(path: Path) -> bytes:
    """The first bytes of a file, unpacked where gzip packed it; none of a folder. Raises DataError."""
    if path.is_dir():
        return b""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from error
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        return zlib.decompressobj(31).decompress(head, _HEAD)
    except zlib.error as error:
        raise DataError(f"{path}: not a whole gzip file; get a complete copy") from error


def decoded_head(head: bytes) -> str:
    """The first bytes of a file as text, in whatever Unicode encoding; what cannot be decoded is replaced."""
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return head.decode(encoding, errors="replace")


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from error


def read_json(path: Path) -> Any:
    """The JSON of a file in any Unicode encoding. Raises DataError."""
    raw = _read_bytes(path)
    try:
        # json.loads finds UTF-8, UTF-16 and UTF-32 by itself, but a BOM must go first.
        value = json.loads(raw.decode("utf-8-sig") if raw.startswith(b"\xef\xbb\xbf") else raw)
        json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair can be read, but never written
    except UnicodeError as error:
        raise DataError(f"{path}: not UTF-8 text; save it as UTF-8") from error
    except json.JSONDecodeError as error:
        if raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            raise DataError(f"{path}: XML where JSON is due; the XML is DATA, its key is {KEY_NAME}") from error
        raise DataError(
            f"{path}: not valid JSON at line {error.lineno} ({error.msg}); is the file complete?"
        ) from error
    except ValueError as error:  # Python converts no number of thousands of digits
        raise DataError(f"{path}: holds a number too long to read; is this a shared-task file?") from error
    except RecursionError as error:
        raise DataError(f"{path}: JSON nested too deeply to be a shared-task file") from error
    return value


def read_xml(path: Path) -> Element:
    """The root of an XML file that declares no entities. Raises DataError for anything that is not whole XML."""
    root = None
    for event, element in _xml_events(path):
        if root is None and event == "start":
            root = element
    assert root is not None
    return root


def xml_cases(path: Path) -> Iterator[Element]:
    """The <case> elements of an XML file one at a time, as `read_xml` reads it; they stand below the root, or one is
    the root. Raises DataError, also where there is none."""
    open_elements: list[Element] = []
    count = 0
    for event, element in _xml_events(path):
        if event == "start":
            open_elements.append(element)
            continue
        open_elements.pop()
        if element.tag == "case" and len(open_elements) <= 1:
            count += 1
            yield element
        if len(open_elements) == 1 and open_elements[0].tag != "case":
            del open_elements[0][:]  # what has been given out need not be held
    if not count:
        raise DataError(f"{path}: no <case> element below <{element.tag[:40]}>; is this a shared-task file?")


def _xml_events(path: Path) -> Iterator[tuple[str, Element]]:
    import defusedxml
    from defusedxml.ElementTree import iterparse

    head = unpacked_head(path)
    if not head.strip(b"\x00 \t\r\n\xef\xbb\xbf\xff\xfe"):
        raise DataError(f"{path}: the file is empty; it should hold <annotations> with <case> elements")
    try:
        with path.open("rb") as raw:
            # A file saved anew as UTF-16 often still declares UTF-8; its byte order mark is right.
            marked = head[:2] in (b"\xff\xfe", b"\xfe\xff")
            yield from iterparse(io.TextIOWrapper(raw, "utf-16") if marked else raw, ("start", "end"))
    except defusedxml.DefusedXmlException as error:
        raise DataError(
            f"{path}: refused, the XML declares entities or external references; remove its DOCTYPE"
        ) from error
    except (ParseError, ValueError, LookupError) as error:
        line = getattr(error, "position", (0,))[0]
        where = f" at line {line}" if line else ""
        if b"</annotations" in _tail(path).replace(b"\x00", b""):
            fault = f"not well-formed XML{where}; correct it there, or get another copy of the file"
        else:
            fault = f"truncated or not XML{where}; get a complete copy of the file"
        raise DataError(f"{path}: {fault}") from error


def _tail(path: Path) -> bytes:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _HEAD))
        return stream.read()


def write_private(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Replace the file `path` by `content`, whole or in pieces, readable by its owner alone; all of it or nothing.
    Raises DataError."""
    pieces = [content] if isinstance(content, (str, bytes)) else content
    with private_file(path) as out:
        out.writelines(piece.encode() if isinstance(piece, str) else piece for piece in pieces)


@contextlib.contextmanager
def private_file(path: Path) -> Iterator[IO[bytes]]:
    """`write_private` by hand: the file takes the place of `path` when it ends well. Raises DataError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            yield out
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise DataError(f"{path}: cannot be written ({error.strerror}); free space or name another place") from None
        raise
