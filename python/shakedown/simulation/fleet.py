"""A fleet's options, checked, with the defaults that go together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shakedown.errors import InputError
from shakedown.native.scenario import Fleet
from shakedown.simulation.arrivals import Arrivals, parse_arrivals

DEFAULT_CLIENTS, DEFAULT_STORM_CLIENTS = 100_000, 10_000
MAX_CLIENTS = 1_000_000_000
MAX_RETRIES = 1000
MAX_REPLICATIONS = 1000

YEAR_S = 365.25 * 86_400.0
MAX_SPAN_S = 100.0 * YEAR_S
"""Virtual time ends after 584 years, and clients that had not come by then would be missing."""

REPLICATIONS = 10
"""Replications of a steady load, where as many clients can be shared out evenly."""

LEAST_EACH = 100
"""Fewer clients a replication would tell little of a steady state."""

WARMUP = 0.25
"""Clients before those counted, as a share of them, so that a steady load is found as later ones find it."""

BACKOFF_RETRIES, BACKOFF_TIMEOUT_S = 10, 30.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0

SERIES_INTERVALS = 120
"""About how many intervals a storm's time series has."""


@dataclass(frozen=True)
class Settled:
    """A fleet with nothing left open.

    Attributes:
        clients: those counted, over all replications.
        warmup: those before them, in each replication.
        timeout_s: how long a client waits in one attempt; None: as long as its transport bears.
    """

    fleet: Fleet
    arrivals: Arrivals
    clients: int
    replications: int
    warmup: int
    timeout_s: float | None
    retries: int

    @property
    def retry(self) -> dict[str, Any] | None:
        """When a client tries again, as the core reads it."""
        if not self.retries:
            return None
        backoff = self.arrivals.backoff
        return {
            "attempts": self.retries + 1,
            "delay_s": FIRST_PAUSE_S,
            "factor": 2.0 if backoff else 1.0,
            "maximum_s": LONGEST_PAUSE_S,
            "jitter": 1.0 if backoff else 0.0,
        }


def settle(fleet: Fleet, folder: Path | None = None, arrivals: Arrivals | None = None) -> Settled:
    """Checks a fleet and fills in its defaults. Raises `InputError`.

    `folder` is where the path of a file of arrivals begins; `arrivals` are the fleet's, if read before.
    """
    for name in ("clients", "retries", "max_handshakes", "accept_queue", "replications"):
        value: object = getattr(fleet, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise InputError(f"{name.replace('_', ' ')} is {value!r:.40}; accepted: a whole number")
    arrivals = arrivals or parse_arrivals(fleet.arrivals, folder)
    clients = _clients(fleet, arrivals)
    replications = _replications(fleet, arrivals, clients)
    backoff = arrivals.backoff
    timeout_s = fleet.timeout_s
    if timeout_s is None and (backoff or fleet.retries):
        timeout_s = BACKOFF_TIMEOUT_S
    if timeout_s is not None and not (math.isfinite(timeout_s) and timeout_s > 0.0):
        raise InputError(f"timeout is {timeout_s:g}; accepted: a time above 0")
    retries = fleet.retries if fleet.retries is not None else BACKOFF_RETRIES if backoff else 0
    for name, value, least, most in (
        ("retries", retries, 0, MAX_RETRIES),
        ("max handshakes", fleet.max_handshakes, 1, MAX_CLIENTS),
        ("accept queue", fleet.accept_queue, 0, MAX_CLIENTS),
    ):
        if value is not None and not least <= value <= most:
            raise InputError(f"{name} is {value}; accepted: a whole number from {least} to {most:,}")
    if not 0.0 <= fleet.resumption <= 1.0:
        raise InputError(f"resumption is {fleet.resumption:g}; accepted: a share from 0 to 1")
    if fleet.discipline not in ("fifo", "ps"):
        raise InputError(f'discipline is "{fleet.discipline}"; accepted: fifo, ps (processor sharing)')
    warmup = math.ceil(WARMUP * clients / replications) if arrivals.steady else 0
    if arrivals.rate_per_s is not None:
        span_s = (clients / replications + warmup) / arrivals.rate_per_s
        if span_s > MAX_SPAN_S:
            raise InputError(
                f'clients is {clients:,} and "{arrivals.text}" takes {span_s / YEAR_S:,.0f} years for them; '
                f"accepted: {MAX_SPAN_S / YEAR_S:,.0f} years at most"
            )
    return Settled(fleet, arrivals, clients, replications, warmup, timeout_s, retries)


def _clients(fleet: Fleet, arrivals: Arrivals) -> int:
    given = fleet.clients
    if given is not None and not 1 <= given <= MAX_CLIENTS:
        raise InputError(f"clients is {given}; accepted: a whole number from 1 to {MAX_CLIENTS:,}")
    if arrivals.kind != "file":
        return given or (DEFAULT_CLIENTS if arrivals.steady else DEFAULT_STORM_CLIENTS)
    there = len(arrivals.at_s)
    if given not in (None, there):
        raise InputError(
            f'clients is {given} and "{arrivals.text}" has {there:,} times; accepted: as many, or none given'
        )
    return there


def _replications(fleet: Fleet, arrivals: Arrivals, clients: int) -> int:
    given = fleet.replications
    if given is None:
        enough = clients >= REPLICATIONS * LEAST_EACH and clients % REPLICATIONS == 0
        return REPLICATIONS if arrivals.steady and enough else 1
    if not 1 <= given <= MAX_REPLICATIONS:
        raise InputError(f"replications is {given}; accepted: a whole number from 1 to {MAX_REPLICATIONS:,}")
    if arrivals.kind == "file" and given > 1:
        raise InputError(f"replications is {given}; accepted with times from a file: 1")
    if clients % given:
        raise InputError(
            f"replications is {given} and clients {clients:,}; accepted: a divisor, so that all have as many"
        )
    return given
