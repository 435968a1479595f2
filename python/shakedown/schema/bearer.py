"""The output of `bearer check --json` and `bearer measure --json`: packets and figures of bearers."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Object, Text


class PacketCounts(Object, frozen=True, kw_only=True):
    """Packets of one direction, by outcome."""

    offered: int
    delivered: int
    delivered_bytes: int
    lost: int
    queue_full: int
    other_drops: int
    duplicated: int
    rejected: int


class Lateness(Object, frozen=True, kw_only=True):
    """Delay of packets beyond their due time, which is the emulator's error; `p99_s` is null for fewer than
    100 packets.
    """

    mean_s: float
    p50_s: float
    p99_s: float | None
    max_s: float


class BearerReport(Object, frozen=True, kw_only=True):
    """Packets and errors of an emulated bearer. `key`: link encryption key, hexadecimal, for Wireshark."""

    up: PacketCounts
    down: PacketCounts
    lateness: Lateness
    key: str | None


class Percentiles(Object, frozen=True, kw_only=True):
    """Percentiles of a measured time."""

    min: float
    p50: float
    p95: float
    max: float


class BearerFigure(Object, frozen=True, kw_only=True):
    """One figure of a bearer in one direction.

    `bytes`: length of each packet on the link; `n`: number of packets; `measured`: the value by a clock, with
    the `standard_error` due to random draws; `drawn`: the value that the links drew for the same packets, in
    logical time; `long_run`: the value for very many packets in virtual time; `profile`: the profile's value;
    `deviation`: measured / drawn x long_run / profile - 1 (loss: long_run / profile - 1).
    """

    figure: Literal["one_way_s", "rate_bits_per_s", "loss"]
    direction: Literal["up", "down"]
    bytes: int
    n: int
    profile: float
    measured: float
    standard_error: float
    drawn: float
    long_run: float
    deviation: float | None


class BearerCheck(Object, frozen=True, kw_only=True):
    """A bearer compared with its profile: an object of `bearer check --json`."""

    bearer: Text
    seed: int
    figures: tuple[BearerFigure, ...]
    report: BearerReport


class MeasuredPath(Object, frozen=True, kw_only=True):
    """A measured path: an object of `bearer measure --json`. `profile`: the file that was written."""

    target: Text
    pings: int
    round_trip_s: Percentiles
    up_bits_per_s: float
    down_bits_per_s: float
    loss_up: float | None
    loss_down: float | None
    mtu_bytes: int
    profile: str


PRINTED = {
    "bearer-check": (BearerCheck, "An object of bearer check --json."),
    "measured-path": (MeasuredPath, "An object of bearer measure --json."),
}
