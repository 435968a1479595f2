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
    """A key of a table, and what the documentation says of it."""

    name: str
    value: str
    default: str


def keys_of(kind: type[Object]) -> tuple[Key, ...]:
    """The keys that set the options of a struct."""
    return tuple(Key(one.key, one.about, one.default_text or _written(one.default)) for one in declared(kind))


def _written(default: object) -> str:
    """A default as it would be written in a file."""
    if isinstance(default, bool | str):
        return f"`{str(default).lower()}`" if isinstance(default, bool) else f'`"{default}"`'
    return f"{default:g}" if isinstance(default, int | float) else "none"


def _nothing(asked: Any) -> Iterable[tuple[int, str]]:  # noqa: ANN401 - any type that the kind reads
    return ()


@dataclass(frozen=True)
class Table:
    """The table is called as its kind.

    `read` takes it, its keys known, with the document that can say where something stands and what the file
    asks for besides; what it returns is the experiment's `asked` of this kind. It raises `InputError`.
    `counted` says how many of what that is, for `validate`.
    """

    keys: tuple[Key, ...]
    read: Callable[[Document, Mapping[str, Any], Experiment], Any]
    counted: Callable[[Any], Iterable[tuple[int, str]]] = _nothing
