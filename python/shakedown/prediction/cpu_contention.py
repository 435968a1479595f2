"""Load on the other processors during a measurement: busy neighbours, as on a saturated server; steal time.

Two processors are often two hardware threads of one core, or shared with other guests; caches and memory are
always shared. A worker with busy neighbours takes longer than one that is alone on the machine.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from shakedown.native.processors import pin, placed, processors
from shakedown.prediction.processor_speed import Speed, Timed, loop_s

if TYPE_CHECKING:
    from ctypes import Array, c_double
    from multiprocessing.context import ForkProcess

T = TypeVar("T")

SUITE = "tls1.3/x25519/p256/server"
"""The neighbours' work: handshakes, like that of clients and other workers."""
IDLERS = 2
"""Busy-looping processes beside a server, which then gets a third of its processor."""
SAMPLE_S = 0.1
"""Interval between two readings of the loops; some dozens of loops at half of a processor."""
MAX_STEAL = 0.02
"""The largest share of steal time without a warning."""
MIN_SHARE = 0.8
"""The share of time at full speed below which a warning is given."""


@contextlib.contextmanager
def busy_neighbours(*, busy: bool = True) -> Iterator[None]:
    """Run this thread on its first processor and handshakes on all others; do nothing if not `busy`."""
    if not busy:
        yield
        return
    there = processors()
    with _beside([(one, _handshakes) for one in there[1:]]), placed(there[:1]):
        yield


def beside_clients(there: Sequence[int]) -> contextlib.AbstractContextManager[None]:
    """Run handshakes on processors whenever nothing else runs there, for example the clients of a server."""

    def idle(parent: int) -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        _handshakes(parent)

    return _beside([(one, idle) for one in there])


@dataclass(frozen=True, slots=True)
class Meter:
    """CPU time and number of loops of busy-looping processes, in pairs."""

    counts: Array[c_double]

    def timed(self, measure: Callable[[], T], speed: Speed) -> Timed[T]:
        """A long measurement on their processor, and the mean time of a loop during it."""
        before = tuple(self.counts)
        found = measure()
        ran_s, loops = (
            sum(now - then for now, then in zip(self.counts[at::2], before[at::2], strict=True))
            for at in (0, 1)
        )
        return Timed(found, speed.note(ran_s / loops) if loops else math.inf)

    @property
    def ran_s(self) -> float:
        """CPU time of the processes."""
        return sum(self.counts[::2])

    @contextlib.contextmanager
    def sampled(self, speed: Speed) -> Iterator[None]:
        """Note the loop's time every `SAMPLE_S`, so that short periods at full speed are found too."""
        ended = threading.Event()

        def sample() -> None:
            while not ended.is_set():
                self.timed(lambda: ended.wait(SAMPLE_S), speed)

        sampling = threading.Thread(target=sample, daemon=True)
        sampling.start()
        try:
            yield
        finally:
            ended.set()
            sampling.join()


@contextlib.contextmanager
def shared(there: Sequence[int], idlers: int = 1) -> Iterator[Meter]:
    """Run `idlers` busy-looping processes on each of some processors, so that a server there gets a share of
    them. Their loops are averaged.

    Clients are then never too slow for the server: it always finds work, and is never woken. The server's
    work is measured as its own CPU time, and the processor's speed by the processes' loops.
    """
    counts = RawArray("d", 2 * idlers * len(there))
    places = [processor for processor in there for _ in range(idlers)]
    with _beside([(one, partial(_spin, counts, number)) for number, one in enumerate(places)]):
        yield Meter(counts)


class Watch:
    """How steady the machine has been since this object was created, from steal time and measured loops."""

    def __init__(self, *speeds: Speed) -> None:
        self._ticks, self._speeds = _ticks(), speeds

    @property
    def steal(self) -> float:
        """The share of the processors' time that the host gave to others."""
        whole, stolen = (now - before for now, before in zip(_ticks(), self._ticks, strict=True))
        return stolen / whole if whole > 0 else 0.0

    @property
    def lowest(self) -> float:
        """The largest factor by which any figure was measured below full speed; 1 if none was."""
        return max((one.lowest for one in self._speeds), default=1.0)

    @property
    def spread(self) -> float:
        """The factor by which these figures may be off."""
        return max((one.spread for one in self._speeds), default=1.0)

    def warnings(self) -> list[str]:
        """Reasons to doubt the figures of this period, one line each."""
        steal, found = self.steal, []
        if steal > MAX_STEAL:
            found.append(f"the host took {steal:.0%} of the processors' time: measure again when it is quiet")
        speeds = [one for one in self._speeds if one.loops_s]
        slowest = min(speeds, key=lambda one: one.share, default=None)
        if slowest is not None and slowest.share < MIN_SHARE:
            found.append(
                f"the processor ran at full speed for {slowest.share:.0%} of the time, and the figures are "
                f"for full speed; on average, work takes {slowest.slower:.2f} times as long"
            )
        if self.lowest > 1.0:
            found.append(
                "full speed did not last long enough for all figures; some were measured at a speed that is "
                f"{self.lowest:.2f} times lower: measure again"
            )
        return found


def _ticks() -> tuple[int, int]:
    """Time of all processors since boot, and how much of it the host took (proc(5), `/proc/stat`)."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0, 0
    return sum(map(int, fields)), int(fields[7]) if len(fields) > 7 else 0


@contextlib.contextmanager
def _beside(works: Sequence[tuple[int, Callable[[int], None]]]) -> Iterator[None]:
    """Run a process for each work on its processor; each gets the parent's process ID.

    Ctrl-C reaches all processes of a terminal. These inherit that it is blocked, and end with the parent.
    """
    context = get_context("fork")
    me = os.getpid()
    others = [context.Process(target=_work, args=(*one, me), daemon=True) for one in works]
    started: list[ForkProcess] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        try:
            for one in others:
                one.start()
                started.append(one)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield
    finally:
        for one in started:
            one.terminate()
        for one in started:
            one.join(5)


def _work(processor: int, work: Callable[[int], None], parent: int) -> None:
    pin(processor)
    work(parent)


def _spin(counts: Array[c_double], number: int, parent: int) -> None:
    """Loop until the parent is gone, because a killed parent cannot end its children."""
    loops = 0
    while os.getppid() == parent:
        loop_s()
        loops += 1
        counts[2 * number : 2 * number + 2] = [time.thread_time(), float(loops)]


def _handshakes(parent: int) -> None:
    from shakedown import native
    from shakedown.native.scenario import HandshakeId, MeasureOptions

    while os.getppid() == parent:
        native.measure(HandshakeId(suite=SUITE), MeasureOptions(repeat=20))
