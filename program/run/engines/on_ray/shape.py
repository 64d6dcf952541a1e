"""Shape: how many actors a run has, how many cases each answers at once, and how many go to it in a block."""

from __future__ import annotations

from dataclasses import dataclass

CASES = 8  # in a block where no LM is asked: handing out a block costs about as much as half a case
CALLS = 8  # that wait for an LM in one actor
BLOCKS_AT_ONCE = 256  # that one driver hands out easily; an LM's blocks grow where there would be more
# Of a core, as Ray counts an actor: there must be room for those of a node that is lost, on the nodes that are left.
SHARE, WAITING_SHARE = 0.5, 0.1


@dataclass(frozen=True)
class Shape:
    """`calls` run at once in each of `actors`, each with a block of `cases`, which are answered together where they
    wait for an LM; `share` is what Ray sets aside of a core for an actor."""

    actors: int
    calls: int
    cases: int
    share: float

    @classmethod
    def of(cls, workers: int, asks_lm: bool, cpus: int, nodes: int) -> Shape:
        """For `workers` cases at once: an actor a core where no LM is asked, else few actors whose threads wait."""
        if not asks_lm:
            return cls(min(workers, cpus), 1, CASES, SHARE)
        actors = min(workers, cpus, max(nodes, -(-workers // CALLS)))
        cases = min(1 + workers // BLOCKS_AT_ONCE, -(-workers // actors))
        return cls(actors, -(-workers // (actors * cases)), cases, WAITING_SHARE)

    @property
    def workers(self) -> int:
        """Cases that may be answered at once: as many as asked for, or a few more."""
        return self.actors * self.calls * self.cases

    @property
    def ahead(self) -> int:
        """Blocks that are out at once: what the actors work on, and as many that wait at them."""
        return 2 * self.actors * self.calls + 2
