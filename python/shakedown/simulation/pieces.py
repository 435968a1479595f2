"""One fleet divided into pieces that are simulated independently and merged exactly: its replications, and
within a replication the parts that share no servers, clients or cells.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from shakedown.native import virtual_time

T = TypeVar("T")

Work = Generator[Sequence[Callable[[], Any]], list[Any], T]
"""Yields independent jobs, is sent their results in the same order, and returns the result of all."""

_LOG = logging.getLogger(__name__)


class Pool(Protocol):
    """Runs the jobs of works; `shakedown.experiments.cluster` implements it."""

    def threads(self) -> int:
        """The number of jobs that run at the same time."""

    def is_here(self) -> bool:
        """Whether the jobs share this machine's memory."""

    def results(self, works: Iterable[Work[T]]) -> Iterator[T]:
        """The result of each work, in order."""


def in_pieces(spec: Mapping[str, Any], label: str, threads: int) -> Work[dict[str, Any]]:
    """A simulation as a work for ``threads`` threads; the report is identical to that of one process.

    Raises `InputError` at once for an invalid scenario.
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
