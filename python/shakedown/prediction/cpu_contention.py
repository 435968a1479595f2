"""Other processors kept busy while this one is measured, as they are on a server that is saturated.

What looks like two processors is often two threads of one core, or two guests on it; caches and memory are
shared in any case. A worker whose neighbours work takes longer than one that is alone on the machine.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from multiprocessing import get_context

SUITE = "tls1.3/x25519/p256/server"
"""What neighbours do: handshakes, as clients and other workers would."""
LOOPS = 100_000
"""Between two looks at whether the parent lives: some milliseconds."""
IDLERS = 2
"""Processes that do nothing beside a server, which then has a third of its processor."""


@contextlib.contextmanager
def busy_neighbours(*, busy: bool = True) -> Iterator[None]:
    """This thread on the first of its processors, and handshakes on all others; nothing where not `busy`."""
    if not busy:
        yield
        return
    processors = sorted(os.sched_getaffinity(0))
    context = get_context("fork")
    me = os.getpid()
    others = [context.Process(target=_work, args=(one, me), daemon=True) for one in processors[1:]]
    for other in others:
        other.start()
    os.sched_setaffinity(0, {processors[0]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, set(processors))
        for other in others:
            other.terminate()
        for other in others:
            other.join(5)


@contextlib.contextmanager
def shared(processor: int) -> Iterator[None]:
    """Processes that do nothing on a processor, so that a server there has a part of it.

    Clients are then never too slow for the server: it finds work whenever it looks, and is never woken. What
    it does is counted by its own CPU time.
    """
    context = get_context("fork")
    me = os.getpid()
    idlers = [context.Process(target=_spin, args=(processor, me), daemon=True) for _ in range(IDLERS)]
    for one in idlers:
        one.start()
    try:
        yield
    finally:
        for one in idlers:
            one.terminate()
        for one in idlers:
            one.join(5)


def _spin(processor: int, parent: int) -> None:
    """Nothing, until the parent is gone: one that is killed cannot end its children."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {processor})
    while os.getppid() == parent:
        for _ in range(LOOPS):
            pass


def _work(processor: int, parent: int) -> None:
    from shakedown import native
    from shakedown.native.scenario import HandshakeId, Options

    os.sched_setaffinity(0, {processor})
    while os.getppid() == parent:
        native.measure(HandshakeId(suite=SUITE), Options(repeat=20))
