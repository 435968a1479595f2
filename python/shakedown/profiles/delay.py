"""A delay in a profile: its shape, as a file says it and as the models take it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from shakedown.profiles.tables import MAX_MS, Table

if TYPE_CHECKING:
    from shakedown.models.distribution import Distribution

_Z95 = 1.6448536269514722  # of the standard normal distribution
MAX_SIGMA = 10.0
"""Of the core's lognormal: the p95 is then 14 million times as far above the minimum as the median."""
_ACCEPTED = (
    "{ fixed = 35 }, { minimum = 30, median = 35, p95 = 60 }, { minimum = 0, maximum = 75 } "
    "or { quantiles = [[0, 30], [0.5, 35], [1, 400]] }"
)


@dataclass(frozen=True)
class DelayProfile:
    """A delay: always the same, even between two values, a minimum and a lognormal excess, or quantiles.

    Attributes:
        kind: ``constant``, ``uniform``, ``lognormal`` or ``quantiles``.
        minimum_s: least delay (the delay itself if constant).
        median_s, sigma: of a lognormal; the median is the whole's, sigma the excess's logarithm's.
        points: of quantiles and uniform, (share at or below, seconds).
    """

    kind: str
    minimum_s: float
    median_s: float = 0.0
    sigma: float = 0.0
    points: tuple[tuple[float, float], ...] = ()

    @staticmethod
    def constant(value_s: float) -> DelayProfile:
        """Always the same."""
        return DelayProfile("constant", value_s)

    @staticmethod
    def of_moments(mean_s: float, sd_s: float) -> DelayProfile:
        """A lognormal excess over a minimum of mean - 1.5 sd, or of 0, with this mean and deviation."""
        if sd_s <= 0.0:
            return DelayProfile.constant(mean_s)
        minimum_s = max(0.0, mean_s - 1.5 * sd_s)
        excess_s = mean_s - minimum_s
        variance = math.log1p((sd_s / excess_s) ** 2)
        return DelayProfile(
            "lognormal", minimum_s, minimum_s + excess_s * math.exp(-variance / 2.0), math.sqrt(variance)
        )

    def quantile_s(self, share: float) -> float:
        """The delay that is not exceeded with probability ``share``, as the profile states it; models take
        it from a lattice, within a hundredth.
        """
        if self.kind == "constant":
            return self.minimum_s
        if self.kind == "lognormal":
            score = NormalDist().inv_cdf(share)
            return self.minimum_s + (self.median_s - self.minimum_s) * math.exp(self.sigma * score)
        for (below, low_s), (above, high_s) in pairwise(self.points):
            if share <= above:
                return low_s + (high_s - low_s) * (share - below) / (above - below)
        return self.points[-1][1]

    @cached_property
    def distribution(self) -> Distribution:
        """The delay as the models take it, in seconds."""
        from shakedown.models.distribution import Distribution

        if self.kind == "constant":
            return Distribution.exactly(self.minimum_s)
        if self.kind == "lognormal":
            return Distribution.lognormal(self.minimum_s, self.median_s, self.sigma)
        return Distribution.of_quantiles(self.points)

    def as_json(self) -> dict[str, Any]:
        """The delay as ``DistributionSpec`` of the Rust core reads it, in seconds."""
        if self.kind == "constant":
            return {"kind": "constant", "s": self.minimum_s}
        if self.kind == "lognormal":
            return {
                "kind": "lognormal",
                "minimum_s": self.minimum_s,
                "median_s": self.median_s,
                "sigma": self.sigma,
            }
        if self.kind == "uniform":
            return {"kind": "uniform", "minimum_s": self.points[0][1], "maximum_s": self.points[-1][1]}
        return {"kind": "quantiles", "points": [list(point) for point in self.points]}


def parse_delay(table: Table, key: str) -> DelayProfile:
    """Read a delay in milliseconds: a table of one of the shapes, or a bare number (fixed)."""
    value = table.peek(key)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return DelayProfile.constant(table.seconds(key))
    if value is None or not isinstance(value, dict):
        raise table.fail(f"{key} is {'missing' if value is None else repr(value)}; accepted: {_ACCEPTED}")
    inner = table.table(key)
    keys = set(value)
    if keys == {"fixed"}:
        return DelayProfile.constant(inner.seconds("fixed"))
    if keys == {"minimum", "maximum"}:
        low, high = (inner.number(key, maximum=MAX_MS) for key in ("minimum", "maximum"))
        if high <= low:
            raise inner.fail(f"maximum is {high:g}; accepted: more than the minimum's {low:g}")
        return DelayProfile("uniform", low * 1e-3, points=((0.0, low * 1e-3), (1.0, high * 1e-3)))
    if keys == {"minimum", "median", "p95"}:
        low, median, high = (inner.number(key, maximum=MAX_MS) for key in ("minimum", "median", "p95"))
        if not low < median < high:
            raise inner.fail(f"{low:g}, {median:g}, {high:g}; accepted: minimum < median < p95")
        sigma = math.log((high - low) / (median - low)) / _Z95
        if sigma > MAX_SIGMA:
            raise inner.fail(f"{low:g}, {median:g}, {high:g}; accepted: a median further above the minimum")
        return DelayProfile("lognormal", low * 1e-3, median * 1e-3, sigma)
    if keys == {"quantiles"}:
        return DelayProfile("quantiles", *_quantiles(inner, value["quantiles"]))
    raise table.fail(f"{key} has the keys {', '.join(sorted(keys))}; accepted: {_ACCEPTED}")


def _quantiles(inner: Table, value: object) -> tuple[float, float, float, tuple[tuple[float, float], ...]]:
    accepted = "pairs of a share from 0 to 1 and milliseconds, both rising, the first share 0, the last 1"
    points: list[tuple[float, float]] = []
    for pair in value if isinstance(value, list) else []:
        numbers = isinstance(pair, list) and all(
            isinstance(number, (int, float)) and not isinstance(number, bool) for number in pair
        )
        if not numbers or len(pair) != 2:
            raise inner.fail(f"quantiles has {pair!r}; accepted: {accepted}")
        points.append((float(pair[0]), float(pair[1]) * 1e-3))
    in_range = points and points[0][1] >= 0.0 and points[-1][1] <= MAX_MS * 1e-3
    rising = in_range and all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(points))
    if len(points) < 2 or points[0][0] != 0.0 or points[-1][0] != 1.0 or not rising:
        raise inner.fail(f"quantiles is {value!r}; accepted: {accepted}")
    return points[0][1], 0.0, 0.0, tuple(points)
