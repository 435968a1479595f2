"""A recorded handshake inside EAP: the flights of EAP-TLS, and its packets over a bearer in lock-step.

Each EAP packet is one packet of the bearer, without IP, between peer and access point. Requests and answers
then take the hop to the RADIUS server, whose time is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shakedown.errors import InputError
from shakedown.models import eap
from shakedown.models.eap import Exchanged, Packet
from shakedown.prediction.library import TraceLibrary
from shakedown.prediction.network import Exchange, exchange
from shakedown.prediction.spec import Timers, datagram_spec, message_spec, work_spec
from shakedown.prediction.trace import Trace
from shakedown.prediction.work import SideCost
from shakedown.profiles import Bearer
from shakedown.schema.base import Side, opposite
from shakedown.schema.options import upper_limit

DEFAULT_FRAGMENT_BYTES = 1398
SERVER_FRAGMENT_BYTES = 1400 - eap.MAX_OVERHEAD_BYTES
"""The largest fragment of a server for an access point that announces a Framed-MTU of 1400."""
DEFAULT_RADIUS_HOP_S = 0.005
"""Round trip between access point and RADIUS server in the same region; assumed."""
EAPOL_BYTES = 4
"""IEEE 802.1X: version, type, length."""
LOCK_STEP = Timers(3.0, 20.0, 6, server_timer=False, answers_duplicates=True, fragment_bytes=None)
"""RFC 3748 section 4.3: a first timeout of three seconds, up to five retransmissions."""

_PROTOCOLS = ("tls1.0", "tls1.1", "tls1.2", "tls1.3")


@dataclass(frozen=True)
class Carried:
    """How EAP carries a handshake.

    Attributes:
        fragment_bytes: TLS bytes in the peer's fragments.
        radius_hop_s: round trip between access point and RADIUS server.
        ticket_bytes: NewSessionTicket in the server's last flight of TLS 1.3.
    """

    fragment_bytes: int = DEFAULT_FRAGMENT_BYTES
    radius_hop_s: float = DEFAULT_RADIUS_HOP_S
    ticket_bytes: float = 0.0

    @property
    def server_fragment_bytes(self) -> int:
        return min(self.fragment_bytes, SERVER_FRAGMENT_BYTES)


def carried(fragment_bytes: int | None, radius_hop_s: float | None) -> Carried:
    """The parameters from the given options. Raises `InputError`."""
    fragment = DEFAULT_FRAGMENT_BYTES if fragment_bytes is None else fragment_bytes
    most = upper_limit("MeasureOptions", "fragment")
    if not 1 <= fragment <= most:
        raise InputError(f"fragment: {fragment}; accepted: whole numbers from 1 to {most} (TLS bytes)")
    return Carried(fragment, DEFAULT_RADIUS_HOP_S if radius_hop_s is None else radius_hop_s)


def flights_of(trace: Trace, ticket_bytes: float = 0.0) -> list[tuple[Side, float]]:
    """Sender and bytes of each flight inside EAP, which differ from those of a trace in memory.

    TLS 1.3 does not use middlebox compatibility (no ChangeCipherSpec, empty session IDs), and the server's
    last flight contains its protected byte, the tickets of the trace, and `ticket_bytes` of others. Raises
    `InputError` for suites that EAP-TLS does not carry.
    """
    if trace.protocol not in _PROTOCOLS:
        raise InputError(f"{trace.suite} inside EAP; accepted: TLS 1.0 to 1.3")
    certificates = any(message.name == "Certificate" for message in trace.messages)
    if not certificates and not trace.suite.endswith(("/resumed", "/ticket")):
        raise InputError(
            f"{trace.suite} inside EAP; accepted: suites with certificates, and their resumption"
        )
    later = trace.protocol == "tls1.3"
    runs: list[tuple[Side, float]] = []
    for message in trace.messages:
        if message.flight is None or (later and message.name == "ChangeCipherSpec"):
            continue
        size = message.size_bytes
        if later and message.name in ("ClientHello", "ServerHello"):
            size -= _session_id_bytes(trace)
        if runs and runs[-1][0] == message.sender:
            runs[-1] = message.sender, runs[-1][1] + size
        else:
            runs.append((message.sender, size))
    if later:
        tickets = sum(message.size_bytes for message in trace.messages if message.flight is None)
        runs.append(("server", eap.INDICATION_BYTES + tickets + ticket_bytes))
    return runs


def renewed_ticket_bytes(trace: Trace, traces: Mapping[str, Trace] | TraceLibrary) -> float:
    """Size of the NewSessionTicket after a resumption of TLS 1.3: that of the presented ticket.

    A ClientHello with a ticket of N bytes is longer by N + 47 than one without (with SHA-256); the message,
    in its record, has N + 47 bytes. 0 for other handshakes, and for traces that contain tickets.
    """
    full = trace.suite.removesuffix("/resumed")
    tickets = any(message.flight is None for message in trace.messages)
    if trace.protocol != "tls1.3" or full == trace.suite or tickets:
        return 0.0
    first = traces[full]
    resumed_bytes = trace.messages[0].size_bytes - _session_id_bytes(trace)
    return resumed_bytes - (first.messages[0].size_bytes - _session_id_bytes(first))


def _session_id_bytes(trace: Trace) -> int:
    """Bytes of a Hello of TLS 1.3 that are absent inside EAP."""
    return 0 if trace.inside_eap else eap.SESSION_ID_BYTES


def packets_of(trace: Trace, how: Carried) -> list[Packet]:
    """The EAP packets of the handshake, from the identity to EAP-Success."""
    flights = flights_of(trace, how.ticket_bytes)
    return eap.tls_packets(flights, how.fragment_bytes, how.server_fragment_bytes)


def exchanged(trace: Trace, how: Carried) -> Exchanged:
    """Round trips, fragments and bytes of the handshake inside EAP."""
    return eap.exchanged(packets_of(trace, how))


def on_air(packets: Sequence[Packet]) -> list[Packet]:
    """The packets, preceded by EAPOL-Start and the access point's request for the identity."""
    return [Packet("client", 0.0), Packet("server", eap.TYPED_BYTES), *packets]


def carry(
    trace: Trace, client: SideCost, server: SideCost, bearer: Bearer, how: Carried, *, from_idle: bool = False
) -> Exchange:
    """The time until the peer receives EAP-Success over a bearer; ready and done are equal.

    Raises `InputError` if a fragment does not fit a packet of the bearer, or EAP does not carry the suite.
    """
    packets = on_air(packets_of(trace, how))
    works, ends_s = _works(trace, client, server)
    timed: list[tuple[Packet, float]] = []
    for index, packet in enumerate(packets):
        work_s = 0.0
        if packet.flight is not None and packet.first:
            if packet.flight < len(works):
                work_s = works[packet.flight]
            else:
                work_s, ends_s["server"] = ends_s["server"], 0.0
        if index >= len(packets) - 2:
            work_s += ends_s[packet.sender]
        timed.append((packet, work_s))
    return _lock_step(timed, bearer, how, from_idle)


def _works(trace: Trace, client: SideCost, server: SideCost) -> tuple[list[float], dict[Side, float]]:
    """The sender's work before each flight, including its work on the previous one; and each side's work on
    the last flight that it receives, before its acknowledgement or indication.
    """
    costs: dict[Side, SideCost] = {"client": client, "server": server}
    pending: dict[Side, float] = {
        side: cost.message_s.get(None, 0.0) + cost.connection_s for side, cost in costs.items()
    }
    works: list[float] = []
    sender: Side | None = None
    for message in trace.messages:
        if message.flight is None:
            continue
        if message.sender != sender:
            sender = message.sender
            works.append(pending[sender])
            pending[sender] = 0.0
        works[-1] += costs[sender].message_s.get(message.index, 0.0)
        receiver = opposite(sender)
        pending[receiver] += costs[receiver].message_s.get(message.index, 0.0)
    return works, pending


def carry_packets(packets: Sequence[Packet], bearer: Bearer, how: Carried) -> Exchange:
    """The same for packets whose work is unknown, such as EAP-AKA's: the time is a lower bound."""
    return _lock_step([(packet, 0.0) for packet in on_air(packets)], bearer, how)


def _lock_step(
    timed: Sequence[tuple[Packet, float]], bearer: Bearer, how: Carried, from_idle: bool = False
) -> Exchange:
    """Packets in sequence, each after its sender's work."""
    largest = EAPOL_BYTES + max(packet.size_bytes for packet, _ in timed)
    if bearer.mtu_bytes < largest:
        room = bearer.mtu_bytes - EAPOL_BYTES - eap.MAX_OVERHEAD_BYTES
        accepted = f"fragments up to {room} bytes there" if room >= 1 else "a bearer with larger packets"
        raise InputError(
            f"bearer {bearer.name!r} carries packets of {bearer.mtu_bytes} bytes, and an EAP packet takes "
            f"{largest:.0f}; accepted: {accepted}"
        )
    messages = []
    for index, (packet, work_s) in enumerate(timed):
        hop_s = how.radius_hop_s if packet.sender == "server" and index > 1 else 0.0
        size_bytes = EAPOL_BYTES + packet.size_bytes
        work = work_spec(work_s + hop_s)
        messages.append(
            message_spec(packet.sender, "EAP", size_bytes, flight=index, unit=index + 1, generate=work)
        )
    handshake = datagram_spec("EAP", messages, LOCK_STEP)
    found = exchange(handshake, bearer, from_idle=from_idle, ip_bytes=0, udp_bytes=0)
    return replace(found, ready=found.done)
