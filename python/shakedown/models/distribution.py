"""Distributions of times as weighted points, with sums, mixtures, means and quantiles.

Sums and mixtures are exact, except that points are merged if they are closer together than 0.2 % of their
distance to the smallest point; merging keeps the mean. Times are seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from shakedown.models.arrays import Floats, Numbers, distinct, floats

RESOLUTION = 2e-3
"""Distance below which points are merged, relative to their distance to the smallest point."""

_NEAR = 0.05  # share of the mean distance to the smallest point; below it, the resolution is absolute
_MAX_SUMS = 1_000_000  # pairs of points in one sum; more take seconds, and there are hundreds of sums
_MIN_WEIGHT = 1e-12  # less probable points are dropped
# Cumulative probabilities at which a continuous distribution is cut into points, finer in the upper tail.
_CUTS = np.concatenate(
    [
        np.linspace(0.0, 0.9, 46)[:-1],
        np.linspace(0.9, 0.99, 31)[:-1],
        np.linspace(0.99, 0.999, 19)[:-1],
        [0.999, 0.9995, 0.9999, 1.0],
    ]
)


@dataclass(frozen=True, eq=False)
class Distribution:
    """Points in ascending order and their probabilities, which sum to 1.

    Attributes:
        values_s: shape ``(points,)``, seconds.
        weights: their probabilities, same shape.
    """

    values_s: Floats
    weights: Floats

    @staticmethod
    def exactly(value_s: float) -> Distribution:
        return Distribution(np.array([value_s]), np.array([1.0]))

    @staticmethod
    def of_samples(values_s: Numbers, weights: Numbers | None = None) -> Distribution:
        """Measured values, equally likely unless weighted.

        Raises:
            ValueError: without values, or with weights that are negative or sum to zero.
        """
        values = floats(values_s).ravel()
        shares = np.ones(len(values)) if weights is None else floats(weights).ravel()
        if not len(values) or np.any(shares < 0.0) or not shares.sum() > 0.0:
            raise ValueError("no values with a probability above 0")
        return _merged(values, shares / shares.sum())

    @staticmethod
    def normal(mean_s: float, sd_s: float) -> Distribution:
        """A normal distribution; if the mean is not negative, negative values become 0."""
        if sd_s <= 0.0:
            return Distribution.exactly(mean_s)
        z, shares = _normal_points()
        values = mean_s + sd_s * z
        return _merged(np.maximum(values, 0.0) if mean_s >= 0.0 else values, shares)

    @staticmethod
    def lognormal(minimum_s: float, median_s: float, sigma: float) -> Distribution:
        """A minimum plus a lognormal excess. ``median_s`` is the median of the sum, ``sigma`` the standard
        deviation of the excess's logarithm.
        """
        if median_s <= minimum_s or sigma <= 0.0:
            return Distribution.exactly(median_s)
        # Mean excess between two cuts, from partial expectations: E[X; X < x] = e^(s²/2) Φ(z - s).
        below = np.array([_standard_normal(z - sigma) for z in _normal_cuts()])
        shares = np.diff(_CUTS)
        excess = math.exp(sigma * sigma / 2.0) * np.diff(below) / shares
        return Distribution(minimum_s + (median_s - minimum_s) * excess, shares)

    @staticmethod
    def of_quantiles(points: Iterable[tuple[float, float]]) -> Distribution:
        """Quantiles as (cumulative probability, seconds), from 0 to 1, with linear interpolation."""
        shares, values = (np.array(column) for column in zip(*points, strict=True))
        cuts = distinct(np.concatenate([_CUTS, shares]))
        ends = np.interp(cuts, shares, values)
        return _merged((ends[1:] + ends[:-1]) / 2.0, np.diff(cuts))

    @cached_property
    def mean(self) -> float:
        return _sum_of_products(self.values_s, self.weights)

    @cached_property
    def sd(self) -> float:
        return math.sqrt(_sum_of_products((self.values_s - self.mean) ** 2, self.weights))

    @cached_property
    def _cumulative(self) -> Floats:
        total = np.cumsum(self.weights)
        return np.asarray(total / total[-1])

    def quantile(self, share: float) -> float:
        """The smallest value that is not exceeded with probability ``share``."""
        index = int(np.searchsorted(self._cumulative, share * (1.0 - 1e-12)))
        return float(self.values_s[min(index, len(self.values_s) - 1)])

    @property
    def p50(self) -> float:
        return self.quantile(0.5)

    @property
    def p95(self) -> float:
        return self.quantile(0.95)

    @property
    def p99(self) -> float:
        return self.quantile(0.99)

    def interval(self, share: float = 0.9) -> tuple[float, float]:
        """The central interval that contains ``share`` of the probability."""
        return self.quantile((1.0 - share) / 2.0), self.quantile((1.0 + share) / 2.0)

    def probability_within(self, limit_s: float) -> float:
        return float(self.weights[self.values_s <= limit_s].sum() / self.weights.sum())

    def plus(self, other: Distribution) -> Distribution:
        """The sum of two independent times."""
        if len(self.values_s) == 1 or len(other.values_s) == 1:
            one, many = (self, other) if len(self.values_s) == 1 else (other, self)
            return many.shifted(float(one.values_s[0]))
        one, two = self, other
        if len(one.values_s) * len(two.values_s) > _MAX_SUMS:
            one, two = (one.compact, two) if len(one.values_s) < len(two.values_s) else (one, two.compact)
        values = np.add.outer(one.values_s, two.values_s).ravel()
        weights = np.multiply.outer(one.weights, two.weights).ravel()
        return _merged(values, weights)

    @cached_property
    def compact(self) -> Distribution:
        """This distribution in about a hundred points, finer towards the upper tail; the mean is kept."""
        if len(self.values_s) <= len(_CUTS):
            return self
        middles = self._cumulative - self.weights / (2.0 * self.weights.sum())
        cells = np.searchsorted(_CUTS, middles, side="right")
        return _together(cells, self.values_s, self.weights)

    def at_least(self, other: Distribution) -> Distribution:
        """This time if no quantile is below that of another; else the larger quantile at each probability."""
        shares = distinct(np.concatenate([self._cumulative, other._cumulative]))
        mine, theirs = (
            one.values_s[
                np.searchsorted(one._cumulative, shares * (1.0 - 1e-12)).clip(max=len(one.values_s) - 1)
            ]
            for one in (self, other)
        )
        if np.all(mine >= theirs):
            return self
        return _merged(np.maximum(mine, theirs), np.diff(shares, prepend=0.0))

    def shifted(self, by_s: float) -> Distribution:
        return self if by_s == 0.0 else Distribution(self.values_s + by_s, self.weights)


def _sum_of_products(values: Floats, weights: Floats) -> float:
    """The scalar product, equal on every machine. A linear algebra library would use several threads, which
    cost more than they save, and whose number affects the rounding.
    """
    return float((values * weights).sum())


def _merged(values: Floats, weights: Floats) -> Distribution:
    """Points in order; points closer together than the resolution are merged at their mean."""
    if weights.min() <= _MIN_WEIGHT:
        kept = weights > _MIN_WEIGHT
        weights = weights[kept] * (weights.sum() / weights[kept].sum())
        values = values[kept]
    least = float(values.min())
    scale = _NEAR * (_sum_of_products(values, weights) / float(weights.sum()) - least)
    if scale <= 1e-12 * max(abs(least), 1e-9):
        return Distribution(np.array([least]), np.array([float(weights.sum())]))
    cells = np.rint(np.arcsinh((values - least) / scale) / RESOLUTION).astype(np.int64)
    return _together(cells, values, weights)


def _together(cells: npt.NDArray[np.int64], values: Floats, weights: Floats) -> Distribution:
    """One point per cell, at the mean of its points."""
    mass: Floats = np.bincount(cells, weights).astype(np.float64)
    moment: Floats = np.bincount(cells, weights * values).astype(np.float64)
    filled = mass > 0.0
    return Distribution(moment[filled] / mass[filled], mass[filled])


def _standard_normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def _normal_cuts() -> list[float]:
    inverse = NormalDist().inv_cdf
    return [-math.inf, *(inverse(float(share)) for share in _CUTS[1:-1]), math.inf]


def _normal_points() -> tuple[Floats, Floats]:
    """Means of a standard normal variate between the cuts, (φ(a) - φ(b)) / share, and the shares."""
    density = np.array([math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi) for z in _normal_cuts()])
    shares = np.diff(_CUTS)
    return -np.diff(density) / shares, shares
