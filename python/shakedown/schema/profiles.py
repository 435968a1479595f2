"""The output of `devices --json`, `devices show --json` and `bearers --json`. Times are seconds, rates bits
per second, energies joules; null is unknown.
"""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Amount, Count, Object, Side, Text


class DeviceCost(Object, frozen=True, kw_only=True):
    """The cost of one primitive: per call, or for symmetric work per call and per KiB.

    `source` is the number of one of the profile's sources, from 1; 0 if it is not specified.
    """

    operation: Text
    algorithm: Text
    parameters: str
    mean_s: Amount
    sd_s: Amount
    low_s: Amount
    high_s: Amount
    per_kib_s: Amount
    energy_j: Amount | None
    source: Count
    note: str


class MessageOverhead(Object, frozen=True, kw_only=True):
    """A stack's own work on a message: `work` is generate or process, `key` the public-key work in it."""

    protocol: Text
    name: Text
    work: Text
    key: str
    mean_s: Amount
    sd_s: Amount
    per_kib_s: Amount


class HandshakeOverhead(Object, frozen=True, kw_only=True):
    """A stack's own work on a handshake, on one side."""

    protocol: Text
    side: Side
    mean_s: Amount
    sd_s: Amount
    per_kib_s: Amount


class PlacedCost(Object, frozen=True, kw_only=True):
    """An operation whose cost differs in one protocol or message; empty is any."""

    protocol: str
    message: str
    operation: Text
    algorithm: Text
    parameters: str
    mean_s: Amount
    per_kib_s: Amount


class Cooling(Object, frozen=True):
    """The slowdown of other work by public-key operations, which evict caches and branch predictors.

    A figure applies if the public-key operations of both sides take `at_s` - `from_s`. For other times, it is
    multiplied by ((`from_s` + public) / `at_s`) ** exponent. `messages` is the exponent for a stack's own
    work, `symmetric` that for symmetric work and for reading keys.
    """

    messages: Amount
    symmetric: Amount
    from_s: Amount
    at_s: Amount

    def of_messages(self, public_s: float) -> float:
        """The factor for the figures of a stack's own work."""
        return float(((self.from_s + public_s) / self.at_s) ** self.messages)

    def of_symmetric(self, public_s: float) -> float:
        """The factor for the figures of symmetric work."""
        return float(((self.from_s + public_s) / self.at_s) ** self.symmetric)


class DeviceOverhead(Object, frozen=True, kw_only=True):
    """Work that is not cryptography; if it is not `known`, it is not zero."""

    known: bool
    stack: str
    per_handshake_s: Amount
    per_message_s: Amount
    per_byte_s: Amount
    sd_s: Amount
    messages: tuple[MessageOverhead, ...]
    handshakes: tuple[HandshakeOverhead, ...]
    primitives: tuple[PlacedCost, ...]
    cooling: Cooling


class DeviceConnection(Object, frozen=True):
    """Each side's cost of a TCP connection beyond the handshake in memory, including the kernel's work, from
    set-up to close. `sd_s` is the standard deviation of the server's cost, `per_kib_s` the cost per KiB.
    `server_cold` and `client_cold` are the fractions by which a side's handshake takes longer among other
    connections.
    """

    server_s: Amount | None
    client_s: Amount | None
    sd_s: Amount
    per_kib_s: Amount
    server_cold: Amount
    client_cold: Amount

    def of(self, side: str, kib: float, handshake_s: float) -> float | None:
        """One side's mean, in seconds; None if unknown.

        Args:
            side: ``client`` or ``server``.
            kib: KiB transferred in both directions.
            handshake_s: the side's time for the handshake in memory.
        """
        fixed_s, cold = (
            (self.server_s, self.server_cold) if side == "server" else (self.client_s, self.client_cold)
        )
        return None if fixed_s is None else fixed_s + self.per_kib_s * kib + cold * handshake_s


class DeviceCore(Object, frozen=True):
    """The properties of the processor by which costs are scaled; 0 bits are unknown."""

    word_bits: Count
    multiplier: str
    vector: str


class DeviceImplementation(Object, frozen=True):
    """How the library computes, by kind of work: by C, assembly, special instructions, or an accelerator."""

    curves: str
    integers: str
    lattices: str
    symmetric: str


class DeviceEnergy(Object, frozen=True):
    """Power while computing and while waiting, and the battery's energy; `spread` is the factor by which the
    powers may be too high or too low.
    """

    active_w: Amount | None
    idle_w: Amount | None
    battery_j: Amount | None
    spread: Amount


class DeviceTotal(Object, frozen=True):
    """A whole handshake that a source published; not used for estimates."""

    quantity: Text
    value: Amount
    unit: str
    suite: str
    note: str


class DescribedDevice(Object, frozen=True, kw_only=True):
    """A device, and the sources of its figures."""

    name: Text
    title: Text
    chip: str
    clock_hz: Amount
    library: str
    build: str
    date: str
    source: tuple[str, ...]
    note: str
    assumed: dict[str, str]
    variant: str
    variants: tuple[str, ...]


class DeviceEntry(DescribedDevice, frozen=True, kw_only=True):
    """A device in the list; `primitives` counts those with a figure in the profile."""

    primitives: Count


class DeviceProfile(DescribedDevice, frozen=True, kw_only=True):
    """All figures of a device."""

    primitives: tuple[DeviceCost, ...]
    core: DeviceCore
    implementation: DeviceImplementation
    spread: Amount
    reference: bool
    overhead: DeviceOverhead
    connection: DeviceConnection
    energy: DeviceEnergy
    totals: tuple[DeviceTotal, ...]


class ConstantDelay(Object, frozen=True, kw_only=True, tag_field="kind", tag="constant"):
    """A constant delay."""

    s: Amount


class UniformDelay(Object, frozen=True, kw_only=True, tag_field="kind", tag="uniform"):
    """A uniform distribution between two values."""

    minimum_s: Amount
    maximum_s: Amount


class LognormalDelay(Object, frozen=True, kw_only=True, tag_field="kind", tag="lognormal"):
    """A minimum plus a lognormal delay; the median is that of the sum, sigma that of the lognormal delay."""

    minimum_s: Amount
    median_s: Amount
    sigma: Amount


class QuantilesDelay(Object, frozen=True, kw_only=True, tag_field="kind", tag="quantiles"):
    """Cumulative probabilities with their delays."""

    points: tuple[tuple[Amount, Amount], ...]


Delay = ConstantDelay | UniformDelay | LognormalDelay | QuantilesDelay


class BearerWay(Object, frozen=True, kw_only=True):
    """One direction of a bearer: its useful rate, and the one-way delay that does not depend on size.

    `loss`: probability that a packet is lost. `loss_burst_packets`: mean number of consecutive losses; 0:
    losses are independent. `queue_bytes`: length of the drop-tail queue before the link; null is unknown.
    `duty_cycle`: fraction of the time in which sending is allowed. `pause_s`: silence after each packet.
    """

    rate_bits_per_s: Amount
    delay: Delay
    loss: Amount
    loss_burst_packets: Amount
    queue_bytes: Count | None
    duty_cycle: Amount
    pause_s: Amount


class BearerEnergy(Object, frozen=True, kw_only=True):
    """The client's radio: power by state (`idle_w`: connected), or energy per byte; energy of the set-up from
    idle; power and duration of the connected state after the last byte (0: none). `spread` is the factor by
    which other radios of this type may use more or less.
    """

    send_w: Amount | None
    receive_w: Amount | None
    idle_w: Amount | None
    send_j_per_byte: Amount | None
    receive_j_per_byte: Amount | None
    setup_j: Amount | None
    tail_w: Amount | None
    tail_s: Amount | None
    spread: Amount


class HostTcp(Object, frozen=True):
    """TCP parameters of both hosts; the defaults are those of Linux.

    `initial_window`: initial congestion window in segments (RFC 6928). `syn_linear_timeouts`: SYN
    retransmissions at intervals of one second, before the interval doubles; 0 except on Linux since 6.5.
    `syn_retries`: SYN retransmissions after those. `synack_retries`: SYN-ACK retransmissions. `reordering`:
    segments that arrive out of order before one counts as lost (``net.ipv4.tcp_…``). `quick_ack`: each
    segment is acknowledged immediately (``ip route … quickack 1``), without the delays of Linux.
    """

    congestion: Literal["cubic", "reno", "bbr"] = "cubic"
    initial_window: Count = 10
    syn_linear_timeouts: Count = 4
    syn_retries: Count = 6
    synack_retries: Count = 5
    reordering: Count = 3
    quick_ack: bool = False


class ThesisBearer(Object, frozen=True):
    """The bearer in the model of the thesis (Bayoglu 2004, 3.84): the one-way delay τ, its standard
    deviation, and the bytes of a handshake on the channel in addition to its messages.
    """

    traversal_s: Amount
    traversal_sd_s: Amount
    overhead_bytes: Count


Detection = Literal["certain", "ramping"]


class RandomAccess(Object, frozen=True, tag_field="kind", tag="random-access"):
    """Preambles at opportunities, as in LTE, LTE-M and NB-IoT; each coverage class has separate preambles.

    `attempts`: maximum number of preambles of a client. `response_s`: from an opportunity until a client
    without a response detects this; `connect_s`: until a client with a response is connected. `backoff_s`:
    maximum pause before another attempt. `grants`: number of preambles that are answered at an opportunity;
    null is all. `detection`: ``certain``, or ``ramping``: the i-th preamble is detected with probability
    1 - e^-i. `repetition`, `repetition_s`, `transmissions`: probability and time of a retransmission of one
    of the two messages after the response, and the maximum number of transmissions.
    """

    opportunity_s: Amount
    preambles: Count
    attempts: Count
    response_s: Amount
    connect_s: Amount
    backoff_s: Amount
    grants: Count | None = None
    detection: Detection = "certain"
    repetition: Amount = 0.0
    repetition_s: Amount = 0.0
    transmissions: Count = 1


class Circuits(Object, frozen=True, tag_field="kind", tag="circuits"):
    """Each active client occupies one channel; without a free channel it is refused."""

    channels: Count


class Csma(Object, frozen=True, tag_field="kind", tag="csma"):
    """CSMA/CA as in IEEE 802.11.

    `slot_s`: duration of an idle slot. `window`, `max_window`: first and maximum contention window, in slots.
    `attempts`: maximum number of transmissions of a frame. `frame_s`: time of a frame in addition to its
    bytes. `acknowledgement_s`: time of the pause and the acknowledgement after a received frame. `idle_s`:
    idle time of the channel before slots are counted.
    """

    slot_s: Amount
    window: Count
    max_window: Count
    attempts: Count
    frame_s: Amount
    acknowledgement_s: Amount
    idle_s: Amount


class Sense(Object, frozen=True):
    """Unslotted carrier sense as in IEEE 802.15.4: backoff unit, backoff exponents, maximum number of busy
    channel assessments, and turnaround time from listening to sending.
    """

    unit_s: Amount
    min_exponent: Count
    max_exponent: Count
    busy: Count
    turnaround_s: Amount


class Aloha(Object, frozen=True, tag_field="kind", tag="aloha"):
    """Frames are sent without coordination, with `sense` after listening.

    `channels`: number of channels; each frame uses a random one. `slot_s`: frames begin at multiples of it,
    or at any time if it is 0. `attempts`: maximum number of transmissions of a frame. `backoff_s`: maximum
    pause before a retransmission. `frame_s`: time of a frame in addition to its bytes.
    """

    channels: Count = 1
    slot_s: Amount = 0.0
    attempts: Count = 1
    backoff_s: Amount = 0.0
    frame_s: Amount = 0.0
    sense: Sense | None = None


Scheduler = Literal["first-come", "round-robin", "proportional"]
Entry = RandomAccess | Circuits
Contention = Csma | Aloha


class Cell(Object, frozen=True, kw_only=True):
    """The resources that clients in the same cell share.

    `medium`: clients of bearers with the same medium share cells. A rate that is null is that of one client;
    with circuits, null is no limit. `half_duplex`: both directions share the channel's time. `scheduler`: how
    a base station selects the next packet, without contention. `entry`: how a client with an idle radio is
    admitted; null: immediately. `contention`: how packets contend for the channel; null: the scheduler
    decides.
    """

    medium: Text
    up_bits_per_s: Amount | None
    down_bits_per_s: Amount | None
    half_duplex: bool
    scheduler: Scheduler
    entry: Entry | None
    contention: Contention | None


class BearerProfile(Object, frozen=True, kw_only=True):
    """All figures of a bearer; `up` is from the client, `down` to the client.

    `setup`: wait of the first packet after silence, until the radio is ready; null is none, or unknown.
    `delay_holds_s`: time for which a random delay remains constant in a direction. `half_duplex`: only one
    direction sends at a time. `super_packets`: ``none``: TCP sends no super-packets; otherwise each
    is lost as a unit, and arrives ``cut`` into segments or ``whole``. `mtu_bytes`: largest network-layer
    packet. `ip_bytes`, `udp_bytes`: compressed headers of a packet (and of each fragment) and of a datagram.
    `packet_overhead_bytes`: link bytes added to each packet, without those of `link_encryption`.
    `applicable_messages`: n of the thesis's equation 3.84 if the source defines it, else null (counted).
    `thesis`: inputs of the thesis's model, if they differ from the mean of the delay. `cell`: the resources
    that clients share; null is none, or unknown. `tcp`: TCP parameters of both hosts. `source`: the source of
    each aspect; "" is for all. `assumed`: the reason for the value of an aspect without a source.
    """

    name: Text
    title: Text
    date: str
    note: str
    up: BearerWay
    down: BearerWay
    setup: Delay | None
    delay_holds_s: Amount
    half_duplex: bool
    super_packets: Literal["none", "cut", "whole"]
    mtu_bytes: Count
    ip_bytes: Count
    udp_bytes: Count
    packet_overhead_bytes: Count
    link_encryption: Literal["none", "wep", "ccmp"]
    applicable_messages: Count | None
    thesis: ThesisBearer | None
    tcp: HostTcp
    energy: BearerEnergy
    cell: Cell | None
    source: dict[str, tuple[str, ...]]
    assumed: dict[str, str]


PRINTED = {
    "device": (DeviceEntry, "An object of devices --json."),
    "device-profile": (DeviceProfile, "An object of devices show --json."),
    "bearer": (BearerProfile, "An object of bearers --json."),
}
