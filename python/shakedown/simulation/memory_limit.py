"""A check that memory suffices for all clients that are active at the same time.

A simulation needs memory only for clients that have arrived and not finished. In a storm, or if the server is
overloaded, these are almost all clients.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shakedown.errors import InputError
from shakedown.native import virtual_time
from shakedown.simulation.fleet import Settled
from shakedown.simulation.spec import Client, mean_work_s, uncounted

REPLAYED_BYTES = 3_000
"""Memory of an active client, measured and rounded down, so that no possible simulation is refused."""

ENGINE_BYTES = 80_000
"""The same for two protocol engines."""

OPEN_BYTES = 24
"""Memory of a connection that is open for records."""

JOB_BYTES = 40
"""Memory of a record that waits for a worker."""

GIB = 1 << 30


def check_room(
    clients: Sequence[Client],
    settled: Settled,
    workers: int,
    spec: Mapping[str, Any] | None = None,
    *,
    engines: bool = False,
) -> None:
    """Raise `InputError` if the clients that are active at once do not fit into this machine's memory. Of a
    fleet that is simulated in parts, those of the parts that run at once count.
    """
    threads, parts = os.cpu_count() or 1, 1
    if spec is not None and settled.fleet.servers > 1 and not engines:
        _, _, parts = virtual_time.pieces(virtual_time.spec_text(spec), threads)
    many = at_once(clients, settled, workers) * min(settled.replications * parts, threads) / parts
    runs = min(settled.replications * parts, threads) / parts
    still_open = open_at_once(settled) * runs
    waiting = records_waiting(clients, settled, workers) * runs
    needed = many * (ENGINE_BYTES if engines else REPLAYED_BYTES)
    needed += still_open * OPEN_BYTES + waiting * JOB_BYTES
    free = free_bytes()
    if free is not None and needed > free:
        more, less = "", ""
        if still_open:
            more = f", {still_open:,.0f} connections open and {waiting:,.0f} records waiting"
            less = ", or clients that send less"
        raise InputError(
            f"clients is {settled.clients}: about {many:,.0f} of them would be in progress at once{more}, "
            f"which takes {needed / GIB:,.1f} GiB of memory where {free / GIB:,.1f} are free; accepted: "
            f"fewer clients, more workers, or arrivals over a longer time{less}"
        )


def at_once(clients: Sequence[Client], settled: Settled, workers: int) -> float:
    """The approximate maximum of active clients of a replication."""
    each = settled.clients / settled.replications + sum(uncounted(clients, settled))
    arrivals = settled.arrivals
    span_s = each / arrivals.rate_per_s if arrivals.rate_per_s is not None else arrivals.span_s
    rate = each / span_s if span_s > 0.0 else math.inf
    work_s = mean_work_s(clients, settled) / (workers * settled.fleet.servers)
    piled = each * max(0.0, 1.0 - 1.0 / (rate * work_s)) if work_s > 0.0 else 0.0
    alone_s = max(one.full.unloaded()[0].mean for one in clients)
    found = min(each, max(piled, float(min(arrivals.size, each))) + rate * alone_s)
    if settled.timeout_s is not None and not settled.retries:
        found = min(found, max(rate * settled.timeout_s, float(arrivals.size)))
    return found


def open_at_once(settled: Settled) -> float:
    """The approximate number of connections of a replication that are open after their handshakes."""
    records, arrivals = settled.records, settled.arrivals
    if records is None:
        return 0.0
    each = settled.clients / settled.replications + settled.warmup
    # A curve starts with the connections that its first rate would leave open.
    rate_per_s = arrivals.points[0][1] if arrivals.points else arrivals.rate_per_s or 0.0
    at_first = _let_in(settled, rate_per_s) * records.count * records.interval_s
    return max(at_first, 0.0 if arrivals.steady else each)


def records_waiting(clients: Sequence[Client], settled: Settled, workers: int) -> float:
    """The approximate number of a replication's records that wait for a worker at the end, if clients arrive
    at a rate and send more than the workers can process.
    """
    records, rate_per_s = settled.records, settled.arrivals.rate_per_s
    if records is None or rate_per_s is None:
        return 0.0
    let_in = _let_in(settled, rate_per_s)
    offered = let_in * mean_work_s(clients, settled) / (workers * _most_servers(settled))
    span_s = (settled.clients / settled.replications + sum(uncounted(clients, settled))) / rate_per_s
    return let_in * records.count * span_s * max(0.0, 1.0 - 1.0 / offered) if offered > 0.0 else 0.0


def _let_in(settled: Settled, rate_per_s: float) -> float:
    """The highest rate of clients that the servers admit."""
    admission = settled.admission
    if admission is None:
        return rate_per_s
    return min(rate_per_s, admission.rate_per_s * _most_servers(settled))


def _most_servers(settled: Settled) -> int:
    scaling = settled.autoscaling
    return settled.fleet.servers if scaling is None else scaling.max_servers


def free_bytes() -> int | None:
    """The free memory of this machine; None if the system does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None
