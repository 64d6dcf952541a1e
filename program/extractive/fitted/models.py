"""The two fitted models, which note sentences are evidence and which support an answer sentence, as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from archehr.program.extractive.asked.match import Asked
from archehr.program.extractive.fitted.features import NAMES, concept_vectors, sentence_features, shared_concepts
from archehr.program.extractive.fitted.logistic import Logistic, Number, Part, Positive
from archehr.program.extractive.fitted.odds import bounded, chance, settled, surplus
from archehr.program.extractive.fitted.pairs import PAIR_NAMES, pair_features

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

Share = Annotated[float, Field(gt=0, lt=1)]


class EvidenceModel(Part):
    """Chance of each note sentence to be essential.

    `usual` sentences are, in a short note at most `usual_share` of them. What a sentence shares with the likely ones
    beyond `concepts_mean` counts `concepts_weight` log-odds. `edges` are the chances at which scores 2, 3, 4 and 5
    begin; 4 is the decision.

    So it is of a long message, which tells a story that the course of the stay explains. A short one asks one thing:
    then few are usual, and it counts how much a sentence speaks of that (`Asked`), whatever the model."""

    logistic: Logistic
    usual: Positive = 6.0
    usual_share: Share = 0.3
    concepts_weight: Number = 4.0
    concepts_mean: Number = 0.1
    edges: tuple[Share, Share, Share, Share] = (0.08, 0.18, 0.3, 0.6)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.logistic.check_names(NAMES)
        if list(self.edges) != sorted(self.edges):
            raise ValueError("edges are not in ascending order")
        return self

    def chances(self, question: str, narrative: str, texts: Sequence[str]) -> list[float]:
        """One chance a sentence; at least one sentence."""
        rows, concepts = sentence_features(question, narrative, texts), concept_vectors(texts)
        found: list[float] = self.judge(rows, concepts, Asked.of(question, narrative, texts)).tolist()
        return found

    def judge(self, rows: Matrix, concepts: Sequence[dict[str, float]], asked: Asked) -> Matrix:
        """The chances by `sentence_features`, `concept_vectors` and what is asked of one note. The case as a whole has
        its say: how many are usual, what they share."""
        odds = bounded(self.logistic.odds(rows, NAMES))
        usual = min(self.usual, self.usual_share * len(odds))
        if asked.alone:
            usual = min(asked.usual, usual) ** asked.alone * usual ** (1 - asked.alone)
            return chance(settled(odds + asked.log_odds, usual))
        odds = odds - surplus(odds, usual)
        if self.concepts_weight:
            odds = odds + self.concepts_weight * (shared_concepts(concepts, chance(odds)) - self.concepts_mean)
        return chance(odds)

    def score(self, chance: float) -> int:
        """Chance of being essential -> 1..5."""
        return 1 + sum(chance >= edge for edge in self.edges)


class AlignmentModel(Part):
    """Chance of each note sentence to support each answer sentence.

    An answer sentence has `usual` links on average, fewer in a note where that is more than `usual_share`; one that
    expects more or fewer is drawn to that number by `pull` (0..1). What reaches `cut` is a link."""

    logistic: Logistic
    usual: Positive = 1.7
    usual_share: Share = 0.08
    pull: Annotated[float, Field(ge=0, le=1)] = 0.5
    cut: Share = 0.32

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.logistic.check_names(PAIR_NAMES)
        return self

    def chances(self, answers: Sequence[str], notes: Sequence[str], question: str) -> list[list[float]]:
        """One row an answer sentence, one chance a note sentence; at least one of each."""
        found: list[list[float]] = self.judge(pair_features(answers, notes, question), len(answers)).tolist()
        return found

    def judge(self, rows: Matrix, answers: int) -> Matrix:
        """(answers, notes) chances by the `pair_features` of one case."""
        import numpy as np

        odds = bounded(self.logistic.odds(rows, PAIR_NAMES)).reshape(answers, -1)
        usual = min(self.usual, self.usual_share * odds.shape[1])
        return np.array([chance(row - self.pull * surplus(row, usual)) for row in odds])
