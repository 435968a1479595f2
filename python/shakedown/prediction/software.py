"""What an accelerator does not offer, computed by the device's library in software: as many cycles as its
builds in C take on cores of the same word size.

For X25519 or Ed25519 on a device whose P-256 is hardware. The cycles are the geometric mean over at least
`MIN_BOARDS` other boards, their range a Student's t prediction whose variance is drawn towards that of other
primitives', times a factor fitted so that, with whole boards left out, 90 % of the curves' known figures lie
in it. Libraries whose builds in C differ by more give none: wolfSSL's field arithmetic is a choice of its
build.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from functools import lru_cache

from shakedown.prediction.ratios import (
    HARDWARE,
    PRIOR_BOARDS,
    WIDEST,
    Build,
    Ratios,
    Scaled,
    shipped,
    student_90,
)
from shakedown.prediction.relations import group, kind
from shakedown.profiles.costs import Triple

MIN_BOARDS = 5
"""Fewer boards of one library say nothing of another."""
RELATION = "software"
SOFTWARE: Triple = ("software", "", "")
"""What such a figure is scaled from."""
_OFFERED_APART = frozenset({"montgomery-curve", "edwards-curve"})
"""Families of curves that an accelerator either has or has not: P-256 says nothing of them."""


def is_left_to_software(target: Triple, like: Build) -> bool:
    """Whether a device with hardware for curves has none of a primitive's family."""
    family = kind(target)
    return (
        family in _OFFERED_APART
        and like.kinds["curves"] in HARDWARE
        and not any(kind(base) == family for base in like.log_s)
    )


class Software:
    """Cycles that curves take in C, by library and word size."""

    def __init__(self, ratios: Ratios) -> None:
        """Keep the builds and the fit."""
        self.fit = ratios.fit
        found: dict[tuple[Triple, str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for build in ratios.builds:
            if build.kinds["curves"] == "c" and build.lineage:
                for target, value in build.log_s.items():
                    if group(target) == "curves":
                        cycles = value + math.log(build.clock_hz)
                        found[target, build.lineage, build.word_bits][build.board].append(cycles)
        self._boards = {
            key: {board: statistics.fmean(values) for board, values in boards.items()}
            for key, boards in found.items()
        }

    def deviation(self) -> float:
        """The pooled deviation of log cycles between boards of one library."""
        return math.sqrt(
            statistics.fmean(
                statistics.variance(boards.values())
                for boards in self._boards.values()
                if len(boards) >= MIN_BOARDS
            )
        )

    def estimate(self, target: Triple, like: Build) -> Scaled | None:
        """A figure in C by a build's library, however wide its range; None where too few boards have one."""
        own = self.fit.software.get("deviation")
        boards = self._boards.get((target, like.lineage, like.word_bits), {})
        values = [value for board, value in boards.items() if board != like.board]
        count = len(values)
        if own is None or count < MIN_BOARDS:
            return None
        mean = statistics.fmean(values)
        freedom = PRIOR_BOARDS + count - 1
        variance = (PRIOR_BOARDS * own**2 + sum((one - mean) ** 2 for one in values)) / freedom
        width = student_90(freedom) * math.sqrt(variance * (1.0 + 1.0 / count))
        factors = self.fit.software
        half = width * factors.get("factor", 1.0) * factors.get(f"family/{kind(target)}", 1.0)
        log_s = mean - math.log(like.clock_hz)
        return Scaled(log_s, half, SOFTWARE, math.exp(mean), RELATION, 0, count, width)

    def left(self, target: Triple, like: Build) -> Scaled | None:
        """A figure that a device's accelerator leaves to its library; None where its range is too wide."""
        found = self.estimate(target, like) if is_left_to_software(target, like) else None
        return found if found is not None and found.half <= math.log(WIDEST) else None


@lru_cache(maxsize=1)
def shipped_software() -> Software:
    """That of the builds that the package ships."""
    return Software(shipped())
