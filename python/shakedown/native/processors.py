"""Where threads run, and for how long they ran, as the kernel says."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def processors() -> list[int]:
    """Those that this thread may use; none where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def pin(processor: int) -> None:
    """This thread on one processor, where that is allowed."""
    with suppress(OSError):
        os.sched_setaffinity(0, {processor})


@contextmanager
def placed(wanted: Collection[int]) -> Iterator[None]:
    """This thread, and those that it starts meanwhile, on some processors; wherever, of none."""
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
    """A process's threads; none where the system has no such list."""
    with suppress(OSError):
        return {int(one.name) for one in Path(f"/proc/{process}/task").iterdir()}
    return set()


def ran_s(some: Iterable[int], process: int | str = "self") -> float:
    """CPU time of a process's threads as the scheduler counts it, kernel included.

    Raises:
        OSError: where one has ended, or the system does not count.
    """
    paths = (Path(f"/proc/{process}/task/{thread}/schedstat") for thread in some)
    return sum(int(path.read_text(encoding="ascii").split()[0]) for path in paths) * 1e-9
