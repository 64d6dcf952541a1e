"""A logistic regression as plain arrays, so that predicting needs no scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Part(BaseModel):
    """A part of a file of fitted models."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Logistic(Part):
    """A logistic regression on standardised features: `weights` are log-odds per standard deviation (`scale`) from the
    `mean`, so that their sizes can be compared."""

    names: tuple[str, ...]
    mean: tuple[Number, ...]
    scale: tuple[Positive, ...]
    weights: tuple[Number, ...]
    intercept: Number

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not len(self.names) == len(self.mean) == len(self.scale) == len(self.weights) > 0:
            raise ValueError("names, mean, scale and weights are not of one length")
        return self

    def odds(self, rows: Matrix, columns: Sequence[str]) -> Matrix:
        """One log-odds a row; `columns` names those of `rows`."""
        import numpy as np

        if self.names != tuple(columns):
            rows = rows[:, [columns.index(name) for name in self.names]]
        found: Matrix = (rows - np.array(self.mean)) / np.array(self.scale) @ np.array(self.weights) + self.intercept
        return found

    def check_names(self, known: Sequence[str]) -> None:
        """Raises ValueError for weights of features that are not among `known`, or come twice."""
        if strange := set(self.names) - set(known):
            raise ValueError(f"weighs {len(strange)} features that this version does not have")
        if len(set(self.names)) < len(self.names):
            raise ValueError("weighs a feature twice")
