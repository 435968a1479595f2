"""A handshake over a network without a queue: replayed by the simulator's core, with the same links, TCP and
datagrams that `simulate` runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from shakedown.errors import InputError
from shakedown.models.distribution import Distribution
from shakedown.models.energy import LinkBytes
from shakedown.native import virtual_time
from shakedown.prediction.spec import bearer_spec, tcp_spec
from shakedown.profiles import Bearer

SEED = 1
"""The seed: the same scenario has the same result on every machine."""

MAX_REPLAYS = 32
"""Limit of cached replays. The table, the chart and other rates use the same replay."""

MIN_COMPLETED = 30
"""Minimum number of replayed handshakes that complete."""

_coarse = ContextVar("coarse", default=False)


@contextmanager
def replays(*, coarse: bool) -> Iterator[None]:
    """Make replays coarse: first answers, from few handshakes, shown until the full ones are computed.

    The setting applies to this thread only; threads started inside begin with full replays.
    """
    before = _coarse.set(coarse)
    try:
        yield
    finally:
        _coarse.reset(before)


@dataclass(frozen=True, slots=True)
class Exchange:
    """Times of a handshake over a network, from its first packet.

    Attributes:
        ready: until the client may send application data, the connection included.
        done: until both sides have finished. If a client is ready and the server gives up, only ``ready``
            includes the handshake; no quantile of ``done`` is below that of ``ready``.
        failed: probability that a side gives up before the client is ready; ``ready`` excludes these
            handshakes.
        link_bytes: mean bytes on the link, including headers, acknowledgements and retransmissions.
        setup_s: mean time of the radio's set-up; 0 if it was connected.
        handshakes: number of replayed handshakes; 1 if nothing varies.
        completed: how many of them both sides complete; None if all that lose nothing are equal and complete.
        highest_percentile: the highest percentile of ``ready``, over all handshakes, that at least five
            replayed ones exceed.
        p99_interval_s: 95 % confidence interval of the 99th percentile of ``ready``, in seconds; both ends
            are equal if nothing varies.
    """

    ready: Distribution
    done: Distribution
    failed: float
    link_bytes: LinkBytes
    p99_interval_s: tuple[float, float]
    setup_s: float
    handshakes: int
    completed: int | None
    highest_percentile: float


def exchange(
    handshake: Mapping[str, Any], bearer: Bearer, *, from_idle: bool = False, **changes: object
) -> Exchange:
    """Replay a handshake (a spec of `prediction.spec`) over a bearer.

    ``changes`` replace keys of the bearer's spec. With ``from_idle`` the radio is set up first, if the bearer
    states how long this takes. Raises `InputError` if the handshake cannot be replayed, or if fewer than
    `MIN_COMPLETED` complete.
    """
    link = bearer_spec(bearer, from_idle=from_idle) | changes
    return replayed({"handshake": handshake, "bearer": link, "tcp": tcp_spec(bearer)}, bearer.name)


def replayed(spec: Mapping[str, Any], bearer: str) -> Exchange:
    """Run a `Replay` of the core over a named bearer. Raises `InputError`."""
    try:
        found = _replayed(json.dumps({"seed": SEED, "coarse": _coarse.get(), **spec}))
    except InputError as error:
        raise InputError(f"bearer {bearer!r}: {error}") from None
    # First answers are of few handshakes.
    few = found is not None and found.completed is not None and found.completed < MIN_COMPLETED
    if found is None or (few and not _coarse.get()):
        stream = spec["handshake"]["transport"] == "stream"
        instead = "a suite over datagrams, a faster bearer" if stream else "a faster bearer"
        handshakes = (
            "no handshake completes, its packets"
            if found is None
            else f"only {found.completed:,} of {found.handshakes:,} replayed handshakes complete, packets"
        )
        raise InputError(
            f"bearer {bearer!r}: {handshakes} are lost or later than the transport's timers; "
            f"accepted: {instead}, or less loss"
        )
    return found


@lru_cache(maxsize=MAX_REPLAYS)
def _replayed(spec: str) -> Exchange | None:
    """The result of a replay; None if no handshake succeeds. It is cached and must not be modified."""
    found = virtual_time.replay(spec)
    if not found["ready"]["values_s"] or not found["done"]["values_s"]:
        return None
    ready, done = (
        Distribution(np.array(found[name]["values_s"]), np.array(found[name]["weights"]))
        for name in ("ready", "done")
    )
    low_s, high_s = found["p99_interval_s"]
    # Almost equal times are one value, their mean, which may be outside an interval of single times.
    p99_s = ready.p99
    return Exchange(
        ready,
        done.at_least(ready),
        found["failed"],
        LinkBytes(*found["link_bytes"]),
        (min(low_s, p99_s), max(high_s, p99_s)),
        found["setup_s"],
        found["handshakes"],
        found["completed"],
        100.0 * found["highest_share"],
    )
