"""What a transport adds to bytes over a rate: packets, connection set-up, slow start, acknowledgements, loss.

Closed forms for flights that follow each other, each a run of bytes of one sender. TCP is that of Linux:
initial window of ten segments (RFC 6928) doubling each round trip, first-SYN timeout 1 s, least
retransmission timeout 0.2 s.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shakedown.models.arrays import Floats, Numbers, floats

IP_BYTES = 20
TCP_BYTES = 32  # with timestamps
SYN_BYTES = 60  # IP, TCP and the options of a SYN
UDP_BYTES = 8
INITIAL_WINDOW = 10
SYN_TIMEOUT_S = 1.0
LEAST_TIMEOUT_S = 0.2
DATAGRAM_TIMEOUT_S = 1.0  # DTLS's initial timer (RFC 6347, section 4.2.4.1)
LINK_ENCRYPTION_BYTES = {"none": 0, "wep": 8, "ccmp": 16}  # IV, key ID and ICV; header and MIC


def packets(size_bytes: Numbers, mtu_bytes: Numbers, header_bytes: Numbers) -> Floats:
    """Packets that carry ``size_bytes`` of payload; none carry nothing."""
    return np.ceil(floats(size_bytes) / (floats(mtu_bytes) - floats(header_bytes)))


def wire_bytes(size_bytes: Numbers, mtu_bytes: Numbers, header_bytes: Numbers, link_bytes: Numbers) -> Floats:
    """Bytes on the link for a payload: headers and link overhead of every packet included."""
    count = packets(size_bytes, mtu_bytes, header_bytes)
    return floats(size_bytes) + count * (floats(header_bytes) + floats(link_bytes))


def flight_s(size_bytes: Numbers, rate_bits_per_s: Numbers, traversal_s: Numbers) -> Floats:
    """From the first byte of a flight sent to the last received: 8 B / r + τ; 0 for an empty flight."""
    size = floats(size_bytes)
    return np.where(size > 0.0, 8.0 * size / floats(rate_bits_per_s) + floats(traversal_s), 0.0)


def slow_start_stall_s(
    segments: Numbers,
    segment_s: Numbers,
    round_trip_s: Numbers,
    initial_window: int = INITIAL_WINDOW,
) -> Floats:
    """Time a sender waits for acknowledgements while its window grows.

    Round k may send w 2^(k-1) segments; before the next it waits max(0, S/r + RTT - w 2^(k-1) S/r)
    (J. Kurose and K. Ross, "Computer Networking", static-window and slow-start latency).

    Args:
        segments: segments to send.
        segment_s: time to serialise one, S/r.
        round_trip_s: round trip without serialisation of the data.
        initial_window: segments of the first round.
    """
    left, each, trip = np.broadcast_arrays(floats(segments), floats(segment_s), floats(round_trip_s))
    stall = np.zeros(left.shape)
    left = left - initial_window
    window = float(initial_window)
    while np.any(left > 0.0):
        stall += np.where(left > 0.0, np.maximum(0.0, each + trip - window * each), 0.0)
        window *= 2.0
        left = left - window
    return stall


def tcp_connect_s(
    up_bits_per_s: Numbers, down_bits_per_s: Numbers, traversal_s: Numbers, link_bytes: Numbers = 0
) -> Floats:
    """From SYN sent to the client free to send: both SYNs, and the bare acknowledgement that goes before
    its data.
    """
    link = floats(link_bytes)
    up_s, down_s = 8.0 / floats(up_bits_per_s), 8.0 / floats(down_bits_per_s)
    acknowledgement_s = (IP_BYTES + TCP_BYTES + link) * up_s
    return (SYN_BYTES + link) * (up_s + down_s) + 2.0 * floats(traversal_s) + acknowledgement_s


def loss_s(loss: Numbers, packets_sent: Numbers, timeout_s: Numbers) -> Floats:
    """Mean time lost to retransmission of a flight: a timeout for each time that any of its packets is lost.

    With q the probability that some packet of the flight is lost, q + q² + … timeouts are waited for;
    back-off doubles them: q t / (1 - 2 q) while that converges, capped at q = 0.4.
    """
    lost = np.minimum(1.0 - (1.0 - floats(loss)) ** floats(packets_sent), 0.4)
    return lost * floats(timeout_s) / (1.0 - 2.0 * lost)


def retransmission_timeout_s(round_trip_s: Numbers) -> Floats:
    """First timeout after one sample, R + max(0.2 s, 2 R) (RFC 6298 2.2 with Linux's least value)."""
    trip = floats(round_trip_s)
    return trip + np.maximum(LEAST_TIMEOUT_S, 2.0 * trip)


def wep_wire_bytes(size_bytes: Numbers, mtu_bytes: Numbers = 1500) -> Floats:
    """Bytes that WEP adds to a payload: IV, key ID and ICV, 8 a frame (IEEE 802.11-1997, 8.2)."""
    return LINK_ENCRYPTION_BYTES["wep"] * np.ceil(floats(size_bytes) / floats(mtu_bytes))


def wep_cost_s(
    size_bytes: Numbers,
    rate_bits_per_s: Numbers,
    cipher_s_per_byte: Numbers,
    frame_s: Numbers = 0.0,
    mtu_bytes: Numbers = 1500,
) -> Floats:
    """Time WEP adds to a transfer: its bytes on air, and RC4 and CRC-32 per byte and per frame on the slow
    side.

    The difference that Shin, Gupta and Myers (2009, section V-D) regress over file size; linear in it.
    """
    frames = np.ceil(floats(size_bytes) / floats(mtu_bytes))
    air_s = 8.0 * wep_wire_bytes(size_bytes, mtu_bytes) / floats(rate_bits_per_s)
    return air_s + floats(size_bytes) * floats(cipher_s_per_byte) + frames * floats(frame_s)


def exchange_s(
    flight_bytes: Numbers,
    upward: npt.ArrayLike,
    up_bits_per_s: Numbers,
    down_bits_per_s: Numbers,
    traversal_s: Numbers,
    *,
    mtu_bytes: Numbers = 1500,
    link_bytes: Numbers = 0,
    loss: Numbers = 0.0,
    datagrams: bool = False,
) -> Floats:
    """Transmission of a whole handshake: flights one after another, over TCP with its set-up, or in
    datagrams.

    Every TCP flight but the first goes behind a bare acknowledgement of the one it answers. Losses cost the
    mean time of their retransmissions.

    Args:
        flight_bytes: bytes of each flight, shape ``(flights,)``.
        upward: whether each flight goes from client to server, same shape.
        up_bits_per_s, down_bits_per_s, traversal_s, mtu_bytes, link_bytes, loss: of the bearer, any one
            shape.
        datagrams: UDP instead of TCP; nothing is set up and no window limits.

    Returns:
        Seconds from the first byte sent to the last received, in the bearer's shape.
    """
    header = IP_BYTES + (UDP_BYTES if datagrams else TCP_BYTES)
    up, down, tau, lost = floats(up_bits_per_s), floats(down_bits_per_s), floats(traversal_s), floats(loss)
    bare = 8.0 * (header + floats(link_bytes))
    round_trip_s = 2.0 * tau + bare / up + bare / down
    if datagrams:
        total = np.zeros(np.broadcast(up, down, tau, lost).shape)
    else:
        total = tcp_connect_s(up, down, tau, link_bytes) + loss_s(lost, 2.0, SYN_TIMEOUT_S)
    directions = np.asarray(upward, dtype=bool).ravel()
    for number, (size, goes_up) in enumerate(zip(floats(flight_bytes).ravel(), directions, strict=True)):
        rate = up if goes_up else down
        count = packets(size, mtu_bytes, header)
        wire = wire_bytes(size, mtu_bytes, header, link_bytes)
        total = total + flight_s(wire, rate, tau)
        trip_s = round_trip_s + 8.0 * wire / rate
        if datagrams:
            total = total + loss_s(lost, count, np.maximum(DATAGRAM_TIMEOUT_S, trip_s))
            continue
        segment_s = 8.0 * (floats(mtu_bytes) + floats(link_bytes)) / rate
        total = total + slow_start_stall_s(count, segment_s, round_trip_s)
        total = (
            total + (bare / rate if number else 0.0) + loss_s(lost, count, retransmission_timeout_s(trip_s))
        )
    return np.asarray(total)
