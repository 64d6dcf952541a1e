"""Flags that several commands share: a dataclass of options, of which each field is a flag."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Annotated, Any, get_type_hints

import typer


def option(default: Any, help: str, env: str | None = None, *, shapes: bool = False) -> Any:
    """A field of such a dataclass: its default, help and environment variable, and whether it shapes answers."""
    return field(default=default, metadata={"help": help, "env": env, "shapes": shapes})


def with_options(command: Callable[..., Any], record: type[Any], keyword: str) -> Callable[..., Any]:
    """A command with a flag for every field of a dataclass of options, which it receives as `keyword`.

    A field that the command has as a parameter of its own (`lm`, where it takes several) stays the command's.
    """
    hints, kinds = get_type_hints(command, include_extras=True), get_type_hints(record)
    own = [p.replace(annotation=hints[n]) for n, p in inspect.signature(command).parameters.items() if n != keyword]
    shared = []
    taken = [f for f in fields(record) if f.name not in hints]
    for f in taken:
        option = typer.Option(help=f.metadata["help"], envvar=f.metadata["env"])
        flag: Any = Annotated[kinds[f.name], option]
        shared.append(inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=flag))

    @functools.wraps(command)
    def wrapper(**given: Any) -> Any:
        options = record(**{f.name: given.pop(f.name) for f in taken})
        return command(**given, **{keyword: options})

    wrapper.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in (*own, *shared)}
    return wrapper


def in_a_name(given: Mapping[str, Any]) -> str | None:
    """What was asked for (None and False were not), for the name of a folder: "cut-4-no-abstain"."""
    words = {name.replace("_", "-"): value for name, value in given.items() if value is not None and value is not False}
    return "-".join(name if value is True else f"{name}-{value}" for name, value in words.items()) or None
