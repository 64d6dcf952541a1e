"""The notes and the patients' words in FHIR R4 resources, as cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from archehr.data.case import Case, DataError
from archehr.data.readers.fhir_attachments import Attachments, composed_text
from archehr.data.readers.fhir_resources import (
    Communication,
    Composition,
    Concept,
    DiagnosticReport,
    DocumentReference,
    QuestionnaireResponse,
    Resource,
    checked,
    written_answers,
)
from archehr.data.readers.fhir_source import Bundle, patient_of, resources
from archehr.data.reading.building import Message, Note, Waiting, cases_of_patients
from archehr.data.reading.note_table import messages_beside, read_messages
from archehr.data.reading.reader import Reading

_UNFINISHED = frozenset({"preliminary", "entered-in-error", "superseded", "cancelled", "registered", "partial"})
_NOT_SENT = frozenset({"preparation", "entered-in-error", "not-done", "stopped"})
_PATIENTS = {"patient": ("patient_id", "subject_id", "person_id", "subject")}


@dataclass(slots=True)
class _Patients:
    """The source as `cases_of_patients` wants it: whose each note is, and how to make it."""

    reading: Reading
    attachments: Attachments
    messages: dict[str, list[Message]] = field(default_factory=dict)
    skipped: int = 0

    def waiting(self) -> Iterator[Waiting]:
        """Every note that is to be read. Raises DataError, or leaves out."""
        self.skipped = 0
        for where, raw, bundle in resources(self.reading.path, self.reading):
            if raw["resourceType"] == "Binary" and bundle is None:
                self.attachments.remember(raw)
            if raw["resourceType"] not in ("DocumentReference", "Composition", "DiagnosticReport"):
                continue
            pair = _whose(where, raw, bundle, self.reading)
            if pair is None:
                continue
            patient, resource = pair
            status = {resource.status, getattr(resource, "docStatus", None)}
            if status & _UNFINISHED:
                self.skipped += 1
            elif self.reading.options.wants(*_type(resource).names()) and _has_text(resource):
                by_url = bundle.by_url if bundle else {}
                yield patient, _maker(where, resource, self.attachments.within(by_url))

    def left_out(self) -> str:
        """What was left out for its status, in words."""
        return f"{self.skipped} notes were left out that are preliminary, superseded or entered in error"

    def collect_messages(self) -> None:
        """The patients' own words, by patient."""
        for where, raw, bundle in resources(self.reading.path, self.reading):
            if raw["resourceType"] not in ("Communication", "QuestionnaireResponse"):
                continue
            pair = _whose(where, raw, bundle, self.reading)
            if pair is None:
                continue
            patient, resource = pair
            if text := _words(resource):
                messages = self.messages.setdefault(patient, [])
                messages.append(Message(text, patient if not messages else f"{patient}-{len(messages) + 1}"))


def _whose(where: str, raw: dict[str, Any], bundle: Bundle | None, reading: Reading) -> tuple[str, Resource] | None:
    try:
        resource = checked(raw, where)
        subject = resource.subject
        patient = patient_of(subject.reference if subject else None, bundle.by_url if bundle else {})
        patient = patient or (bundle.patient if bundle else None)
        if not patient:
            raise DataError(f"{where}: has no subject.reference, so it is nobody's")
    except DataError as error:
        reading.bad(error)
        return None
    return patient, resource


def _words(resource: Resource) -> str:
    """What the patient wrote, or "": a Communication that another sent, or that was never sent, is not theirs."""
    if isinstance(resource, QuestionnaireResponse):
        return "\n".join(written_answers(resource.item)).strip() if resource.status != "entered-in-error" else ""
    assert isinstance(resource, Communication)
    sender = resource.sender.reference if resource.sender and resource.sender.reference else ""
    others = re.search(r"\b(Practitioner|PractitionerRole|Organization|Device|HealthcareService)/", sender)
    if resource.status in _NOT_SENT or others:
        return ""
    return "\n".join(part.contentString for part in resource.payload if part.contentString).strip()


def _type(resource: Resource) -> Concept:
    if isinstance(resource, DiagnosticReport):
        return resource.code or Concept()
    assert isinstance(resource, (DocumentReference, Composition))
    return resource.type or Concept()


def _has_text(resource: Resource) -> bool:
    """A report of results without a text, of which there are many, is no note."""
    return not isinstance(resource, DiagnosticReport) or bool(resource.presentedForm)


def _maker(where: str, resource: Resource, attachments: Attachments) -> Callable[[], Note]:
    def make() -> Note:
        kind = _type(resource)
        code = next((c.code for c in kind.coding if c.code), None)
        name = kind.text or next((c.display for c in kind.coding if c.display), None)
        date, title = None, None
        if isinstance(resource, DocumentReference):
            text = attachments.text([c.attachment for c in resource.content], where)
            date = resource.context.period.start or resource.date
            title = next((c.attachment.title for c in resource.content if c.attachment.title), None)
            title = name or resource.description or title
        elif isinstance(resource, DiagnosticReport):
            text = attachments.text(resource.presentedForm, where)
            date, title = resource.effectiveDateTime or resource.issued, name
        else:
            assert isinstance(resource, Composition)
            text = composed_text(resource.section)
            date, title = resource.date, resource.title or name
            if not text:
                raise DataError(f"{where}: none of its sections has a text")
        url = f"{resource.resourceType}/{resource.id}" if resource.id else None
        return Note(resource.id or where, text, date, title, code, url)

    return make


def fhir_cases(reading: Reading) -> Iterator[Case]:
    """A case for every message of a patient who has notes. Raises DataError."""
    source = _Patients(reading, Attachments(reading))
    messages: dict[str, list[Message]] | None = None
    if reading.options.message is None:
        table = messages_beside(reading)
        if table is not None:
            messages, _ = read_messages(table, _PATIENTS, reading)
        else:
            source.collect_messages()
            messages = source.messages or None
    if messages is None and reading.options.message is None:
        raise DataError(
            f"{reading.path}: no patient's message in it (Communication or QuestionnaireResponse); "
            "name a table of messages by --messages"
        )
    try:
        yield from cases_of_patients(source.waiting, messages, reading)
    except DataError as error:
        raise DataError(f"{error}; {source.left_out()}" if source.skipped else str(error)) from None
    if source.skipped:
        reading.tell(f"{reading.path}: {source.left_out()}")
