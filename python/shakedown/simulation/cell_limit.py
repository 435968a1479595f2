"""The highest handshake rate that cells can carry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from shakedown.prediction.scenario import Scenario as Estimate
from shakedown.schema.profiles import Aloha, Cell, Circuits, RandomAccess
from shakedown.simulation.spec import shared_cell


@dataclass(frozen=True)
class CellLimit:
    """An upper bound of the rate that cells carry; `of` is the exhausted resource."""

    rate_per_s: float
    of: Literal["airtime", "circuits", "random access"]


def cell_limit(one: Estimate, cells: int) -> CellLimit | None:
    """The smallest of the bounds by airtime, circuits and random access; None if none is known.

    Contention and retransmissions are ignored, so cells carry less. Raises `InputError` if the bearer's
    profile has no table [cell].
    """
    cell = shared_cell(one.bearer, cells)
    found: list[CellLimit] = []
    if isinstance(cell.entry, Circuits):
        # A client keeps its channel until it is done, which takes at least the time without a queue.
        held_s = one.unloaded()[1].mean
        found.append(CellLimit(cells * cell.entry.channels / held_s, "circuits"))
    elif (busy_s := _airtime_s(one, cell)) > 0.0:
        found.append(CellLimit(cells / busy_s, "airtime"))
    if isinstance(cell.entry, RandomAccess) and one.from_idle:
        found.append(CellLimit(cells * admitted(cell.entry) / cell.entry.opportunity_s, "random access"))
    return min(found, key=lambda limit: limit.rate_per_s, default=None)


def _airtime_s(one: Estimate, cell: Cell) -> float:
    """The airtime of a handshake's packets in a cell with a single client."""
    sent = one.link_bytes
    if sent is None:
        return 0.0
    up_s = 8.0 * sent.up / (cell.up_bits_per_s or one.bearer.up.rate_bits_per_s)
    down_s = 8.0 * sent.down / (cell.down_bits_per_s or one.bearer.down.rate_bits_per_s)
    channels = cell.contention.channels if isinstance(cell.contention, Aloha) else 1
    shares_time = cell.half_duplex or cell.contention is not None
    return (up_s + down_s if shares_time else max(up_s, down_s)) / channels


def admitted(entry: RandomAccess) -> float:
    """The most clients that gain access per opportunity, on average: preambles chosen by exactly one client.

    Of n clients on N preambles, n (1 - 1/N)^(n-1) are alone; the maximum is at n = N.
    """
    alone = entry.preambles * (1.0 - 1.0 / entry.preambles) ** (entry.preambles - 1)
    return min(alone, math.inf if entry.grants is None else float(entry.grants))
