"""One fleet cut into pieces that are simulated anywhere and merged exactly: replications, and of each the
parts whose servers, clients and cells meet no others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from shakedown.native import virtual_time

T = TypeVar("T")

Work = Generator[Sequence[Callable[[], Any]], list[Any], T]
"""Yields jobs that do not depend on each other, is sent what they return, in their order; in the end returns
what that comes to.
"""

_LOG = logging.getLogger(__name__)


class Pool(Protocol):
    """Where works are done: `shakedown.experiments.cluster` has one."""

    def threads(self) -> int:
        """How many jobs are done at once."""

    def is_here(self) -> bool:
        """Whether they share this machine's memory."""

    def results(self, works: Iterable[Work[T]]) -> Iterator[T]:
        """What each work returns, in order."""


def in_pieces(spec: Mapping[str, Any], label: str, threads: int) -> Work[dict[str, Any]]:
    """A simulation as a work for so many threads: its report is that of one run of all, byte for byte.

    Raises `InputError` at once for a scenario that cannot be.
    """
    text = virtual_time.spec_text(spec)
    _, replications, of = virtual_time.pieces(text, threads)
    if replications * of == 1 < threads:
        why = "one replication, whose clients share all servers"
        _LOG.warning("%s is simulated in one process: %s", label, why)
    return _rounds(text, threads)


def _rounds(text: str, threads: int) -> Work[dict[str, Any]]:
    spent = 0
    while True:
        first, replications, of = virtual_time.pieces(text, threads)
        pieces = [
            (replication, None if of == 1 else (part, of))
            for replication in range(first, first + replications)
            for part in range(of)
        ]
        found = yield [partial(virtual_time.piece, text, *piece) for piece in pieces]
        report, outcome = virtual_time.merged(found)
        spent += report["events"]
        longer = virtual_time.longer(text, outcome, spent)
        if longer is None:
            return report
        text = longer
