"""Estimated handshakes and bearers as the simulator's core reads them (`HandshakeSpec` and `BearerSpec` of
`crates/sim` and `crates/link`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from msgspec import structs

from shakedown.errors import InputError
from shakedown.prediction.trace import Message, Trace
from shakedown.prediction.work import SideCost
from shakedown.profiles.bearer import Bearer
from shakedown.profiles.delay import distribution
from shakedown.schema.base import Side, builtins, opposite
from shakedown.schema.profiles import BearerEnergy, BearerWay

WRITE_BYTES = 4096
"""OpenSSL's write buffer. A full buffer is written to TCP; the rest of a longer record is written
immediately.
"""

IP_BYTES = 20
TCP_HEADERS_BYTES = IP_BYTES + 20 + 12
"""IP, TCP and its timestamps."""
FRAGMENT_BYTES = 8
"""The smallest content of a fragment, after its IP header."""

_NEGLIGIBLE = 1e-9
_ABOVE_ROUND_TRIP = 1.25


@dataclass(frozen=True, slots=True)
class Timers:
    """How a datagram protocol retransmits a flight.

    Attributes:
        initial_s, maximum_s: the first timeout, which doubles, and the longest.
        sends: maximum number of transmissions of a flight, the first included.
        server_timer: the server also has a timer, not only the client.
        answers_duplicates: a server without a timer answers a repeated flight by repeating its own.
        fragment_bytes: additional bytes of a split record; None: IP fragments long datagrams.
    """

    initial_s: float
    maximum_s: float
    sends: int
    server_timer: bool
    answers_duplicates: bool
    fragment_bytes: int | None

    def slower(self, least_s: float) -> Timers:
        """The timers, doubled until the first timeout is at least this long."""
        times = 2.0 ** max(0, math.ceil(math.log2(least_s / self.initial_s)))
        return replace(self, initial_s=self.initial_s * times, maximum_s=self.maximum_s * times)


DTLS = Timers(1.0, 60.0, 13, server_timer=True, answers_duplicates=False, fragment_bytes=25)
"""RFC 6347 section 4.2.4 as in libssl; a split record has a second header, and so has its message."""
WTLS = Timers(3.0, 48.0, 5, server_timer=False, answers_duplicates=True, fragment_bytes=None)
"""WAP's WDP over UDP: only the client retransmits."""


def handshake_spec(
    trace: Trace, client: SideCost, server: SideCost, bearer: Bearer, *, spread: bool
) -> dict[str, Any]:
    """An estimated handshake: each message with what it costs its sender and its receiver.

    Work outside messages, and that on the connection, comes before a side's first work. With ``spread`` work
    varies from handshake to handshake, else it is always its mean.

    Raises:
        InputError: if the bearer's packets have no room for the transport's headers.
    """
    _check_room(trace, bearer)
    times: dict[tuple[Side, int], dict[str, Any]] = {}
    sides: tuple[tuple[Side, SideCost], ...] = (("client", client), ("server", server))
    for side, cost in sides:
        before_s = cost.message_s.get(None, 0.0) + cost.connection_s
        before_sd_s = math.hypot(cost.message_sd_s.get(None, 0.0), cost.connection_sd_s)
        for message in trace.messages:
            mean_s = cost.message_s.get(message.index, 0.0) + before_s
            sd_s = math.hypot(cost.message_sd_s.get(message.index, 0.0), before_sd_s)
            times[side, message.index] = work_spec(mean_s, sd_s if spread else 0.0)
            before_s = before_sd_s = 0.0
    last = max((message.flight or 0 for message in trace.messages), default=0)
    messages = [
        message_spec(
            message.sender,
            message.name,
            message.size_bytes,
            flight=last + 1 if message.flight is None else message.flight,
            unit=message.unit or 0,
            generate=times[message.sender, message.index],
            process=times[opposite(message.sender), message.index],
        )
        for message in trace.messages
    ]
    if not trace.datagrams:
        software = trace.software
        return stream_spec(trace.suite, messages, software.write_bytes or None if software else WRITE_BYTES)
    work_s = client.total.mean + server.total.mean
    timers = hosts_timers(WTLS if trace.protocol == "wtls" else DTLS, trace.messages, bearer, work_s)
    return datagram_spec(trace.suite, messages, timers)


def message_spec(
    sender: Side,
    name: str,
    size_bytes: float,
    *,
    flight: int,
    unit: int = 0,
    generate: dict[str, Any] | None = None,
    process: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One message; ``unit`` is the datagram that carried it, 0 if unknown."""
    return {
        "from": sender,
        "name": name,
        "bytes": max(1, round(size_bytes)),
        "flight": flight,
        "unit": unit,
        "generate": generate or work_spec(0.0),
        "process": process or work_spec(0.0),
    }


def stream_spec(
    name: str, messages: Sequence[dict[str, Any]], write_bytes: int | None = WRITE_BYTES
) -> dict[str, Any]:
    """A handshake over TCP; ``write_bytes`` is the writer's buffer size; None: a flight is one write."""
    return {"name": name, "transport": "stream", "messages": list(messages), "write_bytes": write_bytes}


def datagram_spec(name: str, messages: Sequence[dict[str, Any]], timers: Timers) -> dict[str, Any]:
    return {
        "name": name,
        "transport": "datagram",
        "messages": list(messages),
        "retransmission": asdict(timers),
    }


class UnfitBearerError(InputError):
    """A bearer whose packets are too small for a handshake; others can be predicted."""


def _check_room(trace: Trace, bearer: Bearer) -> None:
    headers_bytes = bearer.ip_bytes + bearer.udp_bytes if trace.datagrams else TCP_HEADERS_BYTES
    transport = "UDP" if trace.datagrams else "TCP"
    needed = f"the {headers_bytes} bytes of headers that {transport} needs there"
    if bearer.mtu_bytes > headers_bytes:
        fragment_bytes = bearer.ip_bytes + FRAGMENT_BYTES
        if bearer.mtu_bytes >= fragment_bytes:
            return
        needed = f"the {fragment_bytes} bytes of the smallest fragment"
    other = "" if trace.datagrams else ", or a suite over UDP, such as wtls/…"
    raise UnfitBearerError(
        f"bearer {bearer.name!r} carries packets of {bearer.mtu_bytes} bytes, too small for {needed}; "
        f"accepted: a bearer with larger packets{other}"
    )


def hosts_timers(timers: Timers, messages: Iterable[Message], bearer: Bearer, work_s: float) -> Timers:
    """The retransmission timers of hosts on a bearer.

    Under a duty cycle, a sender is silent for most of the time, and timers of 1 to 3 s would expire before
    any answer. They are assumed to be doubled until they exceed the time of the two longest flights in
    sequence, with all work.
    """
    if bearer.up.duty_cycle == 1.0:
        return timers
    taken_s: dict[tuple[Side, int], float] = {}
    for one in messages:
        way = bearer.up if one.sender == "client" else bearer.down
        flight = (one.sender, one.flight or 0)
        taken_s[flight] = taken_s.get(flight, distribution(way.delay).mean) + _sending_s(
            one.size_bytes, bearer, way
        )
    longest = sorted(taken_s.values())[-2:]
    return timers.slower(_ABOVE_ROUND_TRIP * (sum(longest) + work_s))


def _sending_s(size_bytes: float, bearer: Bearer, way: BearerWay) -> float:
    """How long datagrams of these sizes occupy a direction, including idle times."""
    headers_bytes = bearer.ip_bytes + bearer.udp_bytes
    packets = math.ceil(size_bytes / (bearer.mtu_bytes - headers_bytes))
    bits = 8.0 * (size_bytes + packets * (headers_bytes + bearer.link_bytes))
    return bits / way.rate_bits_per_s / way.duty_cycle + packets * way.pause_s


def work_spec(mean_s: float, sd_s: float = 0.0) -> dict[str, Any]:
    """The distribution of a time of work: fixed plus exponential, as in `models.waiting.spread_service`;
    lognormal if its deviation exceeds its mean.
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


def bearer_spec(bearer: Bearer, *, from_idle: bool = False) -> dict[str, Any]:
    """A bearer for the core's links; radios that begin idle are set up before the first packet."""
    found = {
        "traversal_s": bearer.traversal_s,
        "traversal_holds_s": bearer.delay_holds_s,
        "mtu_bytes": bearer.mtu_bytes,
        "ip_bytes": bearer.ip_bytes,
        "udp_bytes": bearer.udp_bytes,
        "packet_overhead_bytes": bearer.packet_overhead_bytes,
        "link_encryption": bearer.link_encryption,
        "half_duplex": bearer.half_duplex,
        "super_packets": bearer.super_packets,
        "setup": builtins(bearer.setup) if from_idle and bearer.setup is not None else None,
        "energy": _radio(bearer.energy, from_idle=from_idle),
    }
    for name, way in (("up", bearer.up), ("down", bearer.down)):
        found |= {
            f"{name}_bits_per_s": way.rate_bits_per_s,
            f"traversal_{name}": builtins(way.delay),
            f"loss_{name}": way.loss,
            f"loss_burst_packets_{name}": way.loss_burst_packets,
            f"queue_bytes_{name}": way.queue_bytes,
            f"duty_cycle_{name}": way.duty_cycle,
            f"pause_{name}_s": way.pause_s,
        }
    return found


def tcp_spec(bearer: Bearer) -> dict[str, Any]:
    """TCP of both hosts on a bearer, for the core; other settings are Linux's."""
    tcp = structs.asdict(bearer.tcp)
    reordering = tcp.pop("reordering")
    return {**tcp, "client_reordering": reordering, "server_reordering": reordering}


def _radio(power: BearerEnergy, *, from_idle: bool) -> dict[str, float | None]:
    """The radio's power by state. The first set-up and the last tail are accounted separately
    (`prediction.energy`). A radio that was idle at first becomes idle again in pauses between attempts that
    are longer than its tail; the core does not count these tails as connected time.
    """
    found = structs.asdict(structs.replace(power, setup_j=0.0, tail_w=0.0, tail_s=0.0))
    del found["spread"]
    again_j = None
    if power.setup_j is not None and power.tail_w is not None and power.tail_s is not None:
        again_j = power.setup_j + power.tail_w * power.tail_s
    return {**found, "again_j": again_j, "idle_after_s": power.tail_s if from_idle else None}
