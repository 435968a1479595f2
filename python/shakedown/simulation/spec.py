"""What is simulated, as the core reads it: priced handshakes, bearers, arrivals, server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.prediction.scenario import Scenario as Priced
from shakedown.prediction.spec import bearer_spec, handshake_spec
from shakedown.simulation.fleet import SERIES_INTERVALS, Settled


@dataclass(frozen=True)
class Client:
    """A kind of client: how many of all are such, its handshake, and the one by which it resumes.

    `resumption` is the share of them that resume; None: the fleet's.
    """

    full: Priced
    resumed: Priced | None = None
    weight: float = 1.0
    resumption: float | None = None


def simulation_spec(
    clients: Sequence[Client], settled: Settled, *, workers: int, seed: int, series_s: float | None = None
) -> dict[str, Any]:
    """The core's scenario; `series_s` is the width of the time series' intervals, 0 for none."""
    fleet = settled.fleet
    each = settled.clients // settled.replications
    return {
        "classes": [_class(one, settled) for one in clients],
        "clients": each + settled.warmup,
        "arrivals": settled.arrivals.spec(),
        "server": {
            "workers": workers,
            "discipline": fleet.discipline,
            "max_handshakes": fleet.max_handshakes,
            "accept_queue": fleet.accept_queue,
        },
        "timeout_s": settled.timeout_s,
        "retry": settled.retry,
        "warmup_clients": settled.warmup,
        "series_s": 0.0 if series_s is None else series_s,
        "seed": seed,
        "replications": settled.replications,
    }


def series_width_s(clients: Sequence[Client], settled: Settled, workers: int) -> float:
    """A round width of intervals, so that a storm's whole time makes a readable number of them."""
    if settled.arrivals.steady:
        return 0.0
    last_s = settled.arrivals.at_s[-1] if settled.arrivals.at_s else settled.arrivals.within_s
    whole = sum(one.weight for one in clients)
    work_s = sum(one.weight / whole * one.full.service_s.mean for one in clients)
    alone_s = max(one.full.unloaded()[1].p99 for one in clients)
    expected_s = max(last_s, settled.clients * work_s / workers) + alone_s
    return rounded(expected_s / SERIES_INTERVALS)


def mean_work_s(clients: Sequence[Client], settled: Settled) -> float:
    """The server's work on one client, on average over the kinds and those that resume."""

    def work_s(one: Client) -> float:
        full_s = one.full.service_s.mean
        if one.resumed is None:
            return full_s
        share = settled.fleet.resumption if one.resumption is None else one.resumption
        return share * one.resumed.service_s.mean + (1.0 - share) * full_s

    return sum(one.weight * work_s(one) for one in clients) / sum(one.weight for one in clients)


def rounded(width_s: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is no less."""
    power = 10.0 ** math.floor(math.log10(max(width_s, 1e-6)))
    return next(float(f"{step * power:.6g}") for step in (1, 2, 5, 10) if step * power >= width_s * 0.999)


def _class(client: Client, settled: Settled) -> dict[str, Any]:
    full = client.full
    share = settled.fleet.resumption if client.resumption is None else client.resumption
    return {
        "weight": client.weight,
        "handshake": priced_spec(full),
        "resumed": None if client.resumed is None else priced_spec(client.resumed),
        "resumption": 0.0 if client.resumed is None else share,
        "bearer": bearer_spec(full.bearer, from_idle=full.from_idle),
    }


def priced_spec(one: Priced) -> dict[str, Any]:
    """A priced handshake whose work varies, with the power of the client's processor."""
    handshake = handshake_spec(one.trace, one.client, one.server, one.bearer, spread=True)
    power = one.device.energy
    return handshake | {"client_cpu_w": power.active_w, "client_idle_w": power.idle_w}
