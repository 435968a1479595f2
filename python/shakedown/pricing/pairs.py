"""Scaling between curves over prime fields and Montgomery's of the same size by one ratio over all boards.

For X25519 on a device that has P-256, and back, where the ratios of nearer classes of builds are too
uncertain. One base is taken, and no choice made among several: the same operation, else the next of `ORDER`.
The ratio is the median over the boards that have both in software, whatever the library; its range holds the
share `HELD` of them, each next to the median of the others. With fewer than `MIN_BOARDS`, or a range wider
than ×/÷ 4, there is no figure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache

from shakedown.pricing.ratios import LEVELS, WIDEST, Build, Ratios, Scaled, levels_of, shipped
from shakedown.pricing.relations import kind, size
from shakedown.profiles.costs import Triple

MIN_BOARDS = 10
HELD = 0.9
ORDER = ("derive", "keygen", "sign", "verify")
"""All are a multiplication of a point; verifying is two."""
RELATION = "curve of the same size"
_FAMILIES = frozenset({"prime-curve", "montgomery-curve"})
_FEW_BITS = 4


def base_of(target: Triple, known: Sequence[Triple]) -> Triple | None:
    """The one figure that a target is scaled from: the same operation, else the next in `ORDER`."""
    if kind(target) not in _FAMILIES:
        return None
    found = [
        base
        for base in known
        if {kind(target), kind(base)} == _FAMILIES and abs(size(target) - size(base)) <= _FEW_BITS
    ]
    return min(found, key=lambda base: (base[0] != target[0], ORDER.index(base[0]), base), default=None)


class Pairs:
    """Ratios of two primitives over all reference builds that compute in software."""

    def __init__(self, ratios: Ratios) -> None:
        """Keep the builds."""
        self.ratios = ratios
        self._boards: dict[tuple[Triple, Triple], dict[str, float]] = {}

    def boards(self, target: Triple, base: Triple) -> dict[str, float]:
        """Each board's mean log ratio, builds with an accelerator apart."""
        key = (target, base)
        if key not in self._boards:
            found: dict[str, list[float]] = {}
            for index, value in self.ratios.log_ratios(target, base):
                build = self.ratios.builds[index]
                if _in_software(target, build):
                    found.setdefault(build.board, []).append(value)
            self._boards[key] = {board: statistics.fmean(values) for board, values in found.items()}
        return self._boards[key]

    def estimate(self, target: Triple, like: Build) -> Scaled | None:
        """A figure from the one base that a build has; None where there is none, or its range is too wide."""
        base = base_of(target, list(like.log_s))
        if base is None or not _in_software(target, like):
            return None
        values = [value for board, value in self.boards(target, base).items() if board != like.board]
        if len(values) < MIN_BOARDS:
            return None
        middle, half = range_of(values)
        if half > math.log(WIDEST):
            return None
        last = len(LEVELS) - 1
        log_s = like.log_s[base] + middle
        return Scaled(log_s, half, base, math.exp(middle), RELATION, last, len(values), half)


def range_of(values: Sequence[float]) -> tuple[float, float]:
    """The median, and the half-range about the others' median that holds the share `HELD`."""
    apart = sorted(
        abs(value - statistics.median([*values[:index], *values[index + 1 :]]))
        for index, value in enumerate(values)
    )
    return statistics.median(values), apart[math.ceil(HELD * len(values)) - 1]


def _in_software(target: Triple, build: Build) -> bool:
    return len(levels_of(target, build)) == len(LEVELS)


@lru_cache(maxsize=1)
def shipped_pairs() -> Pairs:
    """Those of the builds that the package ships."""
    return Pairs(shipped())
