"""Ctrl-C and SIGTERM during steps that must not be interrupted."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SAME_S = 0.3
"""Signals within this time count as one, because `timeout` sends its signal twice."""


@contextmanager
def noted(most: int | None = None) -> Iterator[list[float]]:
    """Records the times of Ctrl-C, and of SIGTERM if it has the same handler, instead of raising
    `KeyboardInterrupt`. After `most` recorded signals it is raised.
    """
    came: list[float] = []

    def note(_number: int, _frame: object) -> None:
        now_s = time.monotonic()
        if came and now_s - came[-1] < SAME_S:
            return
        if len(came) == most:
            raise KeyboardInterrupt
        came.append(now_s)

    # Only the main thread may set handlers, and no other thread is interrupted.
    here = threading.current_thread() is threading.main_thread()
    ours = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if here and signal.getsignal(number) is signal.default_int_handler
    ]
    for number in ours:
        signal.signal(number, note)
    try:
        yield came
    finally:
        for number in ours:
            signal.signal(number, signal.default_int_handler)
