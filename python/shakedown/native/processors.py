"""The processors of threads, and their CPU times, as reported by the kernel."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def processors() -> list[int]:
    """The processors that this thread may use; empty if the system does not report them."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def pin(processor: int) -> None:
    """Pins this thread to one processor, if that is allowed."""
    with suppress(OSError):
        os.sched_setaffinity(0, {processor})


@contextmanager
def placed(wanted: Collection[int]) -> Iterator[None]:
    """Pins this thread, and those that it starts in the block, to `wanted` processors, if any are given."""
    before = processors()
    if wanted:
        os.sched_setaffinity(0, wanted)
    try:
        yield
    finally:
        if wanted:
            with suppress(OSError):
                os.sched_setaffinity(0, before)


def threads(process: int | str = "self") -> set[int]:
    """The ids of a process's threads; empty if the system has no such list."""
    with suppress(OSError):
        return {int(one.name) for one in Path(f"/proc/{process}/task").iterdir()}
    return set()


def ran_s(some: Iterable[int], process: int | str = "self") -> float:
    """CPU time of a process's threads as the scheduler counts it, kernel included.

    Raises:
        OSError: if a thread has ended, or the system does not count.
    """
    paths = (Path(f"/proc/{process}/task/{thread}/schedstat") for thread in some)
    return sum(int(path.read_text(encoding="ascii").split()[0]) for path in paths) * 1e-9
