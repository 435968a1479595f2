"""Ranges carried from inputs to answers: a low, a mean and a high value that add and scale together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Range(NamedTuple):
    """A figure with the least and greatest value that its sources allow."""

    low: float
    mean: float
    high: float

    def plus(self, other: Range) -> Range:
        """Sum of two figures, both at their low, mean or high end at once: no independence is assumed."""
        return Range(self.low + other.low, self.mean + other.mean, self.high + other.high)

    def times(self, factor: float) -> Range:
        """The figure times a factor that is not negative."""
        return Range(self.low * factor, self.mean * factor, self.high * factor)

    def widened(self, factor: float) -> Range:
        """The figure with its range at least × and ÷ ``factor`` about the mean."""
        return Range(min(self.low, self.mean / factor), self.mean, max(self.high, self.mean * factor))


def exactly(value: float) -> Range:
    """A figure without a range."""
    return Range(value, value, value)


def total(figures: Iterable[Range]) -> Range:
    """Sum of figures."""
    result = exactly(0.0)
    for figure in figures:
        result = result.plus(figure)
    return result
