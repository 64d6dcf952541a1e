"""Bytes of a document to its text, told apart by content: plain text, HTML, RTF, PDF and DOCX."""

from __future__ import annotations

import importlib
import io
import re
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from archehr.data.case import DataError

_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body|div|p|h\d|table|span)\b", re.I
)
_BLOCKS = frozenset(
    "address article blockquote br dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre section table tr ul".split()
)
_UNREAD = {
    b"\xd0\xcf\x11\xe0": "an old Word file (.doc); save it as .docx",
    b"\x89PNG": "an image; run character recognition on it first",
    b"\xff\xd8\xff": "an image; run character recognition on it first",
    b"II*\x00": "an image; run character recognition on it first",
    b"MM\x00*": "an image; run character recognition on it first",
    b"PAR1": "a Parquet file, which is a table and no note",
}


def read_text(path: Path, max_bytes: int, tell: Callable[[str], None]) -> str:
    """The text of a document file. Text that is not UTF-8 is read as Windows-1252 where it can be, and `tell` is told.

    Raises DataError, as `text_of`.
    """
    try:
        if path.stat().st_size > max_bytes:
            raise DataError(f"{path}: over {max_bytes / 1e6:g} MB; raise --max-mb if it really is one note")
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    if not raw.strip():
        raise DataError(f"{path}: the note is empty; it should hold the note's text")
    text = _windows_text(raw)
    if text is None:
        return text_of(raw, str(path), max_bytes)
    tell(f"{path}: not UTF-8; read as Windows-1252: check its accents and signs, or save it as UTF-8")
    return text_of(text.encode(), str(path), max_bytes)


_MOST_FOREIGN = 0.3  # of the characters of a text that is not binary


def _windows_text(raw: bytes) -> str | None:
    """Bytes that are no UTF-8 as Windows-1252, if they can be text: mostly ASCII, and no control characters."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or any(tells(raw) for tells, _ in _KINDS):
        return None
    try:
        raw.decode()
        return None
    except UnicodeDecodeError:
        pass
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        return None
    foreign = sum(not c.isascii() for c in text)
    plain = all(c.isprintable() or c.isspace() for c in text)
    return text if plain and foreign < _MOST_FOREIGN * len(text) else None


def text_of(raw: bytes, where: str, max_bytes: int, charset: str | None = None) -> str:
    """The text of a document; `where` names it in errors, `charset` is the encoding it is known to have.

    Raises DataError for another format, a damaged file, a wrong encoding, and a document without text.
    """
    for magic, what in _UNREAD.items():
        if raw.startswith(magic):
            raise DataError(f"{where}: {what}")
    for tells, read in _KINDS:
        if tells(raw):
            text = read(raw, where, max_bytes)
            break
    else:
        text = _plain(raw, where, charset)
        refuse_other_standards(text, where)
        if text.lstrip().startswith("<?xml"):
            raise DataError(f"{where}: XML that is neither HTML nor the shared task's; export the note as text")
    if not text.strip():
        raise DataError(f"{where}: there is no text in it; a scanned document needs character recognition first")
    if len(text) > max_bytes:
        raise DataError(f"{where}: its text is over {max_bytes / 1e6:g} MB; raise --max-mb if it really is one note")
    return text


def refuse_other_standards(text: str, where: str) -> None:
    """Raises DataError where a text is an HL7 version 2 message or a C-CDA document, which are not read yet."""
    head = text[:4000].lstrip("\x0b \r\n\t")
    if head.startswith(("MSH|", "FHS|", "BHS|")):
        raise DataError(f"{where}: an HL7 version 2 message, which is not read yet; export the note as text or FHIR R4")
    if re.search(r"<(?:\w+:)?ClinicalDocument\b", head):
        raise DataError(f"{where}: a C-CDA document, which is not read yet; export the note as text or FHIR R4")
    if re.match(r"(?:<\?xml[^>]*>\s*)?<\w+[^>]*\bxmlns=.http://hl7.org/fhir\b", head):
        raise DataError(f"{where}: FHIR as XML, which is not read; export it as JSON")


def _plain(raw: bytes, where: str, charset: str | None) -> str:
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else charset or "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise DataError(f"{where}: not {encoding.removesuffix('-sig').upper()} text; save it as UTF-8") from None
    if "\0" in text:
        raise DataError(f"{where}: neither text nor a document that is read (text, HTML, RTF, PDF, DOCX)")
    return text


class _Text(HTMLParser):
    """Collects the text of a page, a block on lines of its own."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._hidden += tag in ("script", "style", "title")
        if tag in _BLOCKS:
            self.parts.append("\n\n" if tag in ("p", "table") else "\n")
        elif tag in ("td", "th"):
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "title"):
            self._hidden = max(0, self._hidden - 1)
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(re.sub(r"\s+", " ", data))


def html_text(html: str) -> str:
    """The text of HTML or XHTML, whole or a fragment; markup that is not closed is read as browsers read it."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    lines = (line.strip() for line in "".join(parser.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _html(raw: bytes, where: str, max_bytes: int) -> str:
    declared = re.search(rb"""(?:charset|encoding)\s*=\s*["']?([\w-]+)""", raw[:2000])
    return html_text(_plain(raw, where, declared[1].decode("ascii") if declared else None))


def _rtf(raw: bytes, where: str, max_bytes: int) -> str:
    rtf_to_text = _library("striprtf.striprtf", where).rtf_to_text
    try:
        return str(rtf_to_text(raw.decode("latin-1"), errors="replace")).strip()
    except Exception as error:  # its parser has no error of its own
        raise DataError(f"{where}: a damaged RTF document ({type(error).__name__}); save it again") from None


def _pdf(raw: bytes, where: str, max_bytes: int) -> str:
    pypdf = _library("pypdf", where)
    try:
        pages = pypdf.PdfReader(io.BytesIO(raw)).pages
        return "\n\n".join(page.extract_text() for page in pages).strip()
    except Exception as error:  # damaged files end in errors of every kind
        raise DataError(f"{where}: a damaged or locked PDF ({type(error).__name__}); save it again") from None


def _docx(raw: bytes, where: str, max_bytes: int) -> str:
    docx = _library("docx", where)
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            if sum(item.file_size for item in packed.infolist()) > 100 * len(raw) + max_bytes:
                raise DataError(f"{where}: unpacks to more than it may; raise --max-mb if it really is one note")
        blocks = docx.Document(io.BytesIO(raw)).iter_inner_content()
        return "\n".join(_docx_block(block) for block in blocks).strip()
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{where}: a damaged DOCX, or another kind of archive ({type(error).__name__})") from None


def _docx_block(block: Any) -> str:
    if not hasattr(block, "rows"):
        return str(block.text)
    return "\n".join(" | ".join(dict.fromkeys(cell.text.strip() for cell in row.cells)) for row in block.rows)


def _library(name: str, where: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise DataError(f"{where}: this format needs the extra `files`: pip install 'archehr-dspy[files]'") from None


_KINDS: tuple[tuple[Callable[[bytes], bool], Callable[[bytes, str, int], str]], ...] = (
    (lambda raw: raw.startswith(b"%PDF"), _pdf),
    (lambda raw: raw.startswith(b"PK\x03\x04"), _docx),
    (lambda raw: raw.lstrip().startswith(b"{\\rtf"), _rtf),
    (lambda raw: _HTML.match(raw.removeprefix(b"\xef\xbb\xbf")) is not None, _html),
)
