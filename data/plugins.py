"""What other packages add to archehr: the objects that they name under its entry point groups."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from archehr.data.case import DataError

T = TypeVar("T")


def added(group: str, kind: type[T]) -> Iterator[tuple[EntryPoint, T]]:
    """The entry points of `group`, by name, with what each holds. Raises DataError for one that cannot be loaded or
    is no `kind`, naming the package."""
    for point in sorted(entry_points(group=group)):
        entry = load(point)
        if not isinstance(entry, kind):
            raise DataError(f"{told(point)}: is no {kind.__module__}.{kind.__name__}; mend or uninstall it")
        yield point, entry


def load(point: EntryPoint) -> Any:
    """What the entry point names. Raises DataError."""
    try:
        return point.load()
    except Exception as error:  # the import runs another package's code
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{told(point)}: cannot be loaded ({reason}); mend or uninstall it") from error


def told(point: EntryPoint) -> str:
    """The entry point as an error names it."""
    package = f" of the package {point.dist.name}" if point.dist else ""
    return f"{point.group} {point.name} ({point.value}){package}"
