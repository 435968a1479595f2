"""What `devices --json`, `devices show --json` and `bearers --json` print. Times are seconds, rates bits per
second, energies joules; null is unknown.
"""

from __future__ import annotations

from typing import Any, Literal

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


class Cooling(Object, frozen=True, kw_only=True):
    """How work grows with a handshake's public-key work: exponents, and from and at which times."""

    messages: Amount
    symmetric: Amount
    from_s: Amount
    at_s: Amount


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


class DeviceConnection(Object, frozen=True, kw_only=True):
    """What a TCP connection costs each side beyond the handshake in memory, kernel included; `server_cold`
    and `client_cold` are by what share a side's handshake takes longer in it.
    """

    server_s: Amount | None
    client_s: Amount | None
    sd_s: Amount
    per_kib_s: Amount
    server_cold: Amount
    client_cold: Amount


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
    """One direction of a bearer."""

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
    after those; `synack_retries`: SYN-ACKs sent again (``net.ipv4.tcp_…``).
    """

    congestion: Literal["cubic", "reno", "bbr"] = "cubic"
    initial_window: Count = 10
    syn_linear_timeouts: Count = 4
    syn_retries: Count = 6
    synack_retries: Count = 5


class ThesisBearer(Object, frozen=True):
    """The bearer as the thesis (Bayoglu 2004, 3.84) models it: the one-way delay τ, its deviation, and what a
    handshake has on the channel beyond its messages.
    """

    traversal_s: Amount
    traversal_sd_s: Amount
    overhead_bytes: Count


class Cell(Object, frozen=True, kw_only=True):
    """What clients of a bearer share where they are in the same cell, and how they get in, by the keys of
    the profile; rates that are null are a client's.
    """

    medium: Text
    up_bits_per_s: Amount | None
    down_bits_per_s: Amount | None
    half_duplex: bool
    scheduler: Literal["first-come", "round-robin", "proportional"]
    entry: dict[str, Any] | None
    contention: dict[str, Any] | None


class BearerProfile(Object, frozen=True, kw_only=True):
    """A whole bearer; `source` by aspect."""

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
