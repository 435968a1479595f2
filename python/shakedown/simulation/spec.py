"""The core's description of a simulation: estimated handshakes, bearers, arrivals, server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from shakedown.errors import InputError
from shakedown.prediction.scenario import Scenario as Estimate
from shakedown.prediction.spec import bearer_spec, handshake_spec, tcp_spec
from shakedown.prediction.work import SideCost
from shakedown.profiles.bearer import Bearer
from shakedown.schema.base import SIDES, Side, builtins
from shakedown.schema.profiles import Cell, RandomAccess
from shakedown.simulation.fleet import SERIES_INTERVALS, Settled

NEGLIGIBLE = 0.25
"""With at most this share of the required precision of a replication's clients in transit, their lower load
at its start and end is negligible.
"""

MAX_IN_TRANSIT = 250_000
"""Limit of the clients of all warm-ups, and of all cool-downs: they take about five seconds to simulate. If
more are needed, the next run has them, or the figures are marked.
"""


@dataclass(frozen=True)
class Client:
    """A kind of client: its weight among all clients, its handshake, and the one that resumes its session.

    `resumption` is the share of its clients that resume; None: the fleet's share.
    """

    full: Estimate
    resumed: Estimate | None = None
    weight: float = 1.0
    resumption: float | None = None

    def record(self, settled: Settled) -> SideCost | None:
        """The server's work on the data that a client sends at once after its handshake; None without data.

        Raises `InputError`.
        """
        return None if settled.records is None else self.full.record(settled.records.size_bytes)

    def share_resuming(self, settled: Settled) -> float:
        """The share of its clients that resume."""
        return settled.fleet.resumption if self.resumption is None else self.resumption

    def sides(self, *which: Side) -> list[SideCost]:
        """The work of these sides, or of both, in all handshakes of this kind."""
        handshakes = [one for one in (self.full, self.resumed) if one is not None]
        return [getattr(one, side) for one in handshakes for side in which or SIDES]


def works(clients: Sequence[Client], settled: Settled) -> list[SideCost]:
    """The work of all clients and of their server, including that on data after the handshake."""
    records = (one.record(settled) for one in clients)
    return [*(side for one in clients for side in one.sides()), *(one for one in records if one is not None)]


def with_lowest_work(clients: Sequence[Client], settled: Settled) -> list[Client]:
    """The same clients; if any work has no figure, all work is at the low end of its range, because clients
    wait for one another. Times are then lower bounds.
    """
    if not any(cost.missing for cost in works(clients, settled)):
        return list(clients)
    return [
        replace(
            one,
            full=replace(one.full, lowest=True),
            resumed=None if one.resumed is None else replace(one.resumed, lowest=True),
        )
        for one in clients
    ]


def simulation_spec(
    clients: Sequence[Client], settled: Settled, *, workers: int, seed: int
) -> dict[str, Any]:
    """The core's scenario."""
    fleet = settled.fleet
    each = settled.clients // settled.replications
    warmup, cooldown = uncounted(clients, settled)
    return {
        "classes": [_class(one, settled) for one in clients],
        "clients": None if settled.arrivals.kind == "curve" else warmup + each + cooldown,
        "arrivals": settled.arrivals.spec(),
        "server": {
            "servers": fleet.servers,
            "balance": fleet.balance,
            "workers": workers,
            "discipline": fleet.discipline,
            "max_handshakes": fleet.max_handshakes,
            "accept_queue": fleet.accept_queue,
            "scaling": None if settled.autoscaling is None else asdict(settled.autoscaling),
            "admission": None if settled.admission is None else settled.admission.spec(),
        },
        "tcp": _tcp(clients),
        "timeout_s": settled.timeout_s,
        "retry": settled.retry,
        "warmup_clients": warmup,
        "cooldown_clients": cooldown,
        "records": None if settled.records is None else settled.records.spec(),
        "precision": (
            None
            if settled.precision is None
            else {"relative": settled.precision, "max_events": settled.max_events}
        ),
        "series_s": _series_width_s(clients, settled, workers),
        "seed": seed,
        "replications": settled.replications,
    }


def uncounted(clients: Sequence[Client], settled: Settled) -> tuple[int, int]:
    """The number of clients in the warm-up and in the cool-down of a replication.

    A client loads the server only after its messages have crossed the network. The warm-up therefore lasts
    at least as long as a handshake without a queue (99th percentile). In the cool-down further clients arrive
    for the same time, while the last counted ones perform their handshakes.
    """
    rate_per_s = settled.arrivals.rate_per_s
    if settled.precision is None or rate_per_s is None:
        return settled.warmup, 0
    in_transit = math.ceil(rate_per_s * max(one.full.unloaded()[1].p99 for one in clients))
    if in_transit <= NEGLIGIBLE * settled.precision * settled.clients / settled.replications:
        return settled.warmup, 0
    in_transit = min(in_transit, MAX_IN_TRANSIT // settled.replications)
    return max(settled.warmup, in_transit), in_transit


def _tcp(clients: Sequence[Client]) -> dict[str, Any]:
    """The TCP settings of all hosts; there is one setting, because the server has one."""
    ways = {one.full.bearer.tcp: one.full.bearer for one in clients}
    if len(ways) > 1:
        names = " and ".join(bearer.name for bearer in list(ways.values())[:2])
        raise InputError(
            f"the hosts of {names} have different TCP settings; accepted: one setting for all of a fleet"
        )
    return tcp_spec(clients[0].full.bearer)


def _series_width_s(clients: Sequence[Client], settled: Settled, workers: int) -> float:
    """A round width of intervals, for a readable number of them in a storm's series; 0 without a series."""
    if settled.arrivals.steady:
        return 0.0
    arrivals = settled.arrivals
    last_s = arrivals.at_s[-1] if arrivals.at_s else arrivals.span_s
    whole = sum(one.weight for one in clients)
    work_s = sum(one.weight / whole * _served_s(one.full) for one in clients)
    alone_s = max(one.full.unloaded()[1].p99 for one in clients)
    expected_s = max(last_s, settled.clients * work_s / (workers * settled.fleet.servers)) + alone_s
    return rounded(expected_s / SERIES_INTERVALS)


def mean_work_s(clients: Sequence[Client], settled: Settled) -> float:
    """The server's mean work on one client, over all kinds and resumptions; for clients at a steady rate,
    with the work on data after their handshakes.
    """
    sends = settled.records.count if settled.records is not None and settled.arrivals.steady else 0

    def work_s(one: Client) -> float:
        full_s = _served_s(one.full)
        records_s = sends * record_work_s(one, settled) if sends else 0.0
        if one.resumed is None:
            return full_s + records_s
        share = one.share_resuming(settled)
        return share * _served_s(one.resumed) + (1.0 - share) * full_s + records_s

    return sum(one.weight * work_s(one) for one in clients) / sum(one.weight for one in clients)


def _served_s(one: Estimate) -> float:
    """The server's work on a handshake, as simulated."""
    return one.work.server.with_connection.mean


def rounded(width_s: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least this width."""
    power = 10.0 ** math.floor(math.log10(max(width_s, 1e-6)))
    return next(float(f"{step * power:.6g}") for step in (1, 2, 5, 10) if step * power >= width_s * 0.999)


def _class(client: Client, settled: Settled) -> dict[str, Any]:
    full = client.full
    varies = settled.resumption_steps and client.resumed is not None and client.resumption is None
    return {
        "weight": client.weight,
        "handshake": varying_handshake_spec(full),
        "resumed": None if client.resumed is None else varying_handshake_spec(client.resumed),
        "resumption": 0.0 if client.resumed is None else client.share_resuming(settled),
        **({"resumption_steps": settled.resumption_steps} if varies else {}),
        "bearer": bearer_spec(full.bearer, from_idle=full.from_idle),
        "cell": cell_spec(full.bearer, settled.fleet.cells, from_idle=settled.fleet.from_idle),
        "record_work_s": record_work_s(client, settled),
    }


def record_work_s(client: Client, settled: Settled) -> float:
    """The server's work on data that a client sends at once; its low end if a part of it has no cost."""
    cost = client.record(settled)
    if cost is None:
        return 0.0
    return cost.total.low if client.full.lowest else cost.total.mean


def shared_cell(bearer: Bearer, cells: int) -> Cell:
    """The resource that clients of a bearer share in a cell. Raises `InputError`."""
    if bearer.cell is None:
        raise InputError(
            f"cells is {cells} and bearer {bearer.name!r} has no table [cell]; "
            "accepted: a profile with a table [cell], or no cells"
        )
    return bearer.cell


def cell_spec(bearer: Bearer, cells: int | None, *, from_idle: bool) -> dict[str, Any] | None:
    """The cells of a bearer's clients; None if each client has its own link. Raises `InputError`.

    Clients that do not begin idle already have access, but they still need a circuit.
    """
    if cells is None:
        return None
    cell = shared_cell(bearer, cells)
    found = builtins(cell)
    if not from_idle and isinstance(cell.entry, RandomAccess):
        found["entry"] = None
    return {"count": cells, "idle_after_s": bearer.energy.tail_s, **found}


def varying_handshake_spec(one: Estimate) -> dict[str, Any]:
    """An estimated handshake whose work varies, with the power of the client's processor."""
    handshake = handshake_spec(one.trace, one.work.client, one.work.server, one.bearer, spread=True)
    power = one.device.power
    return handshake | {"client_cpu_w": power.active_w, "client_idle_w": power.idle_w}
