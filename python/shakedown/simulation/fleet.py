"""Checks of a fleet's options, and defaults that depend on each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from shakedown.errors import InputError
from shakedown.native.scenario import Fleet
from shakedown.simulation.admission import Admission, parse_admission
from shakedown.simulation.arrivals import Arrivals, parse_arrivals
from shakedown.simulation.autoscaling import Autoscaling, parse_autoscaling
from shakedown.simulation.rate_curves import mean_clients
from shakedown.simulation.records import Records, parse_records
from shakedown.simulation.retry import CONSTANT, Backoff, parse_backoff
from shakedown.simulation.sessions import Steps, parse_sessions

DEFAULT_CLIENTS, DEFAULT_STORM_CLIENTS = 100_000, 10_000
MAX_CLIENTS = 1_000_000_000
MAX_RETRIES = 1000
MAX_CELLS = 1_000_000
MAX_REPLICATIONS = 1000
MAX_SERVERS = 10_000
MAX_MAX_EVENTS = 10**15

YEAR_S = 365.25 * 86_400.0
MAX_SPAN_S = 100.0 * YEAR_S
"""Virtual time ends after 584 years; clients that arrive later would be missing."""

REPLICATIONS, REPLICATIONS_TO_PRECISION = 10, 25
"""Replications of a steady load: for a given number of clients, if it is large enough and divisible; and if
the precision determines the number of clients. More replications make the width of an interval more
certain.
"""

MIN_REPLICATION_CLIENTS = 100
"""Minimum number of clients in a replication; with fewer, it would hardly reach a steady state."""

WARMUP = 0.25
"""Number of clients in the warm-up, as a share of the counted clients."""

PRECISION = 0.05
"""Half the width of the 95 % interval of each figure of a steady load, as a share of the figure."""

MAX_EVENTS = 100_000_000
"""Limit of the events of all runs of a steady load: about twenty seconds of one processor."""

BACKOFF_RETRIES, BACKOFF_TIMEOUT_S = 10, 30.0
MIN_TIMEOUT_S, MAX_TIMEOUT_S = 1e-9, 1e9

SERIES_INTERVALS = 120
"""Approximate number of intervals in a storm's time series."""


@dataclass(frozen=True)
class Settled:
    """A validated fleet with all defaults filled in.

    Attributes:
        clients: number of counted clients in all replications.
        warmup: number of clients in the warm-up of each replication.
        records: data that each client sends after its handshake; None: no data.
        timeout_s: timeout of one attempt; None: the limit of the transport.
        precision: target for half the width of each figure's 95 % interval, as a share of the figure; None
            for storms.
        max_events: limit of the events until a steady load reaches the precision; 0: one run of fixed length.
        resumption_steps: shares of clients that resume, each with its start; empty if the share is constant.
    """

    fleet: Fleet
    arrivals: Arrivals
    clients: int
    replications: int
    warmup: int
    timeout_s: float | None
    retries: int
    backoff: Backoff
    admission: Admission | None
    autoscaling: Autoscaling | None
    records: Records | None
    precision: float | None
    max_events: int
    resumption_steps: Steps = ()

    @property
    def retry(self) -> dict[str, Any] | None:
        """The attempts and pauses of a client, in the form that the core reads."""
        if not self.retries:
            return None
        pauses = self.backoff
        return {
            "attempts": self.retries + 1,
            "delay_s": pauses.base_s,
            "factor": pauses.factor,
            "maximum_s": pauses.max_s,
            "jitter": pauses.jitter,
        }


def settle(fleet: Fleet, folder: Path | None = None, arrivals: Arrivals | None = None) -> Settled:
    """Check a fleet and fill in its defaults. Raises `InputError`.

    `folder`: the folder to which paths of files of arrivals are relative. `arrivals`: the fleet's arrivals,
    if they were parsed before.
    """
    arrivals = arrivals or parse_arrivals(fleet.arrivals, folder)
    records = None if fleet.records is None else parse_records(fleet.records)
    clients = _clients(fleet, arrivals, records)
    replications = _replications(fleet, arrivals, clients)
    fleet = _with_cells(fleet, arrivals, clients // replications)
    fleet, steps = _with_resumption(fleet, arrivals)
    backoff = arrivals.backoff or fleet.retry is not None
    pauses = CONSTANT if not backoff else Backoff() if fleet.retry is None else parse_backoff(fleet.retry)
    timeout_s = fleet.timeout_s
    if timeout_s is None and (backoff or fleet.retries):
        timeout_s = BACKOFF_TIMEOUT_S
    if timeout_s is not None and not MIN_TIMEOUT_S <= timeout_s <= MAX_TIMEOUT_S:
        raise InputError(f"timeout is {timeout_s:g} s; accepted: {MIN_TIMEOUT_S:g} to {MAX_TIMEOUT_S:g} s")
    retries = fleet.retries if fleet.retries is not None else BACKOFF_RETRIES if backoff else 0
    for name, value, least, most in (
        ("retries", retries, 0, MAX_RETRIES),
        ("max handshakes", fleet.max_handshakes, 1, MAX_CLIENTS),
        ("accept queue", fleet.accept_queue, 0, MAX_CLIENTS),
        ("servers", fleet.servers, 1, MAX_SERVERS),
        ("cells", fleet.cells, 1, MAX_CELLS),
    ):
        if value is not None and not least <= value <= most:
            raise InputError(f"{name} is {value}; accepted: a whole number from {least} to {most:,}")
    if fleet.balance == "cell" and fleet.cells is None:
        raise InputError('balance is "cell" and there are no cells; accepted: a number of cells, too')
    warmup = math.ceil(WARMUP * clients / replications) if arrivals.steady else 0
    if arrivals.rate_per_s is not None:
        span_s = (clients / replications + warmup) / arrivals.rate_per_s
        if span_s > MAX_SPAN_S:
            raise InputError(
                f'clients is {clients:,} and "{arrivals.text}" takes {span_s / YEAR_S:,.0f} years for them; '
                f"accepted: {MAX_SPAN_S / YEAR_S:,.0f} years at most"
            )
    admission = None if fleet.admission is None else parse_admission(fleet.admission)
    precision = _precision(fleet, arrivals)
    fixed = fleet.clients is not None or fleet.endpoints
    max_events = 0 if fixed else MAX_EVENTS if fleet.max_events is None else fleet.max_events
    return Settled(
        fleet,
        arrivals,
        clients,
        replications,
        warmup,
        timeout_s,
        retries,
        pauses,
        admission,
        _autoscaling(fleet),
        records,
        precision,
        max_events,
        steps,
    )


def _with_resumption(fleet: Fleet, arrivals: Arrivals) -> tuple[Fleet, Steps]:
    """The fleet with the share of clients that resume, computed from the lifetime of sessions if it is
    given; and the shares over time, if they vary.
    """
    if fleet.sessions is None:
        return fleet, ()
    found = parse_sessions(fleet.sessions).resuming(arrivals)
    if fleet.resumption not in (0.0, found.share):
        raise InputError(
            f"resumption is {fleet.resumption:g} and sessions {fleet.sessions!r}; accepted: one of them"
        )
    return replace(fleet, resumption=found.share), found.steps


def _autoscaling(fleet: Fleet) -> Autoscaling | None:
    if fleet.autoscale is None:
        return None
    if fleet.balance in ("hash", "cell"):
        raise InputError(
            f'autoscale is given and balance is "{fleet.balance}"; accepted with it: round-robin, '
            "least-connections"
        )
    return parse_autoscaling(fleet.autoscale, fleet.servers)


def _with_cells(fleet: Fleet, arrivals: Arrivals, clients: int) -> Fleet:
    """The fleet with its number of cells, from `clients_per_cell`; `clients`: number of clients in a
    replication.
    """
    each = fleet.clients_per_cell
    if each is None:
        return fleet
    if fleet.cells is not None:
        raise InputError(f"clients per cell is {each} and cells {fleet.cells}; accepted: one of them")
    if arrivals.steady:
        raise InputError(
            f'clients per cell is {each} and arrivals "{arrivals.text}" do not determine the '
            "number of clients; accepted: cells, or another arrival process"
        )
    if not 1 <= each <= MAX_CLIENTS:
        raise InputError(f"clients per cell is {each}; accepted: a whole number from 1 to {MAX_CLIENTS:,}")
    return replace(fleet, cells=math.ceil(clients / each), clients_per_cell=None)


def _precision(fleet: Fleet, arrivals: Arrivals) -> float | None:
    for name, value in (("precision", fleet.precision), ("max events", fleet.max_events)):
        if value is not None and not arrivals.steady:
            accepted = "accepted with a rate: poisson, deterministic, bursts"
            raise InputError(f'{name} is {value:g} and arrivals are "{arrivals.text}"; {accepted}')
    if fleet.max_events is not None and fleet.clients is not None:
        raise InputError(
            f"max events is {fleet.max_events} and clients {fleet.clients}; accepted: one of them"
        )
    if fleet.max_events is not None and not 1 <= fleet.max_events <= MAX_MAX_EVENTS:
        raise InputError(
            f"max events is {fleet.max_events}; accepted: a whole number from 1 to {MAX_MAX_EVENTS:,}"
        )
    if fleet.precision is not None and not 0.001 <= fleet.precision <= 1.0:
        raise InputError(f"precision is {fleet.precision:g}; accepted: a share from 0.1% to 100%")
    return (PRECISION if fleet.precision is None else fleet.precision) if arrivals.steady else None


def _clients(fleet: Fleet, arrivals: Arrivals, records: Records | None) -> int:
    given = fleet.clients
    if given is not None and not 1 <= given <= MAX_CLIENTS:
        raise InputError(f"clients is {given}; accepted: a whole number from 1 to {MAX_CLIENTS:,}")
    if arrivals.kind == "curve":
        if given is not None:
            raise InputError(
                f'clients is {given} and "{arrivals.text}" determines their number; accepted: no number'
            )
        mean = mean_clients(arrivals.points)
        if not 1.0 <= mean <= MAX_CLIENTS:
            raise InputError(
                f'"{arrivals.text}" brings {mean:,.3g} clients on average; accepted: 1 to {MAX_CLIENTS:,}'
            )
        return round(mean)
    if arrivals.kind != "file":
        if arrivals.steady and given is None and records is not None:
            # `max_events` does not limit the first run, so its length is limited here. A record is two
            # events.
            enough = (MAX_EVENTS if fleet.max_events is None else fleet.max_events) // (4 * records.count)
            enough -= enough % (fleet.replications or REPLICATIONS_TO_PRECISION)
            return max(REPLICATIONS_TO_PRECISION * MIN_REPLICATION_CLIENTS, min(DEFAULT_CLIENTS, enough))
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
        if fleet.clients is None and arrivals.steady:
            return REPLICATIONS_TO_PRECISION
        enough = clients >= REPLICATIONS * MIN_REPLICATION_CLIENTS and clients % REPLICATIONS == 0
        return REPLICATIONS if arrivals.steady and enough else 1
    if not 1 <= given <= MAX_REPLICATIONS:
        raise InputError(f"replications is {given}; accepted: a whole number from 1 to {MAX_REPLICATIONS:,}")
    if arrivals.kind in ("file", "curve") and given > 1:
        what = "times from a file" if arrivals.kind == "file" else "a curve"
        raise InputError(f"replications is {given}; accepted with {what}: 1")
    if clients % given:
        raise InputError(
            f"replications is {given} and clients {clients:,}; accepted: a divisor, so that all have as many"
        )
    return given
