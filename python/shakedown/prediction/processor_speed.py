"""Selection of the measurements that were made at the processor's full speed.

A virtual processor is often one of two hardware threads of a core. While another guest uses the other thread,
all work takes longer, for milliseconds or for minutes, by factors that differ: on the machine where this was
found 1.75 for a P-256 handshake, 1.45 for RSA-3072, 1.05 for SHA-256. No common factor removes that. A
profile whose parts were measured at different times would contradict itself, and a server that was measured
at another time would contradict the profile.

So a fixed loop runs on the same processor: before and after a short measurement, and beside a long one (a
`Meter`). A measurement is valid if the loop took at most `TOLERANCE` times its best time, the lower decile of
all times of the loop so far. Measurements are repeated until enough are valid, up to a limit; then those with
the fastest loops are used, and the result is marked. The selection depends only on the loop, not on what was
measured. Valid times are then multiplied by the loop's best time over its time: within so small a difference
all work changes about as the loop does.

All figures of a profile thus apply to the processor's full speed; a warning states its share of the time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

BASE, EXPONENT, MODULUS = 3**640, (1 << 400) - 593, (1 << 1024) - 105
"""Numbers of the fixed loop: a modular exponentiation, about a millisecond of arithmetic in C.

A loop of the interpreter does not show the speed: on an AMD EPYC, its time changed by 10 to 40 % within a
process, while the times of handshakes changed by 1 %, and that of this exponentiation by 6 %.
"""
FLANK = 3
"""Loops before and after a measurement."""
TOLERANCE = 1.1
"""At full speed the loop's times differ by less than this; below it they are longer by factors from 1.3."""
WARM_UP_S = 1.0
"""Duration of the loop before the first measurement, so that its best time is known."""


def loop_s() -> float:
    """CPU time of the fixed loop."""
    begun = time.thread_time()
    pow(BASE, EXPONENT, MODULUS)
    return time.thread_time() - begun


@dataclass(frozen=True, slots=True)
class Timed(Generic[T_co]):
    """The result of a measurement, and the loop's time on its processor."""

    found: T_co
    loop_s: float


@dataclass(slots=True)
class Speed:
    """The loop's times during a series of measurements on one processor."""

    loops_s: list[float] = field(default_factory=list)
    counted_s: list[float] = field(default_factory=list)
    """For each figure, the slowest loop of the measurements used."""

    @classmethod
    def warmed_up(cls) -> Speed:
        """A `Speed` with the loop's times of one second on this thread's processor."""
        speed, end = cls(), time.monotonic() + WARM_UP_S
        while time.monotonic() < end:
            speed.sample()
        return speed

    @property
    def full_s(self) -> float:
        ordered = sorted(self.loops_s)
        return ordered[len(ordered) // 10] if ordered else 0.0

    @property
    def share(self) -> float:
        limit_s = TOLERANCE * self.full_s
        return sum(one <= limit_s for one in self.loops_s) / max(len(self.loops_s), 1)

    @property
    def slower(self) -> float:
        """How many times as long as at full speed the loop took on average."""
        return statistics.fmean(self.loops_s) / self.full_s if self.loops_s else 1.0

    @property
    def lowest(self) -> float:
        """The factor by which the processor was slower than at full speed when figures were measured: 90 % of
        the figures are within it. 1 if it is within the loop's variation at full speed.
        """
        ordered = sorted(self.counted_s)
        factor = ordered[(9 * len(ordered)) // 10] / self.full_s if ordered and self.full_s else 1.0
        return factor if factor > TOLERANCE else 1.0

    @property
    def spread(self) -> float:
        """The factor by which such figures may be too high: the square, as work slows more than the loop.

        Handshakes with public-key operations took 1.15 to 1.26 times as long when the loop took 1.14.
        """
        return self.lowest**2

    def sample(self) -> float:
        return self.note(statistics.fmean(loop_s() for _ in range(FLANK)))

    def note(self, seconds: float) -> float:
        """Add a time of the loop that was measured elsewhere on this processor."""
        self.loops_s.append(seconds)
        return seconds

    def flanked(self, measure: Callable[[], T]) -> Timed[T]:
        """A short measurement between two runs of the loop; its loop time is the slower one's."""
        before_s = self.sample()
        found = measure()
        return Timed(found, max(before_s, self.sample()))

    def is_full(self, one: Timed[object]) -> bool:
        return one.loop_s <= TOLERANCE * self.full_s

    def has(self, enough: int, some: Sequence[Timed[object]]) -> bool:
        return sum(map(self.is_full, some)) >= enough

    def counted(self, some: Sequence[Timed[T]], enough: int = 1, *, provisional: bool = False) -> list[T]:
        """The results of the measurements at full speed; if these are too few, those with the fastest loops.

        A `provisional` choice, made while more is measured, does not affect `lowest`.
        """
        found = [one for one in some if self.is_full(one)]
        if len(found) < enough:
            found = sorted(some, key=lambda one: one.loop_s)[:enough]
        if found and not provisional:
            self.counted_s.append(max(one.loop_s for one in found))
        return [one.found for one in found]

    def at_full(
        self, some: Sequence[Timed[float]], enough: int = 1, *, provisional: bool = False
    ) -> list[float]:
        """The times to use, corrected to full speed."""
        timed = [Timed((one.found, one.loop_s), one.loop_s) for one in some]
        counted = self.counted(timed, enough, provisional=provisional)
        return [found * self.full_s / loop_s for found, loop_s in counted]
