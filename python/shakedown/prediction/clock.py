"""Assuming symmetric work by the clock: as many cycles as on builds of the nearest class that have it.

For a cipher, digest or MAC that none of a device's figures says enough of. The cycles are the geometric mean
over the boards of the narrowest class that has at least `MIN_BOARDS` (library, way of computing and word
size; the latter two; word size; all), their range a Student's t prediction whose variance is drawn towards
that of other primitives' classes, times a factor fitted so that, with whole boards left out, 90 % of the
known figures lie in it. Such a figure is `assumed`, and its range may be wide.
"""

from __future__ import annotations

import math
from functools import lru_cache

from shakedown.prediction.ratios import (
    PRIOR_BOARDS,
    Build,
    Ratios,
    Scaled,
    class_key,
    levels_of,
    shipped,
    student_90,
)
from shakedown.prediction.relations import group
from shakedown.profiles.costs import Triple
from shakedown.profiles.vocabulary import SYMMETRIC_OPERATIONS

MIN_BOARDS = 5
"""Fewer boards of one class say nothing of another."""
RELATION = "clock"
CLOCK: Triple = ("clock", "", "")
"""What such a figure is scaled from."""

_Boards = dict[tuple[object, ...], dict[str, float]]


class Cycles:
    """Cycles that symmetric work takes on reference builds, by class."""

    def __init__(self, ratios: Ratios) -> None:
        """Keep the builds and the fit; nothing is computed before it is asked for."""
        self.builds = ratios.builds
        self.fit = ratios.fit
        self._by_triple: dict[Triple, list[tuple[int, float]]] = {}
        for index, build in enumerate(self.builds):
            for triple, value in build.log_s.items():
                if triple[0] not in SYMMETRIC_OPERATIONS:
                    continue
                cycles = value + math.log(build.clock_hz)
                self._by_triple.setdefault(triple, []).append((index, cycles))
        self._tables: dict[tuple[Triple, int], _Boards] = {}

    def triples(self) -> list[Triple]:
        """All symmetric work that some build has."""
        return sorted(self._by_triple)

    def classes(self, target: Triple, level: int) -> _Boards:
        """By class: each board's mean of the logarithm of cycles."""
        key = (target, level)
        if key not in self._tables:
            found: dict[tuple[object, ...], dict[str, list[float]]] = {}
            for index, value in self._by_triple.get(target, []):
                build = self.builds[index]
                boards = found.setdefault(class_key(build, group(target), level), {})
                boards.setdefault(build.board, []).append(value)
            self._tables[key] = {
                name: {board: sum(values) / len(values) for board, values in boards.items()}
                for name, boards in found.items()
            }
        return self._tables[key]

    def estimate(self, target: Triple, like: Build) -> Scaled | None:
        """The narrowest estimate of a figure for a build of a known clock; None where no class has enough."""
        best: Scaled | None = None
        for level in levels_of(target, like):
            found = self._of_class(target, like, level)
            if found and (best is None or found.half < best.half):
                best = found
        return best

    def _of_class(self, target: Triple, like: Build, level: int) -> Scaled | None:
        own = self.fit.cycles.get(f"{group(target)}/{level}")
        boards = self.classes(target, level).get(class_key(like, group(target), level), {})
        values = [value for board, value in boards.items() if board != like.board]
        count = len(values)
        if own is None or count < MIN_BOARDS:
            return None
        mean = sum(values) / count
        freedom = PRIOR_BOARDS + count - 1
        variance = (PRIOR_BOARDS * own**2 + sum((one - mean) ** 2 for one in values)) / freedom
        width = student_90(freedom) * math.sqrt(variance * (1.0 + 1.0 / count))
        half = width * self.fit.cycle_factors.get(clock_family(target), 1.0)
        log_s = mean - math.log(like.clock_hz)
        return Scaled(log_s, half, CLOCK, math.exp(mean), RELATION, level, count, width)


def clock_family(target: Triple) -> str:
    """What is fitted together: digests and MACs, and ciphers by their mode."""
    return target[1].rpartition("-")[2] if target[0] == "cipher" else "digest"


@lru_cache(maxsize=1)
def shipped_cycles() -> Cycles:
    """Those of the builds that the package ships."""
    return Cycles(shipped())
