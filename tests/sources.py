"""Small sources as real systems make them: Synthea, HAPI, Epic, MIMIC and OMOP shapes. Every text is invented."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path
from typing import Any

OLD = "Admitted with chest pain.\nTroponin was negative twice."
NEW = "He was given furosemide for oedema.\nWeight fell by 4 kg."
WORDS = "Why did I get the water pills?"
DISCHARGE = {"coding": [{"system": "http://loinc.org", "code": "18842-5", "display": "Discharge summary"}]}
PROGRESS = {"coding": [{"system": "http://loinc.org", "code": "11506-3", "display": "Progress note"}]}


def base64_of(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def document(name: str, text: str, date: str, patient: str = "urn:uuid:p1", **more: Any) -> dict[str, Any]:
    """A DocumentReference as Synthea writes one."""
    return {
        "resourceType": "DocumentReference",
        "id": name,
        "status": "current",
        "type": DISCHARGE,
        "subject": {"reference": patient},
        "date": date,
        "content": [{"attachment": {"contentType": "text/plain; charset=utf-8", "data": base64_of(text)}}],
    } | more


def communication(name: str, text: str, patient: str = "urn:uuid:p1", **more: Any) -> dict[str, Any]:
    """A patient's message as portals keep them."""
    return {
        "resourceType": "Communication",
        "id": name,
        "status": "completed",
        "subject": {"reference": patient},
        "sender": {"reference": patient},
        "payload": [{"contentString": text}],
    } | more


def bundle(*resources: dict[str, Any], kind: str = "transaction") -> dict[str, Any]:
    """A Bundle of one patient, p1, whose entries refer to each other by urn:uuid, as Synthea's do."""
    everything = ({"resourceType": "Patient", "id": "p1"}, *resources)
    entries = [{"fullUrl": f"urn:uuid:{r['id']}", "resource": r} for r in everything]
    return {"resourceType": "Bundle", "type": kind, "entry": entries}


def synthea() -> dict[str, Any]:
    """Two notes of one patient, the older one also as a DiagnosticReport, as Synthea has it; and the message."""
    report = {
        "resourceType": "DiagnosticReport",
        "id": "r1",
        "status": "final",
        "code": PROGRESS,
        "subject": {"reference": "urn:uuid:p1"},
        "effectiveDateTime": "2020-01-02T10:00:00-05:00",
        "presentedForm": [{"contentType": "text/plain; charset=utf-8", "data": base64_of(OLD)}],
    }
    results = {**report, "id": "r2", "presentedForm": []}
    return bundle(
        document("d1", OLD, "2020-01-02T10:00:00.000-05:00", type=PROGRESS),
        report,
        results,
        document("d2", NEW, "2020-03-04T10:00:00.000-05:00"),
        communication("m1", WORDS),
    )


def hapi() -> dict[str, Any]:
    """A search set of a HAPI server: absolute URLs, versions, a Composition, a questionnaire's answers."""
    base = "http://hapi.example.org/baseR4"
    composition = {
        "resourceType": "Composition",
        "id": "c1",
        "status": "final",
        "type": DISCHARGE,
        "title": "Hospital discharge",
        "date": "2021-05",
        "subject": {"reference": f"{base}/Patient/p1/_history/2"},
        "section": [
            {
                "title": "Course",
                "text": {"status": "generated", "div": f"<div><p>{NEW}</p><p>Stable &amp; well.</p></div>"},
            },
            {"section": [{"title": "Plan", "text": {"status": "generated", "div": "<div>Weigh daily.</div>"}}]},
            {"title": "Empty"},
        ],
    }
    answers = {
        "resourceType": "QuestionnaireResponse",
        "id": "q1",
        "status": "completed",
        "subject": {"reference": "Patient/p1"},
        "item": [
            {"linkId": "1", "answer": [{"valueString": WORDS}]},
            {"linkId": "2", "answer": [{"valueBoolean": True}]},
        ],
    }
    resources = ({"resourceType": "Patient", "id": "p1"}, composition, answers)
    entries = [{"fullUrl": f"{base}/{r['resourceType']}/{r['id']}", "resource": r} for r in resources]
    return {"resourceType": "Bundle", "type": "searchset", "total": 3, "entry": entries}


def epic() -> dict[str, Any]:
    """A note by url, as HTML and as RTF in Binary resources that were saved beside the Bundle."""
    forms = [
        {"attachment": {"contentType": "text/rtf", "url": "https://epic.example.org/api/FHIR/R4/Binary/note1-rtf"}},
        {"attachment": {"contentType": "text/html", "url": "https://epic.example.org/api/FHIR/R4/Binary/note1"}},
    ]
    return bundle(document("d1", "", "2022-02-02", content=forms), communication("m1", WORDS), kind="searchset")


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def write_ndjson(path: Path, *resources: Any) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in resources))
    return path


RTF = r"{\rtf1\ansi\deff0{\fonttbl{\f0 Arial;}}\f0 He was given furosemide for oedema.\par Weight fell by 4\'a0kg.\par}"
HTML = (
    "<!DOCTYPE html><html><head><title>x</title><style>p {}</style></head><body><h1>Course</h1>"
    "<p>He was given\nfurosemide.<br>Stable.</p></body></html>"
)


def docx(*paragraphs: str) -> bytes:
    """A DOCX by python-docx."""
    import docx as library

    document = library.Document()
    for text in paragraphs:
        document.add_paragraph(text)
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Sodium", "140"
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def pdf(*lines: str) -> bytes:
    """A PDF of one page with these lines; without lines, a page as a scanner leaves it: no text."""
    drawn = "BT /F1 12 Tf 72 720 Td 14 TL " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
    ]
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 5\n0000000000 65535 f \n{table}trailer << /Size 5 /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF"
    return out + end.encode()


def zip_bomb() -> bytes:
    """An archive called a DOCX that unpacks to a thousand times its size."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/document.xml", b"0" * 50_000_000)
    return out.getvalue()


MIMIC = (
    "note_id,subject_id,hadm_id,note_type,note_seq,charttime,storetime,text\n"
    f'10-DS-1,10,501,DS,1,2150-01-02 00:00:00,2150-01-03 09:00:00,"{OLD}"\n'
    f'10-DS-2,10,502,DS,2,2150-03-04 00:00:00,2150-03-05 09:00:00,"{NEW}"\n'
    '11-DS-1,11,503,DS,1,2151-01-01 00:00:00,,"Unrelated. Nothing asked."\n'
)
OMOP = (
    "note_id,person_id,note_date,note_datetime,note_type_concept_id,note_class_concept_id,note_title,note_text,"
    "encoding_concept_id,language_concept_id,provider_id,visit_occurrence_id\n"
    f'1,7,2019-01-02,2019-01-02 10:00:00,44814637,706391,Progress note,"{OLD}",32678,4180186,,90\n'
    f'2,7,2019-03-04,,44814637,706531,Discharge summary,"{NEW}",32678,4180186,,91\n'
)
