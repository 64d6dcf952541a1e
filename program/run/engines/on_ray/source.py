"""Blocks: the Ray Data source of a run, whose one reader takes from the desk what the driver has put there.

Ray Data's own sources read files on the cluster or hold all rows in the object store before the first is answered. A
case stream lives in the driver and is read once, so the driver hands it out block by block, no more than the pool can
use; one long pipeline keeps one pool of actors alive, where windows of cases would start a pool each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow
import ray
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata


class Blocks(Datasource):
    """Rows {"block": number, "cases": a case a line}, a row a block, until the desk says that there are no more."""

    def __init__(self, desk: Any) -> None:
        super().__init__()
        self._desk = desk

    def estimate_inmemory_data_size(self) -> None:
        """Not known: it is a stream."""

    def get_read_tasks(self, parallelism: int, *limits: Any, **context: Any) -> list[ReadTask]:
        """One."""
        desk = self._desk

        def read() -> Iterator[pyarrow.Table]:
            for number in itertools.count():
                cases = ray.get(desk.block.remote(number))
                if cases is None:
                    return
                yield pyarrow.table({"block": [number], "cases": [cases]})

        unknown = BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)
        return [ReadTask(read, unknown)]
