"""Delays in profiles: reading them from a file, and their distributions for the models."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING

from shakedown.profiles.tables import MAX_MS, Table
from shakedown.schema.profiles import ConstantDelay, Delay, LognormalDelay, QuantilesDelay, UniformDelay

if TYPE_CHECKING:
    from shakedown.models.distribution import Distribution

_Z95 = 1.6448536269514722  # 95th percentile of the standard normal distribution
MAX_SIGMA = 10.0
"""Limit of the core's lognormal; p95 - minimum is then 14 million times median - minimum."""
_ACCEPTED = (
    "{ fixed = 35 }, { minimum = 30, median = 35, p95 = 60 }, { minimum = 0, maximum = 75 } "
    "or { quantiles = [[0, 30], [0.5, 35], [1, 400]] }"
)


def of_moments(mean_s: float, sd_s: float) -> Delay:
    """A delay with this mean and standard deviation: lognormal above a minimum of mean - 1.5 sd, or of 0."""
    if sd_s <= 0.0:
        return ConstantDelay(s=mean_s)
    minimum_s = max(0.0, mean_s - 1.5 * sd_s)
    excess_s = mean_s - minimum_s
    variance = math.log1p((sd_s / excess_s) ** 2)
    median_s = minimum_s + excess_s * math.exp(-variance / 2.0)
    return LognormalDelay(minimum_s=minimum_s, median_s=median_s, sigma=math.sqrt(variance))


def quantile_s(delay: Delay, share: float) -> float:
    """The delay that is not exceeded with probability ``share``, exactly as in the profile; models use a
    lattice, with an error of up to 1 %.
    """
    if isinstance(delay, ConstantDelay):
        return delay.s
    if isinstance(delay, LognormalDelay):
        score = NormalDist().inv_cdf(share)
        return delay.minimum_s + (delay.median_s - delay.minimum_s) * math.exp(delay.sigma * score)
    points = _points(delay)
    for (below, low_s), (above, high_s) in pairwise(points):
        if share <= above:
            return low_s + (high_s - low_s) * (share - below) / (above - below)
    return points[-1][1]


@lru_cache(maxsize=512)
def distribution(delay: Delay) -> Distribution:
    """The delay's distribution for the models, in seconds."""
    from shakedown.models.distribution import Distribution

    if isinstance(delay, ConstantDelay):
        return Distribution.exactly(delay.s)
    if isinstance(delay, LognormalDelay):
        return Distribution.lognormal(delay.minimum_s, delay.median_s, delay.sigma)
    return Distribution.of_quantiles(_points(delay))


def _points(delay: UniformDelay | QuantilesDelay) -> tuple[tuple[float, float], ...]:
    """Cumulative probabilities with their delays."""
    if isinstance(delay, UniformDelay):
        return (0.0, delay.minimum_s), (1.0, delay.maximum_s)
    return delay.points


def parse_delay(table: Table, key: str) -> Delay:
    """Read a delay in milliseconds: a table in one of the forms, or a bare number (fixed)."""
    value = table.peek(key)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return ConstantDelay(s=table.seconds(key))
    if value is None or not isinstance(value, dict):
        raise table.fail(f"{key} is {'missing' if value is None else repr(value)}; accepted: {_ACCEPTED}")
    inner = table.table(key)
    keys = set(value)
    if keys == {"fixed"}:
        return ConstantDelay(s=inner.seconds("fixed"))
    if keys == {"minimum", "maximum"}:
        low, high = (inner.number(key, maximum=MAX_MS) for key in ("minimum", "maximum"))
        if high <= low:
            raise inner.fail(f"maximum is {high:g}; accepted: more than the minimum, {low:g}")
        return UniformDelay(minimum_s=low * 1e-3, maximum_s=high * 1e-3)
    if keys == {"minimum", "median", "p95"}:
        low, median, high = (inner.number(key, maximum=MAX_MS) for key in ("minimum", "median", "p95"))
        if not low < median < high:
            raise inner.fail(f"{low:g}, {median:g}, {high:g}; accepted: minimum < median < p95")
        sigma = math.log((high - low) / (median - low)) / _Z95
        if sigma > MAX_SIGMA:
            raise inner.fail(f"{low:g}, {median:g}, {high:g}; accepted: a larger median - minimum")
        return LognormalDelay(minimum_s=low * 1e-3, median_s=median * 1e-3, sigma=sigma)
    if keys == {"quantiles"}:
        return QuantilesDelay(points=_quantiles(inner, value["quantiles"]))
    raise table.fail(f"{key} has the keys {', '.join(sorted(keys))}; accepted: {_ACCEPTED}")


def _quantiles(inner: Table, value: object) -> tuple[tuple[float, float], ...]:
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
    return tuple(points)
