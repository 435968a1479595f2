"""What is simulated, as the core reads it: priced handshakes, bearers, arrivals, server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.errors import InputError
from shakedown.models.datagrams import Datagrams
from shakedown.prediction.network import timers
from shakedown.prediction.prices import Price
from shakedown.prediction.scenario import Scenario as Priced
from shakedown.profiles.bearer import Bearer, BearerEnergy
from shakedown.schema.base import Side
from shakedown.simulation.fleet import SERIES_INTERVALS, Settled

WRITE_BYTES = 4096
"""OpenSSL's buffer: full, it is handed to TCP; what is left of a record that is longer goes at once."""

DTLS_FRAGMENT_BYTES = 25
"""What a record of a message that is cut takes more: its header, and that of the handshake again."""

MIN_MTU_BYTES = 68
_NEGLIGIBLE = 1e-9


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
        "handshake": handshake_spec(full),
        "resumed": None if client.resumed is None else handshake_spec(client.resumed),
        "resumption": 0.0 if client.resumed is None else share,
        "bearer": bearer_spec(full.bearer, from_idle=settled.fleet.from_idle),
    }


def handshake_spec(one: Priced) -> dict[str, Any]:
    """A priced handshake: each message with what it costs its sender and its receiver.

    Work outside any message, and the connection's, come before a side's first work, as in `pricing.network`.
    """
    trace = one.trace
    times: dict[tuple[Side, int], dict[str, Any]] = {}
    sides: tuple[tuple[Side, Price], ...] = (("client", one.client), ("server", one.server))
    for side, price in sides:
        before_s = price.message_s.get(None, 0.0) + price.connection_s
        before_sd_s = price.message_sd_s.get(None, 0.0)
        for message in trace.messages:
            mean_s = price.message_s.get(message.index, 0.0) + before_s
            sd_s = math.hypot(price.message_sd_s.get(message.index, 0.0), before_sd_s)
            times[side, message.index] = work_spec(mean_s, sd_s)
            before_s = before_sd_s = 0.0
    way = timers(trace, one.client, one.server, one.bearer)
    last = max((message.flight or 0 for message in trace.messages), default=0)
    found: dict[str, Any] = {
        "name": trace.suite,
        "transport": "datagram" if trace.datagrams else "stream",
        "messages": [
            {
                "from": message.sender,
                "name": message.name,
                "bytes": max(1, round(message.size_bytes)),
                "flight": last + 1 if message.flight is None else message.flight,
                "unit": message.unit or 0,
                "generate": times[message.sender, message.index],
                "process": times[_other(message.sender), message.index],
            }
            for message in trace.messages
        ],
        "write_bytes": None if trace.datagrams else WRITE_BYTES,
        "retransmission": None if way is None else retransmission_spec(way),
        "client_cpu_w": one.device.energy.active_w,
        "client_idle_w": one.device.energy.idle_w,
    }
    return found


def retransmission_spec(way: Datagrams) -> dict[str, Any]:
    """How datagrams are sent again, as the core has it. WTLS leaves long ones to IP, DTLS cuts records."""
    return {
        "initial_s": way.timeout_s,
        "maximum_s": way.max_timeout_s,
        "sends": way.sends,
        "server_timer": not way.client_repeats,
        "answers_duplicates": way.client_repeats,
        "fragment_bytes": None if way.client_repeats else DTLS_FRAGMENT_BYTES,
    }


def _other(side: Side) -> Side:
    return "server" if side == "client" else "client"


def work_spec(mean_s: float, sd_s: float) -> dict[str, Any]:
    """A time of work: fixed and an exponential part, as `models.waiting.spread_service`; where it varies by
    more than its mean, lognormal.
    """
    if mean_s <= 0.0 or sd_s <= _NEGLIGIBLE * mean_s:
        return {"kind": "constant", "s": max(mean_s, 0.0)}
    if sd_s <= mean_s:
        return {"kind": "exponential", "minimum_s": mean_s - sd_s, "mean_s": mean_s}
    spread = 1.0 + (sd_s / mean_s) ** 2
    return {
        "kind": "lognormal",
        "minimum_s": 0.0,
        "median_s": mean_s / math.sqrt(spread),
        "sigma": math.sqrt(math.log(spread)),
    }


def bearer_spec(bearer: Bearer, *, from_idle: bool) -> dict[str, Any]:
    """A bearer for the core's links; radios that begin idle are set up before the first packet.

    Raises `InputError` where its packets are too short for the core's.
    """
    if bearer.mtu_bytes < MIN_MTU_BYTES:
        raise InputError(
            f"bearer {bearer.name!r} carries packets of {bearer.mtu_bytes} bytes; accepted in a simulation: "
            f"{MIN_MTU_BYTES} or more (RFC 791)"
        )
    up, down = bearer.up, bearer.down
    return {
        "up_bits_per_s": up.rate_bits_per_s,
        "down_bits_per_s": down.rate_bits_per_s,
        "traversal_s": bearer.traversal_s,
        "traversal_up": up.delay.as_json(),
        "traversal_down": down.delay.as_json(),
        "traversal_holds_s": bearer.delay_holds_s,
        "mtu_bytes": bearer.mtu_bytes,
        "ip_bytes": bearer.ip_bytes,
        "udp_bytes": bearer.udp_bytes,
        "packet_overhead_bytes": bearer.packet_overhead_bytes,
        "link_encryption": bearer.link_encryption,
        "loss_up": up.loss,
        "loss_down": down.loss,
        "loss_burst_packets_up": up.loss_burst_packets,
        "loss_burst_packets_down": down.loss_burst_packets,
        "half_duplex": bearer.half_duplex,
        "super_packets": bearer.super_packets,
        "queue_bytes_up": up.queue_bytes,
        "queue_bytes_down": down.queue_bytes,
        "duty_cycle_up": up.duty_cycle,
        "duty_cycle_down": down.duty_cycle,
        "pause_up_s": up.pause_s,
        "pause_down_s": down.pause_s,
        "setup": bearer.setup.as_json() if from_idle and bearer.setup is not None else None,
        "energy": _radio(bearer.energy),
    }


def _radio(power: BearerEnergy) -> dict[str, float | None]:
    """The radio's power by state."""
    return {
        "send_w": power.send_w,
        "receive_w": power.receive_w,
        "idle_w": power.idle_w,
        "send_j_per_byte": power.send_j_per_byte,
        "receive_j_per_byte": power.receive_j_per_byte,
        "setup_j": power.setup_j,
        "tail_w": power.tail_w,
        "tail_s": power.tail_s,
    }
