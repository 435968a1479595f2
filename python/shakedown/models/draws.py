"""Handshakes drawn from a bearer's delays, evenly: one from each stratum, in an order of its own for each
packet (Latin hypercube).

The orders are the same for every bearer, so that what is drawn for two bearers differs by the bearers alone.
Source: M. D. McKay, R. J. Beckman and W. J. Conover, "A Comparison of Three Methods for Selecting Values of
Input Variables in the Analysis of Output from a Computer Code", Technometrics 21(2), 1979.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shakedown.models.distribution import Distribution
from shakedown.models.path import Path

_CLOCK = ("clock", 0)
_SLOTS = 64  # of a level of the timer wheel
_COARSEST = 4096  # ticks: of a slot for the longest timers of TCP


Packet = tuple[str, int]
"""What a packet is in its direction: a kind and a number, the same whatever else a draw makes happen."""


@lru_cache(maxsize=4096)
def _order(count: int, side: str, packet: Packet) -> list[int]:
    """An order of so many strata."""
    order = list(range(count))
    random.Random(f"{side} {packet[0]} {packet[1]}").shuffle(order)
    return order


@lru_cache(maxsize=256)
def _strata(delay: Distribution, count: int) -> list[float]:
    """The mean of each of so many equally likely parts of a distribution, in rising order."""
    shares = np.concatenate([[0.0], np.cumsum(delay.weights)])
    sums = np.concatenate([[0.0], np.cumsum(delay.weights * delay.values_s)])
    ends = np.interp(np.linspace(0.0, float(shares[-1]), count + 1), shares, sums)
    means: list[float] = (np.diff(ends) * (count / float(shares[-1]))).tolist()
    return means


@dataclass(frozen=True, slots=True)
class Draw:
    """One handshake of several.

    Attributes:
        number, count: which of how many.
        delays_s: each side's packets' delays, in rising order.
    """

    number: int
    count: int
    delays_s: Mapping[str, Sequence[float]]

    def delay_s(self, side: str, packet: Packet) -> float:
        """The delay that a packet of a side draws."""
        return self.delays_s[side][_order(self.count, side, packet)[self.number]]

    def fires_s(self, side: str, now_s: float, wait_s: float, tick_s: float) -> float:
        """When a timer of a side fires: at the end of a slot of its wheel (``kernel/time/timer.c``), as the
        side's clock has it.
        """
        if tick_s <= 0.0:
            return now_s + wait_s
        phase = (_order(self.count, side, _CLOCK)[self.number] + 0.5) / self.count * _COARSEST
        ticks = math.ceil(wait_s / tick_s - 1e-9)
        slot, reach = 1, _SLOTS
        while ticks >= reach:
            slot, reach = slot * 8, reach * 8
        expires = math.floor(now_s / tick_s + phase) + ticks
        return max(now_s, ((expires // slot + 1) * slot - phase) * tick_s)


def draws(path: Path, count: int) -> list[Draw]:
    """So many handshakes over a path, each as likely as any other."""
    delays_s = {
        "client": _strata(path.up.delay, count),
        "server": _strata(path.down.delay, count),
    }
    return [Draw(number, count, delays_s) for number in range(count)]


class Extreme(Draw):
    """A handshake in which a timer fires if ever one does: each side has one delay while the connection is
    set up and another after, and timers are never late.
    """

    __slots__ = ()

    def delay_s(self, side: str, packet: Packet) -> float:
        """The delay that a packet of a side draws."""
        return self.delays_s[side][packet[0] != "SYN"]

    def fires_s(self, side: str, now_s: float, wait_s: float, tick_s: float) -> float:
        """When a timer fires."""
        return now_s + wait_s


def extremes(path: Path) -> list[Extreme]:
    """Handshakes in which later delays are longer than those that timers were set by: all of them rather
    longer, or those of one direction much.
    """
    up, down = path.up.delay, path.down.delay
    shares = [((0.1, 0.9), (0.1, 0.9)), ((0.5, 0.995), (0.5, 0.5)), ((0.5, 0.5), (0.5, 0.995))]
    return [
        Extreme(
            0,
            1,
            {"client": [up.quantile(one) for one in ups], "server": [down.quantile(one) for one in downs]},
        )
        for ups, downs in shares
    ]
