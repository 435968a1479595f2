"""A table of an experiment's file that one kind of figure reads, declared by the kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from shakedown.experiments.file import Experiment
    from shakedown.experiments.file.document import Document


class Key(NamedTuple):
    """A key of a table, and what the documentation says of it."""

    name: str
    value: str
    default: str


def _nothing(asked: Any) -> Iterable[tuple[int, str]]:  # noqa: ANN401 - whatever the kind reads
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
