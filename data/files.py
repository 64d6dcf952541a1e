"""Finds and opens the shared task's files: DATA to XML and key, bytes to JSON and XML, each fault in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from archehr.data.case import DataError

XML_NAME = "archehr-qa.xml"
KEY_NAME = "archehr-qa_key.json"
SAMPLES = Path(__file__).parent / "sample"


def find_xml(path: Path) -> Path:
    """The XML file DATA means: a folder that holds one, the file itself, or a shipped sample. Raises DataError."""
    if not path.exists() and path.parts[:1] == ("sample",) and (SAMPLES / Path(*path.parts[1:])).is_dir():
        path = SAMPLES / Path(*path.parts[1:])
    if path.is_dir():
        found = path / XML_NAME
        if found.exists():
            return found
        others = sorted(path.glob("*.xml"))
        if len(others) == 1:
            return others[0]
        what = f"has {len(others)} .xml files; name one" if others else f"holds no {XML_NAME}; name the .xml file"
        raise DataError(f"{path}: the folder {what}")
    if not path.exists():
        raise DataError(
            f"{path}: no such file or folder; DATA is a folder with {XML_NAME}, an .xml file, or sample/dev"
        )
    return path


def find_key(xml_path: Path) -> Path | None:
    """The key beside an XML file, if there is one."""
    found = xml_path.with_name(f"{xml_path.stem}_key.json")
    if not found.exists() and list(xml_path.parent.glob("*.xml")) == [xml_path]:
        found = xml_path.with_name(KEY_NAME)  # it can belong to no other XML
    return found if found.exists() else None


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
        found = json.loads(raw.decode("utf-8-sig") if raw.startswith(b"\xef\xbb\xbf") else raw)
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair can be read, but never written
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
    return found


def read_xml(path: Path) -> Element:
    """The root of an XML file that declares no entities. Raises DataError for anything that is not whole XML."""
    import defusedxml
    from defusedxml.ElementTree import fromstring

    raw = _read_bytes(path)
    if not raw.strip(b"\x00 \t\r\n\xef\xbb\xbf\xff\xfe"):
        raise DataError(f"{path}: the file is empty; it should hold <annotations> with <case> elements")
    try:
        # A file saved anew as UTF-16 often still declares UTF-8; its byte order mark is right.
        root = fromstring(raw.decode("utf-16") if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else raw)
    except defusedxml.DefusedXmlException as error:
        raise DataError(
            f"{path}: refused, the XML declares entities or external references; remove its DOCTYPE"
        ) from error
    except (ParseError, UnicodeError, ValueError, LookupError) as error:
        line = getattr(error, "position", (0,))[0]
        where = f" at line {line}" if line else ""
        if b"</annotations" in raw.replace(b"\x00", b""):
            fault = f"not well-formed XML{where}; correct it there, or get another copy of the file"
        else:
            fault = f"truncated or not XML{where}; get a complete copy of the file"
        raise DataError(f"{path}: {fault}") from error
    return root
