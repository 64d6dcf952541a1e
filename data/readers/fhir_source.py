"""Where FHIR resources are found: in a Bundle, in NDJSON, or in a folder of either; and whose they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archehr.data.case import DataError, shown_id, shown_ids
from archehr.data.files import unpacked_head
from archehr.data.reading.reader import Reading, suffix_of
from archehr.data.reading.rows import json_lines, open_text

# Whose subjects are looked at: the resources that hold notes and messages.
_ABOUT = ("DocumentReference", "Composition", "DiagnosticReport", "Communication", "QuestionnaireResponse")
_ENDINGS = (".json", ".ndjson", ".jsonl")


def fhir_files(path: Path) -> Iterator[Path]:
    """The file itself, or those of a folder that hold resources."""
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.iterdir()):
        if file.is_file() and suffix_of(file) in _ENDINGS and b'"resourceType"' in unpacked_head(file):
            yield file


@dataclass(slots=True)
class Bundle:
    """One Bundle: whose it is, and where its entries are found again by the URLs that refer to them."""

    where: str
    entries: list[dict[str, Any]]
    by_url: dict[str, dict[str, Any]] = field(default_factory=dict)
    patient: str | None = None


def resources(path: Path, reading: Reading) -> Iterator[tuple[str, dict[str, Any], Bundle | None]]:
    """Every resource with the place to name it by, and the Bundle it is in. Raises DataError, or leaves Bundles out."""
    for file in fhir_files(path):
        for where, value in _values(file, reading):
            if not isinstance(value, dict) or not isinstance(value.get("resourceType"), str):
                reading.bad(DataError(f"{where}: is no FHIR resource; every one has a resourceType"))
            elif value["resourceType"] != "Bundle":
                yield _named(where, value), value, None
            else:
                try:
                    bundle = _opened(where, value)
                except DataError as error:
                    reading.bad(error)
                    continue
                for resource in bundle.entries:
                    yield _named(where, resource), resource, bundle


def _values(file: Path, reading: Reading) -> Iterator[tuple[str, Any]]:
    """The JSON values of a file: those of its lines, or the one that it is."""
    if suffix_of(file) in (".ndjson", ".jsonl"):
        yield from json_lines(file, reading.options)
        return
    with open_text(file, reading.options) as stream:
        try:
            text = stream.read()
            value = json.loads(text)
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair can be read, but never written
        except UnicodeError:
            raise DataError(f"{file}: not UTF-8 text; save it as UTF-8") from None
        except json.JSONDecodeError as error:
            if error.msg == "Extra data":  # a value a line, whatever the file is called
                yield from json_lines(file, reading.options)
                return
            raise DataError(f"{file}: not valid JSON at line {error.lineno} ({error.msg}); is it complete?") from None
        except RecursionError:
            raise DataError(f"{file}: JSON nested too deeply") from None
    yield str(file), value


def _named(where: str, resource: Mapping[str, Any]) -> str:
    name = resource.get("id")
    return f"{where}: {shown_id(resource['resourceType'])}" + (f"/{shown_id(name)}" if isinstance(name, str) else "")


def _opened(where: str, value: Mapping[str, Any]) -> Bundle:
    entries = value.get("entry", [])
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise DataError(f"{where}: entry is no list of objects; it is not as FHIR R4 has it")
    bundle = Bundle(where, [])
    for entry in entries:
        resource = entry.get("resource")
        if not isinstance(resource, dict) or not isinstance(resource.get("resourceType"), str):
            continue
        bundle.entries.append(resource)
        if isinstance(resource.get("id"), str):
            bundle.by_url[f"{resource['resourceType']}/{resource['id']}"] = resource
        if isinstance(entry.get("fullUrl"), str):
            bundle.by_url[entry["fullUrl"]] = resource
    patients = dict.fromkeys(_patients(bundle))
    if len(patients) > 1:
        raise DataError(f"{where}: a Bundle with {len(patients)} patients ({shown_ids(patients)}); split it by patient")
    bundle.patient = next(iter(patients), None)
    return bundle


def _patients(bundle: Bundle) -> Iterator[str]:
    for url, resource in bundle.by_url.items():
        if resource["resourceType"] == "Patient":
            yield resource["id"] if isinstance(resource.get("id"), str) else _last_part(url)
    for resource in bundle.entries:
        subject = resource.get("subject")
        if (
            resource["resourceType"] in _ABOUT
            and isinstance(subject, dict)
            and isinstance(subject.get("reference"), str)
        ):
            yield patient_of(subject["reference"], bundle.by_url) or ""


def patient_of(reference: str | None, by_url: Mapping[str, dict[str, Any]]) -> str | None:
    """The id of the patient a reference means, in any of its forms: relative, absolute, urn:uuid, by identifier."""
    if not reference:
        return None
    resource = by_url.get(reference)
    if resource is not None and isinstance(resource.get("id"), str):
        return str(resource["id"])
    return _last_part(reference)


def _last_part(reference: str) -> str:
    bare = reference.split("/_history/")[0]
    if "?" in bare:
        return bare.rsplit("|", 1)[-1].rsplit("=", 1)[-1]
    return re.split(r"[/:]", bare)[-1]
