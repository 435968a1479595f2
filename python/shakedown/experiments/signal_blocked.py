"""Work that Ctrl-C and SIGTERM do not interrupt, such as the start and end of a cluster of processes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Container
from multiprocessing import active_children
from typing import Any

from shakedown.native.signals import noted

POLL_INTERVAL_S = 0.2
"""How often waiting threads check whether the awaited thread still exists."""


class SignalBlocked:
    """Runs work in a thread that blocks SIGINT and SIGTERM; processes that the work starts inherit the
    blocked signals. The waiting thread receives them.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self._found: Any = None
        self._raised: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), name="signal-blocked", daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._found = work()
        except BaseException as error:
            self._raised = error

    def is_over(self, timeout_s: float) -> bool:
        """Waits at most `timeout_s` for the end of the work; returns whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def result(self) -> Any:  # noqa: ANN401 - what the work returns
        """Waits for the end of the work. Raises the work's error, and `KeyboardInterrupt`."""
        while not self.is_over(POLL_INTERVAL_S):
            pass
        if self._raised is not None:
            raise self._raised
        return self._found


def to_the_end(work: Callable[[], Any], others: Container[int | None], *, hurry: bool = False) -> None:
    """Runs work to its end; Ctrl-C is raised afterwards. Ctrl-C or `hurry` kills this process's children
    except `others`, because the work may wait for them.

    If the work were interrupted, Dask would start it again at the end of the program, while a thread still
    executes it.
    """
    with noted() as signals:
        doing = SignalBlocked(work)
        while not doing.is_over(POLL_INTERVAL_S):
            if hurry or signals:
                kill_children(others)
        doing.result()
    if signals:
        raise KeyboardInterrupt


def kill_children(others: Container[int | None]) -> None:
    for child in active_children():
        if child.pid not in others:
            child.kill()
