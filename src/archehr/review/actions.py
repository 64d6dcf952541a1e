"""What a reviewer can do to a case: one class an action, each a function from labels to labels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from archehr.data.case import Relevance
from archehr.review.labels import AnswerLine, Harm, Labels, faults

# What XML 1.0, the official form, cannot hold.
_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Refused(ValueError):
    """An action that does not fit the case; the message is for the reviewer."""


def unwritable(text: str) -> bool:
    """Whether the official form cannot hold a text."""
    return _UNWRITABLE.search(text) is not None


def _writable(text: str) -> str:
    if unwritable(text):
        raise ValueError("the text holds a control character, which the official form cannot hold")
    return text


Text = Annotated[str, Field(max_length=20_000), AfterValidator(_writable)]


class _Action(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def on(self, labels: Labels) -> Labels:
        """The labels after this. Raises Refused."""
        raise NotImplementedError

    @property
    def field(self) -> str | None:
        """The text field that this types in: what is typed there in a row is undone in one step."""
        return None


class Mark(_Action):
    """Mark one note sentence; None takes the mark away."""

    do: Literal["mark"]
    sentence: str
    value: Relevance | None

    def on(self, labels: Labels) -> Labels:
        _check_id(self.sentence, labels.marks, "note sentence")
        return _with(labels, marks={**labels.marks, self.sentence: self.value})


class MarkRest(_Action):
    """Mark as not relevant what is not marked yet."""

    do: Literal["mark_rest"]

    def on(self, labels: Labels) -> Labels:
        return _with(labels, marks={i: mark or Relevance.NOT_RELEVANT for i, mark in labels.marks.items()})


class Question(_Action):
    """The clinician's question in the reviewer's words."""

    do: Literal["question"]
    text: Text

    def on(self, labels: Labels) -> Labels:
        return _with(labels, question=self.text)

    @property
    def field(self) -> str:
        return "question"


class Edit(_Action):
    """The text of one answer sentence."""

    do: Literal["edit"]
    answer: str
    text: Text

    def on(self, labels: Labels) -> Labels:
        line = _line(labels, self.answer)
        return _replaced(labels, line, [_copy(line, text=self.text)])

    @property
    def field(self) -> str:
        return f"answer {self.answer}"


class Split(_Action):
    """Part an answer sentence after `at` characters; both parts keep its links."""

    do: Literal["split"]
    answer: str
    at: int = Field(ge=0)

    def on(self, labels: Labels) -> Labels:
        line = _line(labels, self.answer)
        parts = [line.text[: self.at].strip(), line.text[self.at :].strip()]
        if not all(parts):
            raise Refused("Put the cursor inside the sentence, where it is to be split.")
        return _numbered(_replaced(labels, line, [_copy(line, text=part) for part in parts]))


class Join(_Action):
    """Join an answer sentence with the next one; the links of both stay."""

    do: Literal["join"]
    answer: str

    def on(self, labels: Labels) -> Labels:
        line = _line(labels, self.answer)
        place = labels.answer.index(line)
        if place + 1 == len(labels.answer):
            raise Refused("This is the last answer sentence: there is none to join it with.")
        after = labels.answer[place + 1]
        text = " ".join(t for t in (line.text.strip(), after.text.strip()) if t)
        joined = _copy(line, text=text, links=_in_order(labels, {*line.links, *after.links}))
        return _numbered(_with(labels, answer=(*labels.answer[:place], joined, *labels.answer[place + 2 :])))


class Add(_Action):
    """Add an empty answer sentence after another one, or at the end."""

    do: Literal["add"]
    after: str | None = None

    def on(self, labels: Labels) -> Labels:
        place = len(labels.answer) if self.after is None else labels.answer.index(_line(labels, self.after)) + 1
        new = AnswerLine(id="new", text="")
        return _numbered(_with(labels, answer=(*labels.answer[:place], new, *labels.answer[place:])))


class Remove(_Action):
    """Remove an answer sentence."""

    do: Literal["remove"]
    answer: str

    def on(self, labels: Labels) -> Labels:
        return _numbered(_replaced(labels, _line(labels, self.answer), []))


class LinkTo(_Action):
    """Say whether a note sentence supports an answer sentence."""

    do: Literal["link"]
    answer: str
    sentence: str
    value: bool

    def on(self, labels: Labels) -> Labels:
        line = _line(labels, self.answer)
        _check_id(self.sentence, labels.marks, "note sentence")
        links = {*line.links, self.sentence} if self.value else {*line.links} - {self.sentence}
        return _replaced(labels, line, [_copy(line, links=_in_order(labels, links))])


class TakeAnswer(_Action):
    """Take a whole answer, as one of two readings has it, or as the program gave it."""

    do: Literal["take_answer"]
    lines: tuple[AnswerLine, ...]
    not_answered: bool = False

    def on(self, labels: Labels) -> Labels:
        for line in self.lines:
            if unwritable(line.text):
                raise Refused("The text holds a control character, which the official form cannot hold.")
            for sentence in line.links:
                _check_id(sentence, labels.marks, "note sentence")
        if len({line.id for line in self.lines}) < len(self.lines):
            raise Refused("Two answer sentences have one id.")
        return _with(labels, answer=self.lines, not_answered=self.not_answered)


class NotAnswered(_Action):
    """Say whether the note fails to answer the question."""

    do: Literal["not_answered"]
    value: bool

    def on(self, labels: Labels) -> Labels:
        return _with(labels, not_answered=self.value)


class GradeHarm(_Action):
    """Grade what the program said."""

    do: Literal["harm"]
    value: Harm | None

    def on(self, labels: Labels) -> Labels:
        return _with(labels, harm=self.value)


class Remark(_Action):
    """A free remark."""

    do: Literal["remark"]
    text: Text

    def on(self, labels: Labels) -> Labels:
        return _with(labels, remark=self.text)

    @property
    def field(self) -> str:
        return "remark"


class Finish(_Action):
    """Say that a case is finished, or take that back."""

    do: Literal["finish"]
    value: bool = True

    def on(self, labels: Labels) -> Labels:
        if self.value and (reasons := faults(labels)):
            raise Refused(" ".join(reasons))
        return labels.model_copy(update={"finished": self.value})


Change = Annotated[
    Mark
    | MarkRest
    | Question
    | Edit
    | Split
    | Join
    | Add
    | Remove
    | LinkTo
    | TakeAnswer
    | NotAnswered
    | GradeHarm
    | Remark
    | Finish,
    Field(discriminator="do"),
]
CHANGE: TypeAdapter[Change] = TypeAdapter(Change)


def _with(labels: Labels, **changed: object) -> Labels:
    """A finished case stays so as long as nothing is missing in it."""
    new = labels.model_copy(update=changed)
    return new.model_copy(update={"finished": False}) if new.finished and faults(new) else new


def _copy(line: AnswerLine, **changed: object) -> AnswerLine:
    return line.model_copy(update=changed)


def _line(labels: Labels, answer_id: str) -> AnswerLine:
    _check_id(answer_id, {line.id for line in labels.answer}, "answer sentence")
    return next(line for line in labels.answer if line.id == answer_id)


def _replaced(labels: Labels, old: AnswerLine, new: list[AnswerLine]) -> Labels:
    place = labels.answer.index(old)
    return _with(labels, answer=(*labels.answer[:place], *new, *labels.answer[place + 1 :]))


def _numbered(labels: Labels) -> Labels:
    """Answer ids as positions, once sentences have come or gone."""
    lines = tuple(_copy(line, id=str(i)) for i, line in enumerate(labels.answer, 1))
    return labels.model_copy(update={"answer": lines})


def _in_order(labels: Labels, ids: set[str]) -> tuple[str, ...]:
    return tuple(i for i in labels.marks if i in ids)


def _check_id(wanted: str, ids: Iterable[str], what: str) -> None:
    if wanted not in ids:
        raise Refused(f"There is no {what} {wanted[:20]} in this case any more.")
