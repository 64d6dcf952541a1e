"""One case under review: the labels that its actions lead to, with undo, and what was read without the program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from archehr.review.actions import Change, Refused
from archehr.review.labels import Labels


class _Step(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Open(_Step):
    """The first step on a case: where it starts, and what the program said (None where there is no run).

    It makes a journal complete in itself: no later run in the same folder changes what was reviewed. `text` is
    the case's `case_sha256`.
    """

    do: Literal["open"] = "open"
    text: str
    start: Labels
    said: Labels | None = None
    blind: bool = False


class Undo(_Step):
    """Back by one change."""

    do: Literal["undo"] = "undo"


class Redo(_Step):
    """Forward again."""

    do: Literal["redo"] = "redo"


class Reveal(_Step):
    """Show what the program said of a blind case; the marks made until then are its blind reading."""

    do: Literal["reveal"] = "reveal"


class Pause(_Step):
    """Nothing but time spent, told when the reviewer leaves a case."""

    do: Literal["pause"] = "pause"


Step = Annotated[Open | Undo | Redo | Reveal | Pause | Change, Field(discriminator="do")]


@dataclass
class CaseReview:
    """The state of one case. `version` counts what changed it: an action made on another version is stale."""

    opened: Open
    states: list[Labels] = field(default_factory=list)
    place: int = 0
    seconds: float = 0.0
    version: int = 0
    blind_reading: Labels | None = None
    _typed_in: str | None = None

    def __post_init__(self) -> None:
        self.states = self.states or [self.opened.start]

    @property
    def labels(self) -> Labels:
        return self.states[self.place]

    @property
    def hidden(self) -> bool:
        """Whether what the program said is still hidden from the reviewer."""
        return self.opened.blind and self.blind_reading is None

    @property
    def can_undo(self) -> bool:
        return self.place > 0

    @property
    def can_redo(self) -> bool:
        return self.place + 1 < len(self.states)

    def after(self, step: Step) -> CaseReview:
        """This review one step on; itself stays as it is. Raises Refused."""
        new = CaseReview(
            self.opened, list(self.states), self.place, self.seconds, self.version, self.blind_reading, self._typed_in
        )
        new._take(step)
        return new

    def _take(self, step: Step) -> None:
        match step:
            case Pause():
                return
            case Open():
                raise Refused("This case is open already.")
            case Undo():
                self._move(-1, self.can_undo, "There is nothing to undo.")
            case Redo():
                self._move(+1, self.can_redo, "There is nothing to redo.")
            case Reveal():
                self._reveal()
            case _:
                self._change(step)
        self.version += 1

    def _move(self, by: int, possible: bool, otherwise: str) -> None:
        if not possible:
            raise Refused(otherwise)
        self.place += by
        self._typed_in = None

    def _reveal(self) -> None:
        """No undo leads back to before: what was seen was seen."""
        program = self.opened.said
        if not self.hidden or program is None:
            raise Refused("Nothing is hidden here.")
        if None in self.labels.marks.values():
            raise Refused("Mark every note sentence first: the marks you make now are your own reading.")
        mine = self.blind_reading = self.labels
        update: dict[str, object] = {"question": mine.question or program.question}
        if not mine.answer:
            update |= {"answer": program.answer, "not_answered": mine.not_answered or program.not_answered}
        self.states, self.place, self._typed_in = [mine.model_copy(update=update)], 0, None

    def _change(self, change: Change) -> None:
        new = change.on(self.labels)
        if change.field is not None and change.field == self._typed_in and not self.can_redo:
            self.states[self.place] = new
        else:
            self.states[self.place + 1 :] = [new]
            self.place += 1
        self._typed_in = change.field
