"""How well the program without an LM tells questions that a note answers from those that it does not.

`python -m tests.benchmarks.declining` prints risk-coverage curves: true pairs are a question and its own note, crossed
pairs the question and the note of a case of another specialty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from archehr.data.case import Case
from archehr.data.dataset import read_cases
from archehr.optimize.students.answerable import askings, fit_answerable
from archehr.program.extractive.fitted import answerable
from archehr.program.extractive.fitted.answerable import AnswerableModel

CUTS = (0.02, 0.05, 0.07, 0.10, 0.15, 0.20, 0.30, 0.50)
# How a question is asked, and the program's cut for it.
KINDS = {"the whole message": answerable.CUT, "the clinician's question alone": answerable.CUT_ALONE}


@dataclass(frozen=True)
class Pair:
    """A question put to a note; `chance` is the model's that they belong together."""

    asker: str
    note: str
    chance: float


def pairs(asker: Case, kind: str, notes: Sequence[Case], model: AnswerableModel) -> Iterator[Pair]:
    """`asker`'s question put to its own note and to those of other specialties."""
    question, message = askings(asker)[list(KINDS).index(kind)]
    for case in notes:
        if case is asker or case.specialty != asker.specialty:
            yield Pair(asker.id, case.id, model.chance(question, message, [s.text for s in case.sentences]))


def declined(found: Sequence[Pair], cut: float) -> tuple[float, float]:
    """The shares of true and of crossed pairs below the cut."""
    true = [p.chance < cut for p in found if p.asker == p.note]
    crossed = [p.chance < cut for p in found if p.asker != p.note]
    return sum(true) / len(true), sum(crossed) / len(crossed)


def print_curve(found: Sequence[Pair], own_cut: float) -> None:
    """Risk is the share of crossed pairs among those answered, as if both kinds were as many."""
    print("     cut  true declined  crossed declined  coverage   risk")
    for cut in CUTS:
        true, crossed = declined(found, cut)
        answered = (1 - true + 1 - crossed) / 2
        risk = (1 - crossed) / 2 / answered if answered else 0.0
        mark = "  <- the program's" if cut == own_cut else ""
        print(
            f"    {cut:4.2f}{100 * true:13.1f} %{100 * crossed:16.1f} %{100 * answered:8.1f} %{100 * risk:5.1f} %{mark}"
        )


def main() -> None:
    dev, test = read_cases("sample/dev"), read_cases("sample/test")
    model = fit_answerable(dev)
    without = {case.id: fit_answerable([c for c in dev if c is not case]) for case in dev}
    for kind, cut in KINDS.items():
        print(f"asked as {kind}")
        print("  sample/dev, each question by a model fitted without it and its note")
        print_curve([p for case in dev for p in pairs(case, kind, dev, without[case.id])], cut)
        print("  sample/test, by the model fitted on sample/dev")
        print_curve([p for case in test for p in pairs(case, kind, test, model)], cut)


if __name__ == "__main__":
    main()
