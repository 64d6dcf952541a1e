"""FHIR R4 drafts: for each case a Bundle of a Communication in preparation and its Provenance. Nothing is sent."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable
from datetime import UTC
from pathlib import Path
from typing import Any

from archehr.data.files import write_private
from archehr.data.writers.answers import Answered, Made, make_folder

_OURS = uuid.UUID("7a6f6b0e-0f0b-5c0e-9d55-6e2f6c1b7a11")  # a namespace, so that the same answer keeps its id
_RESOURCE = re.compile(r"[A-Z][A-Za-z]+/[A-Za-z0-9.-]{1,64}")


def write_fhir(folder: Path, answers: Iterable[Answered], origin: Made) -> Path:
    """Write fhir/CASE.json for every case, 0600; a case without an answer has no draft. Raises DataError."""
    out = make_folder(folder / "fhir")
    for old in out.glob("*.json"):
        old.unlink()
    for number, answered in enumerate(answers, 1):
        if answered.text:
            name = re.sub(r"[^\w.-]+", "_", answered.case.id)[:100].strip(".") or "case"
            path = out / f"{name}.json"
            path = path if not path.exists() else out / f"{name}-{number}.json"
            write_private(path, json.dumps(draft(answered, origin), indent=1, ensure_ascii=False) + "\n")
    return out


def draft(answered: Answered, origin: Made) -> dict[str, Any]:
    """The Bundle of one case."""
    same = "\n".join((origin.data_sha256, origin.program_hash, origin.lm or "", answered.case.id, answered.text))
    urls = [f"urn:uuid:{uuid.uuid5(_OURS, kind + same)}" for kind in ("Communication", "Provenance")]
    resources = (_communication(answered), _provenance(answered, origin, urls[0]))
    entries = [
        {"fullUrl": url, "resource": {"resourceType": resource.pop("resourceType"), "id": url[9:], **resource}}
        for url, resource in zip(urls, resources, strict=True)
    ]
    return {"resourceType": "Bundle", "type": "collection", "entry": entries}


def _communication(answered: Answered) -> dict[str, Any]:
    case = answered.case
    notes = [{"text": f"[{s.id}] {' '.join(s.text.split())}"} for s, _ in answered.cited()]
    return _filled(
        resourceType="Communication",
        status="preparation",
        subject={"reference": f"Patient/{case.patient}"} if case.patient and _is_id(case.patient) else None,
        about=_sources(answered),
        payload=[{"contentString": answered.text}],
        note=notes,
    )


def _provenance(answered: Answered, origin: Made, target: str) -> dict[str, Any]:
    software = f"archehr-dspy {origin.version}, program {origin.program} ({origin.program_hash[:12]})"
    agents = [{"type": {"text": "program"}, "who": {"display": software}}]
    if origin.lm:
        agents.append({"type": {"text": "language model"}, "who": {"display": origin.lm}})
    return _filled(
        resourceType="Provenance",
        target=[{"reference": target}],
        recorded=origin.when.astimezone(UTC).isoformat(timespec="seconds"),
        activity={"text": "draft of an answer to a patient's message, for a person to check and send"},
        agent=agents,
        entity=[{"role": "source", "what": source} for source in _sources(answered)],
    )


def _sources(answered: Answered) -> list[dict[str, str]]:
    """References to the notes cited, or to all of the case where none is; by name where they are no FHIR resource."""
    cited = [document for _, document in answered.cited() if document]
    documents = dict.fromkeys(cited or answered.case.documents)
    return [{"reference": d.url} if d.url and _RESOURCE.fullmatch(d.url) else {"display": d.id} for d in documents]


def _is_id(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9.-]{1,64}", text) is not None


def _filled(**elements: Any) -> dict[str, Any]:
    """The elements that are there: FHIR has no empty ones."""
    return {name: value for name, value in elements.items() if value}
