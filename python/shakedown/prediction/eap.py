"""A recorded handshake inside EAP: its flights as EAP-TLS has them, its packets over a bearer in lock-step.

Each EAP packet crosses the bearer as one packet of it, without IP, between peer and access point; requests
and answers then take the hop to the RADIUS server, whose time is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shakedown.errors import InputError
from shakedown.models import eap
from shakedown.models.eap import Exchanged, Packet
from shakedown.prediction.library import TraceLibrary
from shakedown.prediction.network import Exchange, exchange
from shakedown.prediction.prices import Price
from shakedown.prediction.spec import Timers, datagram_spec, message_spec, work_spec
from shakedown.prediction.trace import Trace
from shakedown.profiles import Bearer
from shakedown.schema.base import Side, opposite
from shakedown.schema.options import upper_limit

DEFAULT_FRAGMENT_BYTES = 1398
SERVER_FRAGMENT_BYTES = 1400 - eap.MAX_OVERHEAD_BYTES
"""The most that a server puts into a fragment for an access point that says a Framed-MTU of 1400."""
DEFAULT_RADIUS_HOP_S = 0.005
"""Round trip between access point and RADIUS server: a server of the same region; assumed."""
EAPOL_BYTES = 4
"""IEEE 802.1X: version, type, length."""
LOCK_STEP = Timers(3.0, 20.0, 6, server_timer=False, answers_duplicates=True, fragment_bytes=None)
"""RFC 3748 section 4.3: three seconds at first, up to five repetitions."""

_PROTOCOLS = ("tls1.0", "tls1.1", "tls1.2", "tls1.3")


@dataclass(frozen=True)
class Carried:
    """How EAP carries a handshake.

    Attributes:
        fragment_bytes: TLS bytes in the peer's fragments.
        radius_hop_s: between access point and RADIUS server, and back.
        ticket_bytes: NewSessionTicket in the server's last flight of TLS 1.3.
    """

    fragment_bytes: int = DEFAULT_FRAGMENT_BYTES
    radius_hop_s: float = DEFAULT_RADIUS_HOP_S
    ticket_bytes: float = 0.0

    @property
    def server_fragment_bytes(self) -> int:
        return min(self.fragment_bytes, SERVER_FRAGMENT_BYTES)


def carried(fragment_bytes: int | None, radius_hop_s: float | None) -> Carried:
    """From what was asked for. Raises `InputError`."""
    fragment = DEFAULT_FRAGMENT_BYTES if fragment_bytes is None else fragment_bytes
    most = upper_limit("MeasureOptions", "fragment")
    if not 1 <= fragment <= most:
        raise InputError(f"fragment: {fragment}; accepted: whole numbers from 1 to {most} (TLS bytes)")
    return Carried(fragment, DEFAULT_RADIUS_HOP_S if radius_hop_s is None else radius_hop_s)


def flights_of(trace: Trace, ticket_bytes: float = 0.0) -> list[tuple[Side, float]]:
    """Sender and bytes of each flight as EAP has them, which a trace in memory does not.

    TLS 1.3 goes without middlebox compatibility (no ChangeCipherSpec, empty session IDs), and the server ends
    with its protected byte. Tickets of the trace share that flight, beside `ticket_bytes` of others. Raises
    `InputError` for what EAP-TLS does not carry.
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
    """NewSessionTicket after a resumption of TLS 1.3: as long as the ticket that was presented.

    A ClientHello with a ticket of N bytes is longer by N + 47 than one without (with SHA-256); the message,
    in its record, has N + 47 bytes. 0 for what resumes nothing, or has tickets of its own in the trace.
    """
    full = trace.suite.removesuffix("/resumed")
    tickets = any(message.flight is None for message in trace.messages)
    if trace.protocol != "tls1.3" or full == trace.suite or tickets:
        return 0.0
    first = traces[full]
    resumed_bytes = trace.messages[0].size_bytes - _session_id_bytes(trace)
    return resumed_bytes - (first.messages[0].size_bytes - _session_id_bytes(first))


def _session_id_bytes(trace: Trace) -> int:
    """What a hello of TLS 1.3 has that it has not inside EAP."""
    return 0 if trace.inside_eap else eap.SESSION_ID_BYTES


def packets_of(trace: Trace, how: Carried) -> list[Packet]:
    """The EAP packets of the handshake, from the identity to EAP-Success."""
    flights = flights_of(trace, how.ticket_bytes)
    return eap.tls_packets(flights, how.fragment_bytes, how.server_fragment_bytes)


def exchanged(trace: Trace, how: Carried) -> Exchanged:
    """Round trips, fragments and bytes of the handshake inside EAP."""
    return eap.exchanged(packets_of(trace, how))


def on_air(packets: Sequence[Packet]) -> list[Packet]:
    """With EAPOL-Start and the access point's request for the identity before them."""
    return [Packet("client", 0.0), Packet("server", eap.TYPED_BYTES), *packets]


def carry(
    trace: Trace, client: Price, server: Price, bearer: Bearer, how: Carried, *, from_idle: bool = False
) -> Exchange:
    """When the peer has its EAP-Success over a bearer; ready and done are the same.

    Raises `InputError` where a fragment does not fit a packet of the bearer, or EAP does not carry the suite.
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


def _works(trace: Trace, client: Price, server: Price) -> tuple[list[float], dict[Side, float]]:
    """A side's work before each flight, what it did with the one before included, and each side's work at the
    end: with the last that it received, before its acknowledgement or its indication.
    """
    prices: dict[Side, Price] = {"client": client, "server": server}
    pending: dict[Side, float] = {
        side: price.message_s.get(None, 0.0) + price.connection_s for side, price in prices.items()
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
        works[-1] += prices[sender].message_s.get(message.index, 0.0)
        receiver = opposite(sender)
        pending[receiver] += prices[receiver].message_s.get(message.index, 0.0)
    return works, pending


def carry_packets(packets: Sequence[Packet], bearer: Bearer, how: Carried) -> Exchange:
    """The same for packets without known work, as EAP-AKA's: a least time."""
    return _lock_step([(packet, 0.0) for packet in on_air(packets)], bearer, how)


def _lock_step(
    timed: Sequence[tuple[Packet, float]], bearer: Bearer, how: Carried, from_idle: bool = False
) -> Exchange:
    """Packets one after another, each after so much work of its sender."""
    largest = EAPOL_BYTES + max(packet.size_bytes for packet, _ in timed)
    if bearer.mtu_bytes < largest:
        room = bearer.mtu_bytes - EAPOL_BYTES - eap.MAX_OVERHEAD_BYTES
        raise InputError(
            f"bearer {bearer.name!r} carries packets of {bearer.mtu_bytes} bytes, and an EAP packet takes "
            f"{largest:.0f}; accepted: fragments up to {max(1, room)} bytes there"
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
