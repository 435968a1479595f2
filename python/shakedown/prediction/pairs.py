"""Scaling between curves over prime fields and Montgomery's of the same size by one ratio over all boards.

For X25519 on a device that has P-256, and back, where the ratios of nearer classes of builds are too
uncertain. The ratio is the median over the boards that have both in software, whatever the library; its
range is that of conformal prediction: of the boards' distances, each to the median of the others, the one
that a further board is below with probability `HELD`. Of a device's figures on the other curve the one with
the narrowest range is taken. With fewer than `MIN_BOARDS`, or a range wider than ×/÷ 4, there is no figure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from functools import lru_cache

from shakedown.prediction.ratios import LEVELS, WIDEST, Build, Ratios, Scaled, levels_of, shipped
from shakedown.prediction.relations import kind, size
from shakedown.profiles.costs import Triple

MIN_BOARDS = 10
HELD = 0.9
ORDER = ("derive", "keygen", "sign", "verify")
"""All are a multiplication of a point; verifying is two."""
RELATION = "curve of the same size"
_FAMILIES = frozenset({"prime-curve", "montgomery-curve"})
_FEW_BITS = 4


def bases_of(target: Triple, known: Iterable[Triple]) -> list[Triple]:
    """The figures that a target may be scaled from: the same operation, then in `ORDER`."""
    if kind(target) not in _FAMILIES:
        return []
    found = [
        base
        for base in known
        if {kind(target), kind(base)} == _FAMILIES and abs(size(target) - size(base)) <= _FEW_BITS
    ]
    return sorted(found, key=lambda base: (base[0] != target[0], ORDER.index(base[0]), base))


class Pairs:
    """Ratios of two primitives over all reference builds that compute in software."""

    def __init__(self, ratios: Ratios) -> None:
        """Keep the builds."""
        self.ratios = ratios
        self._boards: dict[tuple[Triple, Triple], dict[str, float]] = {}
        self._halves: dict[tuple[Triple, Triple], float] = {}

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

    def half(self, target: Triple, base: Triple) -> float:
        """The half-range over all boards, infinite for too few: by it a pair is chosen, or none.

        Were it that of the other boards, a board that is far from the rest would have a figure where no
        other has one.
        """
        key = (target, base)
        if key not in self._halves:
            values = list(self.boards(target, base).values())
            self._halves[key] = range_of(values)[1] if len(values) >= MIN_BOARDS else math.inf
        return self._halves[key]

    def estimate(self, target: Triple, like: Build) -> Scaled | None:
        """A figure from a build's others; None where there are none, or every range is too wide."""
        if not _in_software(target, like):
            return None
        halves = {base: self.half(target, base) for base in bases_of(target, like.log_s)}
        base = min(halves, key=lambda one: halves[one], default=None)
        if base is None or halves[base] > math.log(WIDEST):
            return None
        values = [value for board, value in self.boards(target, base).items() if board != like.board]
        if len(values) < MIN_BOARDS:
            return None
        middle, half = range_of(values)
        last = len(LEVELS) - 1
        log_s = like.log_s[base] + middle
        return Scaled(log_s, half, base, math.exp(middle), RELATION, last, len(values), half)


def range_of(values: Sequence[float]) -> tuple[float, float]:
    """The median, and the half-range that holds the next with probability `HELD` (conformal prediction)."""
    apart = sorted(
        abs(value - statistics.median([*values[:index], *values[index + 1 :]]))
        for index, value in enumerate(values)
    )
    return statistics.median(values), apart[conformal_rank(len(values)) - 1]


def conformal_rank(count: int) -> int:
    """Which of N distances, the smallest first, the next one is below with probability `HELD`.

    The next of N + 1 that may come in any order is equally likely to have any rank among them.
    """
    return min(count, math.ceil(HELD * (count + 1)))


def _in_software(target: Triple, build: Build) -> bool:
    return len(levels_of(target, build)) == len(LEVELS)


@lru_cache(maxsize=1)
def shipped_pairs() -> Pairs:
    """Those of the builds that the package ships."""
    return Pairs(shipped())
