"""JSON that is too long to hold: arrays read an entry at a time, and values written piece by piece."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from archehr.data.case import DataError
from archehr.data.files import read_json

_DECODER = json.JSONDecoder()
_SIGN = re.compile(r"[^ \t\r\n]")
_CHUNK = 1 << 20  # characters read at once
_LONGEST = 1 << 26  # characters of one entry


def json_pieces(value: Any, *, ascii_only: bool = True, margin: str = "\n") -> Iterator[str]:
    """What json.dumps(value, indent=1) gives. Mappings are objects and iterators arrays, read as they are written."""
    inner = margin + " "
    if isinstance(value, Mapping):
        members = ((f"{json.dumps(name, ensure_ascii=ascii_only)}: ", member) for name, member in value.items())
        ends = "{}"
    elif isinstance(value, Iterator):
        members, ends = (("", entry) for entry in value), "[]"
    else:
        yield json.dumps(value, ensure_ascii=ascii_only, indent=1).replace("\n", margin)
        return
    empty = True
    for name, member in members:
        yield f"{ends[0] if empty else ','}{inner}{name}"
        yield from json_pieces(member, ascii_only=ascii_only, margin=inner)
        empty = False
    yield ends if empty else margin + ends[1]


def json_array(path: Path, what: str) -> Iterator[Any]:
    """The entries of a file that is one JSON array in any Unicode encoding; `what` is what errors call it. Raises
    DataError, naming the line."""
    try:
        with path.open("rb") as raw:
            encoding = json.detect_encoding(raw.peek(4)[:4])
            yield from _Array(path, what, io.TextIOWrapper(raw, encoding, newline="")).entries()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from error
    except UnicodeError as error:
        raise DataError(f"{path}: not UTF-8 text; save it as UTF-8") from error
    except RecursionError as error:
        raise DataError(f"{path}: JSON nested too deeply to be a shared-task file") from error


class _Array:
    """An array that is being read: the text that was read and not yet given out, from `_at` on, and its line."""

    def __init__(self, path: Path, what: str, stream: io.TextIOBase) -> None:
        self._path, self._what, self._stream = path, what, stream
        self._text, self._at, self._line = "", 0, 1

    def entries(self) -> Iterator[Any]:
        if self._sign() != "[":
            value = read_json(self._path)  # says what is wrong with anything that is no JSON
            raise DataError(f"{self._path}: {self._what} is a JSON array of cases; this is {type(value).__name__}")
        self._at += 1
        if self._sign() != "]":
            yield self._entry()
            while self._sign() == ",":
                self._at += 1
                yield self._entry()
        if self._sign() != "]":
            raise self._fault("Expecting ',' delimiter")
        self._at += 1
        if self._sign():
            raise self._fault("Extra data")

    def _sign(self) -> str:
        """The next character that is not white space, "" at the end."""
        while True:
            if match := _SIGN.search(self._text, self._at):
                self._at = match.start()
                return match[0]
            self._at = len(self._text)
            if not self._read_more():
                return ""

    def _entry(self) -> Any:
        self._sign()
        while True:
            try:
                entry, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if len(self._text) - self._at > _LONGEST or not self._read_more():
                    raise self._fault(error.msg, error.pos) from error
            except ValueError as error:  # Python converts no number of thousands of digits
                raise DataError(
                    f"{self._path}: holds a number too long to read; is this a shared-task file?"
                ) from error
            else:
                after = _SIGN.search(self._text, end)
                if (after and after[0] in ",]") or not self._read_more():  # else it may be a number that goes on
                    break
        if "\\u" in self._text[self._at : end]:  # half of a surrogate pair can be read, but never written
            json.dumps(entry, ensure_ascii=False).encode()
        self._at = end
        return entry

    def _read_more(self) -> bool:
        """Let go of what was given out and read as much as is left again; False at the end of the file."""
        more = self._stream.read(max(_CHUNK, len(self._text) - self._at))
        if more:
            self._line += self._text.count("\n", 0, self._at)
            self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)

    def _fault(self, what: str, at: int | None = None) -> DataError:
        line = self._line + self._text.count("\n", 0, self._at if at is None else at)
        return DataError(f"{self._path}: not valid JSON at line {line} ({what}); is the file complete?")
