"""OPTIMIZERS: the optimisers there are, by name: ours, and those of the entry point group archehr.optimizers."""

from __future__ import annotations

from archehr.data import plugins
from archehr.data.case import DataError
from archehr.optimize.optimizers.bootstrap import Bootstrap
from archehr.optimize.optimizers.gold import Labeled, Random
from archehr.optimize.optimizers.instructions import Gepa, Mipro
from archehr.optimize.optimizers.optimizer import Optimizer

GROUP = "archehr.optimizers"
OPTIMIZERS: dict[str, Optimizer] = {
    "labeled": Labeled(),
    "random": Random(),
    "bootstrap": Bootstrap(),
    "mipro": Mipro(),
    "gepa": Gepa(),
}


def add_optimizer(name: str, optimizer: Optimizer) -> None:
    """Let `--optimizer NAME` mean `optimizer`. Raises DataError for a name that is taken."""
    if name in OPTIMIZERS:
        raise DataError(f"optimizer {name}: the name is taken")
    OPTIMIZERS[name] = optimizer


def optimizer_of(name: str) -> Optimizer:
    """The optimiser of that name. Raises DataError, naming those there are, for a name that is none."""
    if name not in OPTIMIZERS:
        _add_those_of_other_packages()
    if name not in OPTIMIZERS:
        raise DataError(f"--optimizer {name}: there are {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[name]


def _add_those_of_other_packages() -> None:
    for point, optimizer in plugins.added(GROUP, Optimizer):  # type: ignore[type-abstract]
        OPTIMIZERS.setdefault(point.name, optimizer)
