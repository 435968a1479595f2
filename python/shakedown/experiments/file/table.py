"""A table of an experiment's file that one kind of figure reads, declared by the kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from shakedown.experiments.file.document import Document
from shakedown.experiments.file.experiment import Experiment
from shakedown.schema.base import Object
from shakedown.schema.options import declared


class Key(NamedTuple):
    """A key of a table, with its documentation."""

    name: str
    value: str
    default: str


def keys_of(kind: type[Object]) -> tuple[Key, ...]:
    """The keys that set the options of a struct."""
    return tuple(Key(one.key, one.about, one.default_text or _written(one.default)) for one in declared(kind))


def _written(default: object) -> str:
    """A default as it is written in a file."""
    if isinstance(default, bool | str):
        return f"`{str(default).lower()}`" if isinstance(default, bool) else f'`"{default}"`'
    return f"{default:g}" if isinstance(default, int | float) else "none"


def _nothing(content: Any) -> Iterable[tuple[int, str]]:  # noqa: ANN401 - any type that the kind reads
    return ()


@dataclass(frozen=True)
class Table:
    """The table of a kind, which has the kind's name.

    `read` converts a table with valid keys to this kind's entry in the experiment's `kind_tables`. Its other
    arguments are the document, for errors, and the rest of the experiment. It raises `InputError`. `counted`
    returns counts with their names, for `validate`.
    """

    keys: tuple[Key, ...]
    read: Callable[[Document, Mapping[str, Any], Experiment], Any]
    counted: Callable[[Any], Iterable[tuple[int, str]]] = _nothing
