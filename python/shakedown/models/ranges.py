"""Figures with ranges: how they add, scale and compare.

A `Range` is a figure with the ends of its 90 % range. Each source of uncertainty has a name (a scaled ratio,
an assumed overhead). Errors of parts with the same name are fully correlated, errors of parts with different
names are independent; `combined` and `ratio` use this rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

NORMAL_90 = 1.645
"""Half of a normal variable's 90 % range, in standard deviations."""


class Range(NamedTuple):
    """A figure with the ends of its 90 % range."""

    low: float
    mean: float
    high: float

    def plus(self, other: Range) -> Range:
        """Sum of two figures with fully correlated errors: low, mean and high ends are added."""
        return Range(self.low + other.low, self.mean + other.mean, self.high + other.high)

    def times(self, factor: float) -> Range:
        """The figure times a non-negative factor."""
        return Range(self.low * factor, self.mean * factor, self.high * factor)

    def scaled(self, factor: float, spread: float) -> Range:
        """The figure times a factor that has an independent uncertainty of ×/÷ ``spread``."""
        if self.low <= 0.0:
            return self.times(factor).widened(spread)
        apart = math.log(spread)
        down, up = math.log(self.mean / self.low), math.log(self.high / self.mean)
        mean = self.mean * factor
        return Range(mean * math.exp(-math.hypot(down, apart)), mean, mean * math.exp(math.hypot(up, apart)))

    def widened(self, factor: float) -> Range:
        """The figure with a range of at least ×/÷ ``factor`` around the mean."""
        return Range(min(self.low, self.mean / factor), self.mean, max(self.high, self.mean * factor))


def exactly(value: float) -> Range:
    """A figure without a range."""
    return Range(value, value, value)


def within(value: float, factor: float) -> Range:
    """A figure with an uncertainty of ×/÷ ``factor``."""
    return Range(value / factor, value, value * factor)


def merged(some: Iterable[Mapping[str, Range]]) -> dict[str, Range]:
    """Parts by cause; those of the same cause are added."""
    found: dict[str, Range] = {}
    for parts in some:
        for cause, part in parts.items():
            found[cause] = found[cause].plus(part) if cause in found else part
    return found


def combined(parts: Mapping[str, Range]) -> Range:
    """Sum of independent parts: half-ranges are added in quadrature, separately below and above the mean.

    The low end is at least the sum of the parts' low ends.
    """
    mean = math.fsum(part.mean for part in parts.values())
    down = math.sqrt(math.fsum((part.mean - part.low) ** 2 for part in parts.values()))
    up = math.sqrt(math.fsum((part.high - part.mean) ** 2 for part in parts.values()))
    floor = math.fsum(part.low for part in parts.values())
    return Range(max(mean - down, floor), mean, mean + up)


def ratio(one: Mapping[str, Range], other: Mapping[str, Range]) -> Range:
    """Ratio of two sums; parts with the same name have the same error in both.

    For each name, its parts are moved to their ends while all others stay at their means; the changes of the
    ratio's logarithm are added in quadrature.
    """
    mine, theirs = (math.fsum(part.mean for part in parts.values()) for parts in (one, other))
    if mine <= 0.0 or theirs <= 0.0:
        raise ValueError(f"sums are {mine} and {theirs}; accepted: above 0")
    middle = mine / theirs
    down = up = 0.0
    for name in {**one, **other}:
        a, b = one.get(name, exactly(0.0)), other.get(name, exactly(0.0))
        steps = [
            math.log(max(mine - a.mean + x, 1e-300) / max(theirs - b.mean + y, 1e-300) / middle)
            for x, y in ((a.low, b.low), (a.high, b.high))
        ]
        down += min(0.0, *steps) ** 2
        up += max(0.0, *steps) ** 2
    return Range(middle * math.exp(-math.sqrt(down)), middle, middle * math.exp(math.sqrt(up)))
