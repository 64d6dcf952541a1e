"""An answer checked before it is shown: what is not supported is written again once, then left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from archehr.program.types import Link, Notice, Verdict


@dataclass(frozen=True)
class Answer:
    """An answer's sentences, which have the ids "1", "2", …, and their links."""

    sentences: Sequence[str]
    links: Sequence[Link]

    def shown(self) -> str:
        """The sentences as a prompt shows them."""
        return "\n".join(f"[{number}] {text}" for number, text in enumerate(self.sentences, 1))


def check_answer(
    answer: Answer,
    how: Literal["off", "flag", "revise"],
    judge: Callable[[Answer], list[Verdict]],
    rewrite: Callable[[str], Answer | None],
) -> tuple[Answer, list[Verdict], list[Notice]]:
    """The answer to show, the verdicts on it and what was done. Under `revise`, `rewrite` is told once what was
    refused and why (None: it could not), and what is still refused is left out; there may be nothing left."""
    notices: list[Notice] = []
    verdicts = judge(answer)
    if how == "revise" and (refused := _refused(verdicts)):
        if (again := rewrite(_told(answer, refused))) is not None:
            notices.append(Notice("verify", "revised", f"answer sentence {_ids(refused)} was not supported"))
            answer, verdicts = again, judge(again)
        if refused := _refused(verdicts):
            notices.append(Notice("verify", "dropped", f"{len(refused)} of {len(answer.sentences)} answer sentences"))
            return *_without(answer, verdicts, {v.answer_id for v in refused}), notices
    if refused := _refused(verdicts):
        notices.append(Notice("verify", "unsupported", f"answer sentence {_ids(refused)}"))
    return answer, verdicts, notices


def _refused(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [v for v in verdicts if v.verdict == "not supported"]


def _ids(verdicts: Sequence[Verdict]) -> str:
    return ", ".join(v.answer_id for v in verdicts)


def _told(answer: Answer, refused: Sequence[Verdict]) -> str:
    reasons = "\n".join(f"[{v.answer_id}] {v.reason or 'not supported'}" for v in refused)
    return (
        f"Your last answer was:\n{answer.shown()}\nChecked against the note, these sentences are not supported:\n"
        f"{reasons}\nWrite the whole answer again: keep what is supported, mend or leave out the rest."
    )


def _without(answer: Answer, verdicts: Sequence[Verdict], ids: set[str]) -> tuple[Answer, list[Verdict]]:
    """The answer without these sentences; the others are numbered anew."""
    kept = [(str(n), text) for n, text in enumerate(answer.sentences, 1) if str(n) not in ids]
    new = {old: str(n) for n, (old, _) in enumerate(kept, 1)}
    links = [Link(answer_id=new[x.answer_id], evidence_ids=x.evidence_ids) for x in answer.links if x.answer_id in new]
    left = [v.model_copy(update={"answer_id": new[v.answer_id]}) for v in verdicts if v.answer_id in new]
    return Answer([text for _, text in kept], links), left
