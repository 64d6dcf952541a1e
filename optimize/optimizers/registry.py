"""OPTIMIZERS: the optimisers there are, by name; `add_optimizer` adds one."""

from __future__ import annotations

from archehr.data.case import DataError
from archehr.optimize.optimizers.bootstrap import Bootstrap
from archehr.optimize.optimizers.gold import Labeled, Random
from archehr.optimize.optimizers.instructions import Gepa, Mipro
from archehr.optimize.optimizers.optimizer import Optimizer

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
    """Raises DataError for a name that is none, with those that are."""
    if name not in OPTIMIZERS:
        raise DataError(f"--optimizer {name}: there are {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[name]
