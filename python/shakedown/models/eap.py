"""EAP-TLS over RADIUS: packets, round trips and bytes of an authentication; EAP-AKA for comparison.

RFC 5216 section 2.1 (fragments and their acknowledgements), RFC 9190 section 2.1 (TLS 1.3: the server ends
with a protected byte), RFC 3579 (EAP in RADIUS), RFC 4187 and 9048 (EAP-AKA). EAP is lock-step: each packet
is sent after the previous one was answered, so every fragment costs a round trip, in either direction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Side = Literal["client", "server"]

HEADER_BYTES = 4
"""Code, identifier, length (RFC 3748 section 4)."""
TYPED_BYTES = HEADER_BYTES + 1
TLS_BYTES = TYPED_BYTES + 1
"""An EAP-TLS packet without data: an acknowledgement, or the server's start."""
LENGTH_BYTES = 4
"""The flight's length, sent in the first of several fragments."""
MAX_OVERHEAD_BYTES = TLS_BYTES + LENGTH_BYTES
INDICATION_BYTES = 5 + 1 + 1 + 16
"""A protected byte of TLS 1.3: record header, the byte, its content type, the tag."""
SESSION_ID_BYTES = 32
"""In each Hello of TLS 1.3's middlebox compatibility mode, which EAP-TLS does not use."""

IDENTITY_BYTES = len("anonymous@shakedown.test")
"""The identity in the clear that peers send by default; each request's User-Name repeats it."""

_ACCESS_POINT_BYTES = 29
"""Our access point's other attributes: NAS-Identifier of nine bytes, Service-Type, NAS-Port-Type, Framed-MTU.
"""
_PIECE_BYTES = 253
_ATTRIBUTE_BYTES = 2
_PACKET_BYTES = 20 + 18
"""RADIUS header and Message-Authenticator."""
_MPPE_BYTES = 2 * 58
"""Both keys in an Access-Accept (RFC 2548): attribute and vendor headers, salt, 48 bytes encrypted."""


@dataclass(frozen=True, slots=True)
class Packet:
    """An EAP packet.

    Attributes:
        sender: ``client`` is the peer, ``server`` the RADIUS server.
        size_bytes: its whole size.
        flight: index of the flight of which it contains a fragment; None without TLS data.
        first: whether it begins its flight.
    """

    sender: Side
    size_bytes: float
    flight: int | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What an authentication transmits in both directions, without retransmissions.

    Attributes:
        round_trips: Access-Requests, each answered.
        fragments: EAP-TLS packets that contain TLS data.
        eap_bytes, radius_bytes: sizes of the EAP packets, and of the RADIUS packets that contain them.
    """

    round_trips: int
    fragments: int
    eap_bytes: float
    radius_bytes: float


def fragments(flight_bytes: float, fragment_bytes: int) -> int:
    """Fragments of a flight, at least one. ``fragment_bytes``: TLS bytes in each."""
    return max(1, math.ceil(flight_bytes / fragment_bytes))


def tls_packets(
    flights: Sequence[tuple[Side, float]],
    client_fragment_bytes: int,
    server_fragment_bytes: int,
    *,
    length_always: bool = False,
) -> list[Packet]:
    """The EAP packets of an authentication, from the identity to EAP-Success; peer and server alternate.

    Args:
        flights: sender and TLS bytes of each; they alternate, the client's first. In TLS 1.3 the last one
            contains the server's ticket and protected byte.
        client_fragment_bytes, server_fragment_bytes: TLS bytes in a fragment.
        length_always: the server writes the flight's length into every fragment, as FreeRADIUS does.

    Raises:
        ValueError: if flights do not alternate, or the first is not the client's.
    """
    if not flights or any(sender != ("client", "server")[i % 2] for i, (sender, _) in enumerate(flights)):
        raise ValueError("flights do not alternate; accepted: the client's first, then each side in turn")
    packets = [Packet("client", TYPED_BYTES + IDENTITY_BYTES), Packet("server", TLS_BYTES)]
    for index, (sender, size) in enumerate(flights):
        other: Side = "server" if sender == "client" else "client"
        room = client_fragment_bytes if sender == "client" else server_fragment_bytes
        count = fragments(size, room)
        for number in range(count):
            every = length_always and sender == "server"
            length = LENGTH_BYTES if every or (number == 0 and count > 1) else 0
            data = min(room, size - number * room)
            packets.append(Packet(sender, TLS_BYTES + length + data, index, first=number == 0))
            if number + 1 < count:
                packets.append(Packet(other, TLS_BYTES))
    if flights[-1][0] == "server":
        packets.append(Packet("client", TLS_BYTES))
    packets.append(Packet("server", HEADER_BYTES))
    return packets


def aka_packets() -> list[Packet]:
    """The EAP packets of a full EAP-AKA authentication whose identity is known (RFC 4187 section 9)."""
    head = TYPED_BYTES + 3
    rand = autn = mac = 20
    result = 4 + 8
    return [
        Packet("client", TYPED_BYTES + IDENTITY_BYTES),
        Packet("server", head + rand + autn + mac),
        Packet("client", head + result + mac),
        Packet("server", HEADER_BYTES),
    ]


def exchanged(packets: Sequence[Packet], *, state_bytes: int = 20) -> Exchanged:
    """Round trips, fragments and bytes of packets over RADIUS.

    Args:
        packets: from `tls_packets` or `aka_packets`, identity to EAP-Success.
        state_bytes: size of the server's State attribute; our server's has 20 bytes.
    """
    requests = [packet for packet in packets if packet.sender == "client"]
    eap = sum(packet.size_bytes for packet in packets)
    pieces = sum(math.ceil(packet.size_bytes / _PIECE_BYTES) for packet in packets)
    state = _ATTRIBUTE_BYTES + state_bytes
    radius = eap + _ATTRIBUTE_BYTES * pieces + _PACKET_BYTES * len(packets) + _MPPE_BYTES
    radius += len(requests) * (_ATTRIBUTE_BYTES + IDENTITY_BYTES + _ACCESS_POINT_BYTES)
    # Every challenge has a State, and the request after it returns it.
    radius += 2 * state * (len(requests) - 1)
    held = sum(packet.flight is not None for packet in packets)
    return Exchanged(len(requests), held, eap, radius)
