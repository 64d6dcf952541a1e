"""Connected to a Ray cluster, or to a Ray of our own on this machine, and sure that every node has this archehr."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from archehr.data.case import DataError
from archehr.program.lm.policy import local_only_asked

OBJECT_STORE = 200 * 2**20  # bytes, of a Ray of our own: only the blocks in flight are in it
PATIENCE = 5.0  # seconds to reach a cluster's address; Ray itself tries for ten minutes
ALIKE = ("archehr-dspy", "dspy")  # what must have the same version everywhere


@dataclass(frozen=True)
class Cluster:
    """What is connected to: how many CPUs and nodes there are, and how to place something on the driver's own node."""

    cpus: int
    nodes: int
    here: NodeAffinitySchedulingStrategy


@contextmanager
def connected(address: str | None, local_only: bool, tell: Callable[[str], None]) -> Iterator[Cluster]:
    """The cluster at `address`, else at $RAY_ADDRESS, else one of our own that ends with this. A Ray that the caller
    has connected to is used, and left as it is.

    Raises DataError where there is none, where a node has no archehr or another version, and, with `local_only`, where
    a node is another machine.
    """
    ours = not ray.is_initialized()
    address = address_of(address)
    if ours:
        _connect(address)
    try:
        nodes = [node for node in ray.nodes() if node["Alive"]]
        elsewhere = {node["NodeManagerAddress"] for node in nodes} - {ray.util.get_node_ip_address()}
        if elsewhere and (local_only or local_only_asked(None)):
            raise DataError("--local-only: the Ray cluster has other machines than this one; leave --ray-address out")
        if address != "local":
            _check_nodes(nodes)
        if elsewhere:
            tell(f"note text goes to {len(elsewhere)} other machines of the Ray cluster")
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        yield Cluster(max(1, int(ray.cluster_resources().get("CPU", 1))), len(nodes), here)
    finally:
        if ours:
            ray.shutdown()


def _connect(address: str) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address == "local":
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would send statistics off this machine
    try:
        with _signals_kept(), _hushed():
            ray.init(address=address, **options)
    except (ConnectionError, TimeoutError, RuntimeError, ValueError, OSError) as error:
        said = " ".join(str(error).split())[:200]
        remedy = "" if address == "local" else "; if it asks for a token, export RAY_AUTH_MODE=token"
        raise DataError(f"--ray-address {address}: no Ray cluster that can be used ({said}){remedy}") from None


def address_of(asked: str | None) -> str:
    """The address asked for, else $RAY_ADDRESS, else "local". Raises DataError where nobody answers at it."""
    address = asked or os.environ.get("RAY_ADDRESS") or "local"
    if address in ("local", "auto"):
        return address
    if "://" in address:
        raise DataError(f"--ray-address {address}: give HOST:PORT, or auto on a node of the cluster")
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except (OSError, ValueError, OverflowError):
        raise DataError(
            f"--ray-address {address}: no Ray cluster answers there; start one with `ray start --head --port=6379`, "
            "or leave the option out for this machine alone"
        ) from None
    return address


@contextmanager
def _hushed() -> Iterator[None]:
    """Ray's core says on the standard error what it thinks of its own actors, and then that it was told not to."""
    if "RAY_BACKEND_LOG_LEVEL" in os.environ:
        yield
        return
    os.environ["RAY_BACKEND_LOG_LEVEL"] = "fatal"
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray takes over SIGTERM, which is to end a run as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


def _check_nodes(nodes: list[dict[str, Any]]) -> None:
    """Raise DataError for the first node that would not answer as this one does."""

    def installed(names: tuple[str, ...]) -> dict[str, str]:
        # Pickled by value, for it must run where archehr is not installed.
        from importlib.metadata import PackageNotFoundError, version

        found = {}
        for name in names:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = ""
        return found

    on_node = ray.remote(num_cpus=0, max_retries=1)(installed)
    asked = {
        node["NodeManagerAddress"]: on_node.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote(ALIKE)
        for node in nodes
    }
    for address, ref in asked.items():
        check_versions(address, ray.get(ref))


def check_versions(node: str, there: dict[str, str]) -> None:
    """Raise DataError unless a node has the versions of this machine."""
    for name in ALIKE:
        here = version(name)
        if there[name] != here:
            found = f"has {name} {there[name]}, here is {here}" if there[name] else f"has no {name}"
            raise DataError(f"Ray node {node} {found}; install the same on every node: pip install {name}=={here}")
