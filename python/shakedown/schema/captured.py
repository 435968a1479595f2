"""The output of `inspect --json`: the connections of a capture."""

from __future__ import annotations

from typing import Generic, TypeVar

from shakedown.schema.base import SIDES, Amount, Count, Number, Object, Side
from shakedown.schema.trace import ByteCounts, Message

T = TypeVar("T")


class CapturedMessage(Message, frozen=True, kw_only=True):
    """A message with the time at which it was complete, and the wait before it, in seconds.

    `peer_s` is the sender's part of the wait, `network_s` that of the network; null is unknown.
    """

    time_s: Number | None
    wait_s: Number | None
    peer_s: Number | None
    network_s: Number | None


class Undecrypted(Object, frozen=True, kw_only=True):
    """Handshake records of a direction that were not decrypted, and so belong to no message."""

    bytes: Count
    records: Count
    from_s: Number | None
    to_s: Number | None


class Retransmissions(Object, frozen=True, kw_only=True):
    """Retransmitted and reordered segments or datagrams of a direction."""

    segments: Count
    bytes: Count
    out_of_order: Count


class Gaps(Object, frozen=True, kw_only=True):
    """Bytes of a direction that are not in the capture."""

    count: Count
    bytes: Count


class ByDirection(Object, Generic[T], frozen=True, kw_only=True):
    """A value for each direction."""

    client_to_server: T
    server_to_client: T

    def of(self, side: Side) -> T:
        return self.client_to_server if side == "client" else self.server_to_client


class RoundTrip(Object, frozen=True, kw_only=True):
    """Shortest round trips between the capture point and either end."""

    client_side_s: Number | None
    server_side_s: Number | None


class Alert(Object, frozen=True, kw_only=True, rename={"sender": "from"}):
    """An alert; level and description are null if it is encrypted."""

    sender: Side
    level: str | None
    description: str | None
    time_s: Number


class Connection(Object, frozen=True, kw_only=True):
    """A connection of TLS, DTLS or WTLS; null is not visible."""

    index: Count
    transport: str
    client: str
    server: str
    server_name: str | None
    protocol: str | None
    cipher: str | None
    suite: str | None
    start_s: Number
    start_unix_s: Number
    handshake_s: Number | None
    resumed: bool | None
    complete: bool
    messages: tuple[CapturedMessage, ...]
    flights: Count
    bytes: ByteCounts
    encrypted: ByDirection[Undecrypted]
    application_data_bytes: ByDirection[Count]
    alerts: tuple[Alert, ...]
    retransmissions: ByDirection[Retransmissions]
    gaps: ByDirection[Gaps]
    round_trip: RoundTrip
    problems: tuple[str, ...]

    def __repr__(self) -> str:
        what = self.suite or " ".join(part for part in (self.protocol, self.cipher) if part) or "unknown"
        return (
            f"Connection({self.index}, {self.client} → {self.server}, {what}, {self.bytes.total:,} bytes"
            f"{'' if self.complete else ', not complete'})"
        )

    @property
    def wire_bytes(self) -> Amount:
        """All bytes of the handshake, including undecrypted ones."""
        return self.bytes.total + sum(self.encrypted.of(side).bytes for side in SIDES)


class CaptureSummary(Object, frozen=True, kw_only=True):
    """A summary of a capture.

    `handshakes` counts connections with any part of a handshake. `unread` counts packets of tunnels and
    protocols that may contain handshakes but are not decoded.
    """

    packets: Count
    captured_bytes: Count
    duration_s: Number
    connections: Count
    handshakes: Count
    other_flows: Count
    other_packets: Count
    unread: dict[str, Count]
    evicted: Count
    incomplete_fragments: Count
    problems: tuple[str, ...]


PRINTED = {
    "connection": (Connection, "An object of inspect --json."),
}
