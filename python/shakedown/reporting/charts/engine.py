"""The JavaScript engine that draws charts with Vega."""

from __future__ import annotations

import functools
import mmap
import resource
from typing import Any

from shakedown.errors import ShakedownError

RESERVED_BYTES = 66 << 30
"""Address space that the engine reserves when it starts (measured: 64 GiB); it uses little of it."""


@functools.cache
def vega() -> Any:  # noqa: ANN401 - the module has no types
    """`vl_convert`. Raises `ShakedownError` where its engine could not start and would end the process."""
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit_bytes != resource.RLIM_INFINITY:
        try:
            mmap.mmap(-1, RESERVED_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0).close()
        except OSError:
            raise ShakedownError(
                f"charts cannot be drawn: the address space is limited to {limit_bytes / (1 << 30):,.1f} GiB "
                f"(ulimit -v), and the chart engine reserves {RESERVED_BYTES >> 30}; accepted: a larger limit"
                ", or --no-report"
            ) from None
    import vl_convert

    return vl_convert
