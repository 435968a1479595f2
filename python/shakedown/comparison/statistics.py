"""The comparison of two conditions: one interval of the change for each figure, by ranks, without removing
readings.

Figures are logarithms of times, so a shift is a ratio. The estimate is Hodges and Lehmann's: the median of
all means of two differences (pairs), or of all differences (groups). Its interval holds the shifts that the
exact rank test does not reject: Wilcoxon's signed ranks for pairs, Mann and Whitney's for two groups
(Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 2014, sections 3.3 and 4.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Shift:
    """A shift of logarithms, and its interval, which is infinite with too few readings for the level."""

    estimate: float
    lower: float
    upper: float

    def widened(self, by: float) -> Shift:
        return Shift(self.estimate, self.lower - by, self.upper + by)


def paired(differences: Sequence[float], level: float) -> Shift:
    """The shift of pairs, from each pair's difference; `level` is the confidence level."""
    values = np.asarray(differences, dtype=float)
    first, second = np.triu_indices(len(values))
    averages = np.sort((values[first] + values[second]) / 2)
    return _shift(averages, _signed_ranks(len(values)), level)


def unpaired(before: Sequence[float], after: Sequence[float], level: float) -> Shift:
    """The shift between two independent groups."""
    one, other = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    differences = np.sort((other[:, None] - one[None, :]).ravel())
    return _shift(differences, _rank_sums(len(one), len(other)), level)


def min_pairs(level: float) -> int:
    """The number of pairs that is needed for an interval at this level."""
    return next(n for n in range(2, 1100) if 2.0**-n <= (1 - level) / 2)


def min_group(level: float) -> int:
    """The size of two equal groups that is needed for an interval at this level."""
    return next(n for n in range(2, 600) if 1 / math.comb(2 * n, n) <= (1 - level) / 2)


def _shift(sorted_: Values, null: Values, level: float) -> Shift:
    """`null[k]` is the probability that k of these averages or differences are below the true shift."""
    # The largest count that leaves no more than half of the error beyond it.
    beyond = int(np.searchsorted(np.cumsum(null), (1 - level) / 2, side="right"))
    return Shift(
        estimate=float(np.median(sorted_)),
        lower=float(sorted_[beyond - 1]) if beyond else -math.inf,
        upper=float(sorted_[-beyond]) if beyond else math.inf,
    )


@cache
def _signed_ranks(n: int) -> Values:
    """Distribution of the sum of positive ranks of n differences that are symmetric around 0."""
    chances = np.ones(1)
    for rank in range(1, n + 1):
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    return chances


@cache
def _rank_sums(n: int, m: int) -> Values:
    """Distribution of the number of positive differences (of n m) if both groups have one distribution."""
    # Of the i + j values, the largest is one of the j with probability j / (i + j), and then above all i.
    table: dict[tuple[int, int], Values] = {}
    for i in range(n + 1):
        for j in range(m + 1):
            if i == 0 or j == 0:
                table[i, j] = np.ones(1)
                continue
            chances = np.zeros(i * j + 1)
            chances[: (i - 1) * j + 1] += table[i - 1, j] * i / (i + j)
            chances[i:] += table[i, j - 1] * j / (i + j)
            table[i, j] = chances
    return table[n, m]
