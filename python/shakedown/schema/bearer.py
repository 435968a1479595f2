"""What emulated bearers did, and their figures: `bearer check --json`."""

from __future__ import annotations

from typing import Literal

from shakedown.schema.base import Object, Text


class PacketCounts(Object, frozen=True, kw_only=True):
    """What became of the packets of one direction."""

    offered: int
    delivered: int
    delivered_bytes: int
    lost: int
    queue_full: int
    other_drops: int
    duplicated: int
    rejected: int


class Lateness(Object, frozen=True, kw_only=True):
    """How much later than due packets were handed over: the emulator's own error; `p99_s` is null of fewer
    than 100 packets.
    """

    mean_s: float
    p50_s: float
    p99_s: float | None
    max_s: float


class BearerReport(Object, frozen=True, kw_only=True):
    """What a bearer did. `key`: of its link encryption, hexadecimal, as Wireshark takes it."""

    up: PacketCounts
    down: PacketCounts
    lateness: Lateness
    key: str | None


class Percentiles(Object, frozen=True, kw_only=True):
    """Of a measured time."""

    min: float
    p50: float
    p95: float
    max: float


class BearerFigure(Object, frozen=True, kw_only=True):
    """One figure of a bearer in one direction.

    `bytes`: length of each packet on the link; `n`: packets that the figure rests on; `measured`: by a clock,
    with the `standard_error` that the draws make; `drawn`: what the links made of the same packets in logical
    time; `long_run`: what they draw for very many, in virtual time; `profile`: what the profile says;
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
    """A path that was measured: an object of `bearer measure --json`. `profile`: the file written."""

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
