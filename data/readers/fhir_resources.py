"""The parts of FHIR R4 resources that are read, checked for their form; everything else in them is ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from archehr.data.case import DataError


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class Coding(_Part):
    code: str | None = None
    display: str | None = None


class Concept(_Part):
    coding: list[Coding] = []
    text: str | None = None

    def names(self) -> Iterator[str | None]:
        """Codes, their names, and the text: what --note-type may say."""
        yield from (part for coding in self.coding for part in (coding.code, coding.display))
        yield self.text


class Reference(_Part):
    reference: str | None = None
    type: str | None = None


class Attachment(_Part):
    contentType: str | None = None
    data: str | None = None
    url: str | None = None
    title: str | None = None
    creation: str | None = None


class Content(_Part):
    attachment: Attachment


class Period(_Part):
    start: str | None = None
    end: str | None = None


class Context(_Part):
    period: Period = Period()


class Narrative(_Part):
    div: str = ""


class Section(_Part):
    title: str | None = None
    text: Narrative | None = None
    section: list[Section] = []


class Resource(_Part):
    """What all have."""

    resourceType: str
    id: str | None = None
    status: str | None = None
    subject: Reference | None = None


class DocumentReference(Resource):
    docStatus: str | None = None
    type: Concept | None = None
    date: str | None = None
    description: str | None = None
    content: list[Content] = []
    context: Context = Context()


class Composition(Resource):
    type: Concept | None = None
    date: str | None = None
    title: str | None = None
    section: list[Section] = []


class DiagnosticReport(Resource):
    code: Concept | None = None
    effectiveDateTime: str | None = None
    issued: str | None = None
    presentedForm: list[Attachment] = []


class Payload(_Part):
    contentString: str | None = None


class Communication(Resource):
    sender: Reference | None = None
    sent: str | None = None
    payload: list[Payload] = []


class Answer(_Part):
    valueString: str | None = None
    item: list[Item] = []


class Item(_Part):
    answer: list[Answer] = []
    item: list[Item] = []


class QuestionnaireResponse(Resource):
    authored: str | None = None
    item: list[Item] = []


READ: dict[str, type[Resource]] = {
    model.__name__: model
    for model in (DocumentReference, Composition, DiagnosticReport, Communication, QuestionnaireResponse)
}


def checked(resource: dict[str, Any], where: str) -> Resource:
    """The resource as far as it is read. Raises DataError that names the element which is not as R4 has it."""
    try:
        return READ[resource["resourceType"]].model_validate(resource)
    except ValidationError as error:
        fault = error.errors()[0]
        element = ".".join(str(part) for part in fault["loc"])
        raise DataError(f"{where}: {element}: {fault['msg']}; it is not as FHIR R4 has it") from None
    except RecursionError:
        raise DataError(f"{where}: nested too deeply") from None


def written_answers(items: list[Item]) -> Iterator[str]:
    """The free texts of a questionnaire's answers, in order."""
    for item in items:
        for answer in item.answer:
            if answer.valueString:
                yield answer.valueString
            yield from written_answers(answer.item)
        yield from written_answers(item.item)
