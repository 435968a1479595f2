"""What `devices --json`, `devices show --json` and `bearers --json` print. Times are seconds, rates bits per
second, energies joules; null is unknown.
"""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Amount, Count, Object, Side, Text


class DeviceCost(Object, frozen=True, kw_only=True):
    """What one primitive costs: a call, or symmetric work by call and by KiB.

    `source` counts the profile's sources from 1; 0 where it is not said which one.
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
    """An operation that costs another than elsewhere in one protocol or message; empty is any."""

    protocol: str
    message: str
    operation: Text
    algorithm: Text
    parameters: str
    mean_s: Amount
    per_kib_s: Amount


class Cooling(Object, frozen=True):
    """How work grows with the public-key work of a handshake, which leaves caches and predictors cold.

    A figure holds where a handshake's public-key operations, both sides', take `at_s` - `from_s`; elsewhere
    it is that much to the power of an exponent: ((`from_s` + public) / `at_s`) ** exponent. `messages` is the
    exponent of a stack's own work, `symmetric` that of symmetric work and of the reading of keys.
    """

    messages: Amount
    symmetric: Amount
    from_s: Amount
    at_s: Amount

    def of_messages(self, public_s: float) -> float:
        """Times what a stack's own work takes, next to its figure."""
        return float(((self.from_s + public_s) / self.at_s) ** self.messages)

    def of_symmetric(self, public_s: float) -> float:
        """Times what symmetric work takes, next to its figure."""
        return float(((self.from_s + public_s) / self.at_s) ** self.symmetric)


class DeviceOverhead(Object, frozen=True, kw_only=True):
    """Work that is not cryptography; not `known` is not zero."""

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
    """What a TCP connection costs each side beyond the handshake in memory, kernel included, from set-up to
    close; `sd_s` is the deviation of the server's, `per_kib_s` for each KiB moved. `server_cold` and
    `client_cold` are by what share a side's handshake takes longer in it, among other connections.
    """

    server_s: Amount | None
    client_s: Amount | None
    sd_s: Amount
    per_kib_s: Amount
    server_cold: Amount
    client_cold: Amount

    def of(self, side: str, kib: float, handshake_s: float) -> float | None:
        """One side's mean, in seconds; None where unknown.

        Args:
            side: ``client`` or ``server``.
            kib: moved, both ways.
            handshake_s: what the handshake takes the side in memory.
        """
        fixed_s, cold = (
            (self.server_s, self.server_cold) if side == "server" else (self.client_s, self.client_cold)
        )
        return None if fixed_s is None else fixed_s + self.per_kib_s * kib + cold * handshake_s


class DeviceCore(Object, frozen=True):
    """The processor, as far as costs are scaled by it; 0 bits are unknown."""

    word_bits: Count
    multiplier: str
    vector: str


class DeviceImplementation(Object, frozen=True):
    """How the library computes, by kind of work: in C, assembler, by instructions, or in an accelerator."""

    curves: str
    integers: str
    lattices: str
    symmetric: str


class DeviceEnergy(Object, frozen=True):
    """Power while computing and while waiting, and what the battery holds; `spread` is how far, ×/÷, the
    powers may be off.
    """

    active_w: Amount | None
    idle_w: Amount | None
    battery_j: Amount | None
    spread: Amount


class DeviceTotal(Object, frozen=True):
    """A whole handshake that a source published; not used for pricing."""

    quantity: Text
    value: Amount
    unit: str
    suite: str
    note: str


class DescribedDevice(Object, frozen=True, kw_only=True):
    """What a device is, and where its figures come from."""

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
    """A device in the list; `primitives` counts those that have figures of their own."""

    primitives: Count


class DeviceProfile(DescribedDevice, frozen=True, kw_only=True):
    """A whole device."""

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
    """Always the same."""

    s: Amount


class UniformDelay(Object, frozen=True, kw_only=True, tag_field="kind", tag="uniform"):
    """Even between two values."""

    minimum_s: Amount
    maximum_s: Amount


class LognormalDelay(Object, frozen=True, kw_only=True, tag_field="kind", tag="lognormal"):
    """A minimum and a lognormal excess; the median is the whole's, sigma that of the excess's logarithm."""

    minimum_s: Amount
    median_s: Amount
    sigma: Amount


class QuantilesDelay(Object, frozen=True, kw_only=True, tag_field="kind", tag="quantiles"):
    """Shares at or below, with their delays."""

    points: tuple[tuple[Amount, Amount], ...]


Delay = ConstantDelay | UniformDelay | LognormalDelay | QuantilesDelay


class BearerWay(Object, frozen=True, kw_only=True):
    """One direction of a bearer: its useful rate, and the one-way delay that does not depend on size.

    `loss`: probability that a packet is lost. `loss_burst_packets`: mean number of packets lost in a row; 0
    is each by itself. `queue_bytes`: depth of the drop-tail queue before the rate; null is unknown.
    `duty_cycle`: share of the time that may be spent sending. `pause_s`: silence after each packet.
    """

    rate_bits_per_s: Amount
    delay: Delay
    loss: Amount
    loss_burst_packets: Amount
    queue_bytes: Count | None
    duty_cycle: Amount
    pause_s: Amount


class BearerEnergy(Object, frozen=True, kw_only=True):
    """The client's radio: power by state (`idle_w`: connected), or energy a byte; energy of the set-up from
    idle; power and time for which it stays connected after the last byte (0: it does not); `spread` is the
    factor by which another radio of the kind may draw more or less.
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
    """How both hosts do TCP over a bearer; the defaults are Linux's.

    `initial_window`: segments of the first window (RFC 6928). `syn_linear_timeouts`: SYNs sent again a second
    apart, before the pause doubles; 0 on hosts other than Linux since 6.5. `syn_retries`: SYNs sent again
    after those; `synack_retries`: SYN-ACKs sent again; `reordering`: segments that arrive out of order before
    one counts as lost (``net.ipv4.tcp_…``). `quick_ack`: each segment is acknowledged at once (``ip route …
    quickack 1``), without the delays of Linux.
    """

    congestion: Literal["cubic", "reno", "bbr"] = "cubic"
    initial_window: Count = 10
    syn_linear_timeouts: Count = 4
    syn_retries: Count = 6
    synack_retries: Count = 5
    reordering: Count = 3
    quick_ack: bool = False


class ThesisBearer(Object, frozen=True):
    """The bearer as the thesis (Bayoglu 2004, 3.84) models it: the one-way delay τ, its deviation, and what a
    handshake has on the channel beyond its messages.
    """

    traversal_s: Amount
    traversal_sd_s: Amount
    overhead_bytes: Count


Detection = Literal["certain", "ramping"]


class RandomAccess(Object, frozen=True, tag_field="kind", tag="random-access"):
    """Preambles at opportunities, as in LTE, LTE-M and NB-IoT; each coverage class has its own.

    `attempts`: preambles that a client sends at most. `response_s`, `connect_s`: from an opportunity until a
    client without a response knows so, and until one with a response is connected. `backoff_s`: the longest
    pause before another attempt. `grants`: preambles that are answered at an opportunity; null is all.
    `detection`: ``certain``, or ``ramping``: the i-th preamble is found with probability 1 - e^-i.
    `repetition`, `repetition_s`, `transmissions`: probability and time of repeating one of the two messages
    after the response, and how often each is sent at most.
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
    """A channel for each client while it is there; without a free one it is refused."""

    channels: Count


class Csma(Object, frozen=True, tag_field="kind", tag="csma"):
    """CSMA/CA as in IEEE 802.11.

    `slot_s`: an idle slot. `window`, `max_window`: slots that a first pause is drawn from, and any is at
    most. `attempts`: how often a frame is sent at most. `frame_s`: what a frame takes beside its bytes.
    `acknowledgement_s`: what follows a frame that was received. `idle_s`: how long the channel is idle before
    slots count.
    """

    slot_s: Amount
    window: Count
    max_window: Count
    attempts: Count
    frame_s: Amount
    acknowledgement_s: Amount
    idle_s: Amount


class Sense(Object, frozen=True):
    """Unslotted carrier sense as in IEEE 802.15.4: its unit of waiting, exponents, how often the channel may
    be found busy, and the time from listening to sending.
    """

    unit_s: Amount
    min_exponent: Count
    max_exponent: Count
    busy: Count
    turnaround_s: Amount


class Aloha(Object, frozen=True, tag_field="kind", tag="aloha"):
    """Frames whenever there are any, after listening where there is `sense`.

    `channels`: one of which is drawn for each frame. `slot_s`: frames begin at multiples of it; 0 is at any
    time. `attempts`: how often a frame is sent at most. `backoff_s`: the longest pause before it is sent
    again. `frame_s`: what a frame takes beside its bytes.
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
    """What clients of a bearer share where they are in the same cell.

    `medium`: clients of bearers with the same one are in the same cells. Rates that are null are a client's.
    `half_duplex`: both directions share its time. `scheduler`: which packet a base station serves next, where
    there is no contention. `entry`: how a client whose radio is idle gets in; null is at once. `contention`:
    how packets share the air; null is as the scheduler says.
    """

    medium: Text
    up_bits_per_s: Amount | None
    down_bits_per_s: Amount | None
    half_duplex: bool
    scheduler: Scheduler
    entry: Entry | None
    contention: Contention | None


class BearerProfile(Object, frozen=True, kw_only=True):
    """A whole bearer, from the client up and to it down.

    `setup`: what the first packet after silence waits for the radio; null is none, or unknown.
    `delay_holds_s`: for how long a drawn delay holds in a direction. `half_duplex`: both directions share the
    rate's time. `super_packets`: what becomes of TCP's: ``none`` travel, or they are lost as one, and arrive
    ``cut`` or ``whole``. `mtu_bytes`: largest network-layer packet. `ip_bytes`, `udp_bytes`: headers of a
    packet and of a datagram, as compressed. `packet_overhead_bytes`: link bytes added to each packet; those
    of `link_encryption` come on top. `applicable_messages`: n of the thesis's equation 3.84 where the source
    fixes it, else null (counted). `thesis`: what the thesis's model takes, if not the mean of the delay.
    `cell`: what its clients share; null is nothing, or unknown. `tcp`: how both hosts do TCP over it.
    `source`: what each aspect comes from; aspect "" is for all. `assumed`: why an aspect has its value where
    no source gives it.
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
