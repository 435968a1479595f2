"""What else the processors do while one of them is measured: neighbours kept busy, as on a saturated server,
and what the host took or the clock lost meanwhile.

What looks like two processors is often two threads of one core, or two guests on it; caches and memory are
shared in any case. A worker whose neighbours work takes longer than one that is alone on the machine.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

from shakedown.native.processors import pin, placed, processors

SUITE = "tls1.3/x25519/p256/server"
"""The work of neighbours: handshakes, like clients and other workers."""
LOOPS = 100_000
"""Interval between checks that the parent is alive: some milliseconds."""
IDLERS = 2
"""Processes that do nothing beside a server, which then has a third of its processor."""
MAX_STEAL, MAX_CHANGE = 0.02, 1.1
"""Beyond these a machine was not steady: the share of time that its host took, and how its speed changed."""


@contextlib.contextmanager
def busy_neighbours(*, busy: bool = True) -> Iterator[None]:
    """This thread on the first of its processors, and handshakes on all others; nothing where not `busy`."""
    if not busy:
        yield
        return
    there = processors()
    with _beside(_handshakes, there[1:]), placed(there[:1]):
        yield


def shared(processor: int) -> contextlib.AbstractContextManager[None]:
    """Processes that do nothing on a processor, so that a server there has a part of it.

    Clients are then never too slow for the server: it finds work whenever it looks, and is never woken. What
    it does is counted by its own CPU time.
    """
    return _beside(_spin, [processor] * IDLERS)


class Watch:
    """How steady the machine was between making one and asking it."""

    def __init__(self) -> None:
        """Begin now."""
        self._ticks, self._speed_s = _ticks(), loop_s()

    @property
    def steal(self) -> float:
        """The share of the processors' time that the host gave to others."""
        whole, stolen = (now - before for now, before in zip(_ticks(), self._ticks, strict=True))
        return stolen / whole if whole > 0 else 0.0

    @property
    def change(self) -> float:
        """By what factor the same work takes longer or shorter than in the beginning."""
        ratio = loop_s() / self._speed_s
        return max(ratio, 1.0 / ratio)

    def warnings(self) -> list[str]:
        """What makes figures of this time doubtful, a line each."""
        steal, change = self.steal, self.change
        found = []
        if steal > MAX_STEAL:
            found.append(f"the host took {steal:.0%} of the processors' time: measure again when it is quiet")
        if change > MAX_CHANGE:
            found.append(
                f"the processor's speed changed by a factor of {change:.2f} meanwhile: measure again"
            )
        return found


def _ticks() -> tuple[int, int]:
    """All processors' time since the start, and what of it the host took (proc(5), `/proc/stat`)."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0, 0
    return sum(map(int, fields)), int(fields[7]) if len(fields) > 7 else 0


def loop_s() -> float:
    """CPU time of a fixed piece of work, the least of some."""
    times = []
    for _ in range(20):
        begun = time.thread_time()
        for _ in range(LOOPS):
            pass
        times.append(time.thread_time() - begun)
    return min(times)


@contextlib.contextmanager
def _beside(work: Callable[[int, int], None], processors: list[int]) -> Iterator[None]:
    """A process on each of the processors meanwhile."""
    context = get_context("fork")
    me = os.getpid()
    others = [context.Process(target=work, args=(one, me), daemon=True) for one in processors]
    for one in others:
        one.start()
    try:
        yield
    finally:
        for one in others:
            one.terminate()
        for one in others:
            one.join(5)


def _spin(processor: int, parent: int) -> None:
    """Nothing, until the parent is gone: one that is killed cannot end its children."""
    pin(processor)
    while os.getppid() == parent:
        for _ in range(LOOPS):
            pass


def _handshakes(processor: int, parent: int) -> None:
    from shakedown import native
    from shakedown.native.scenario import HandshakeId, Options

    pin(processor)
    while os.getppid() == parent:
        native.measure(HandshakeId(suite=SUITE), Options(repeat=20))
