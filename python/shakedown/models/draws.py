"""Handshakes drawn from a bearer's delays, evenly: one from each stratum, in an order of its own for each
packet (Latin hypercube).

The orders are the same for every bearer, so that what is drawn for two bearers differs by the bearers alone.
Source: M. D. McKay, R. J. Beckman and W. J. Conover, "A Comparison of Three Methods for Selecting Values of
Input Variables in the Analysis of Output from a Computer Code", Technometrics 21(2), 1979.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shakedown.models.distribution import Distribution
from shakedown.models.path import Path

_SLOTS = 64  # of a level of the timer wheel
_COARSEST = 4096  # ticks: of a slot for the longest timers of TCP


@lru_cache(maxsize=1024)
def _order(count: int, name: str) -> list[int]:
    """An order of so many strata."""
    order = list(range(count))
    random.Random(name).shuffle(order)
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
        up_s, down_s: each direction's delays, in rising order.
    """

    number: int
    count: int
    up_s: list[float]
    down_s: list[float]

    def up(self) -> Iterator[float]:
        """The delays from the client, one after another."""
        return self._delays("up", self.up_s)

    def down(self) -> Iterator[float]:
        """The delays to the client."""
        return self._delays("down", self.down_s)

    def _delays(self, name: str, values_s: list[float]) -> Iterator[float]:
        following = 0
        while True:
            yield values_s[_order(self.count, f"{name} {following}")[self.number]]
            following += 1

    def fires_s(self, side: str, now_s: float, wait_s: float, tick_s: float) -> float:
        """When a timer of a side fires: at the end of a slot of its wheel (``kernel/time/timer.c``), as the
        side's clock has it.
        """
        if tick_s <= 0.0:
            return now_s + wait_s
        phase = (_order(self.count, side)[self.number] + 0.5) / self.count * _COARSEST
        ticks = math.ceil(wait_s / tick_s - 1e-9)
        slot, reach = 1, _SLOTS
        while ticks >= reach:
            slot, reach = slot * 8, reach * 8
        expires = math.floor(now_s / tick_s + phase) + ticks
        return max(now_s, ((expires // slot + 1) * slot - phase) * tick_s)


def draws(path: Path, count: int) -> list[Draw]:
    """So many handshakes over a path, each as likely as any other."""
    up_s, down_s = (_strata(direction.delay, count) for direction in (path.up, path.down))
    return [Draw(number, count, up_s, down_s) for number in range(count)]
