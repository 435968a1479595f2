"""Bearer profiles: the properties of networks.

The file format is described in ``docs/reference/bearer-profile.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from shakedown.profiles.cell import RATE_LIMITS, parse_cell
from shakedown.profiles.delay import distribution, of_moments, parse_delay
from shakedown.profiles.tables import Table
from shakedown.schema.base import builtins
from shakedown.schema.profiles import BearerEnergy, BearerProfile, BearerWay, HostTcp, ThesisBearer

SCHEMA = 2
SUPER_PACKETS = ("none", "cut", "whole")
LINK_ENCRYPTION_BYTES = {"none": 0, "wep": 8, "ccmp": 16}  # IV, key ID and ICV; header and MIC
ASPECTS = (
    "rate",
    "delay",
    "delay_holds",
    "loss",
    "queue",
    "setup",
    "duplex",
    "offload",
    "mtu",
    "headers",
    "overhead",
    "encryption",
    "duty",
    "cell",
    "access",
    "energy",
    "thesis",
)
"""The aspects to which a source or an assumption may refer."""


RADIO_SPREAD = 1.5
"""The default uncertainty (a factor) of a radio's power, between modules of its type."""


MAX_LOSS = 0.9
"""The largest loss probability in a profile; above it hardly any handshake completes."""

MAX_MTU_BYTES, MAX_OVERHEAD_BYTES, MAX_HEADER_BYTES = 1_000_000, 65_535, 60
MAX_TAIL_S = 1e9

CONGESTION_CONTROLS = ("cubic", "reno", "bbr")
HOST_LIMITS = {
    "initial_window": (1, 1000),
    "syn_linear_timeouts": (0, 20),
    "syn_retries": (0, 20),
    "synack_retries": (0, 20),
    "reordering": (3, 300),
}
"""The numbers of `HostTcp`, each with its minimum and maximum."""


class Bearer(BearerProfile, frozen=True, kw_only=True):
    """A validated bearer profile."""

    def __repr__(self) -> str:
        return f"Bearer({self.name}: {self.title})"

    @property
    def link_bytes(self) -> int:
        """Bytes added to each packet below the network layer."""
        return self.packet_overhead_bytes + LINK_ENCRYPTION_BYTES[self.link_encryption]

    @property
    def up_bits_per_s(self) -> float:
        """Rate from the client."""
        return self.up.rate_bits_per_s

    @property
    def down_bits_per_s(self) -> float:
        """Rate to the client."""
        return self.down.rate_bits_per_s

    @property
    def traversal_s(self) -> float:
        """One-way delay in the thesis's model: that of `thesis`, else the mean of both directions."""
        if self.thesis is not None:
            return self.thesis.traversal_s
        return (distribution(self.up.delay).mean + distribution(self.down.delay).mean) / 2.0

    @property
    def traversal_sd_s(self) -> float:
        """Standard deviation of ``traversal_s``, for one direction."""
        if self.thesis is not None:
            return self.thesis.traversal_sd_s
        return math.hypot(distribution(self.up.delay).sd, distribution(self.down.delay).sd) / math.sqrt(2.0)

    @property
    def loss(self) -> float:
        """Probability that a packet is lost, the mean of both directions."""
        return (self.up.loss + self.down.loss) / 2.0

    @property
    def setup_s(self) -> float:
        """Mean of the set-up from idle, 0 if none is known."""
        return 0.0 if self.setup is None else distribution(self.setup).mean

    def as_json(self) -> dict[str, Any]:
        """The profile as a dict, rates in bit/s, times in seconds; delays in the form of crates/link."""
        found: dict[str, Any] = builtins(self)
        return found


_UNITS = {
    "up": "bps",
    "down": "bps",
    "traversal": "ms",
    "traversal_sd": "ms",
    "setup": "ms",
    "delay_holds": "ms",
    "mtu": "bytes",
}


def parse_bearer(document: Mapping[str, Any], where: str) -> Bearer:
    """Validate a bearer profile, a TOML document; `where` is its name in errors. Raises `InputError`."""
    top = Table(document, where)
    schema = top.number("schema")
    if schema != SCHEMA:
        raise top.fail(f"schema is {document['schema']!r}; accepted: {SCHEMA}")
    for word, unit in _UNITS.items():
        if word in top and not isinstance(document[word], dict):
            raise top.fail(f"{word} lacks a unit; accepted: {word}_{unit}")
    assumed = top.about("assumed", ASPECTS)
    source = _sources(top)
    up, down = _directions(top)
    bearer = Bearer(
        name=top.text("name"),
        title=top.text("title"),
        date=top.text("date"),
        note=top.text("note", ""),
        up=up,
        down=down,
        setup=parse_delay(top, "setup_ms") if "setup_ms" in top else None,
        delay_holds_s=top.seconds("delay_holds_ms", 0.0),
        half_duplex=top.flag("half_duplex", default=False),
        super_packets=cast(Any, top.text("super_packets", "none", SUPER_PACKETS)),
        mtu_bytes=top.whole("mtu_bytes", 1500, minimum=8, maximum=MAX_MTU_BYTES),
        ip_bytes=top.whole("ip_bytes", 20, maximum=MAX_HEADER_BYTES),
        udp_bytes=top.whole("udp_bytes", 8, maximum=MAX_HEADER_BYTES),
        packet_overhead_bytes=top.whole("packet_overhead_bytes", 0, maximum=MAX_OVERHEAD_BYTES),
        link_encryption=cast(Any, top.text("link_encryption", "none", LINK_ENCRYPTION_BYTES)),
        applicable_messages=top.maybe_whole("applicable_messages", minimum=1),
        thesis=_thesis(top),
        energy=_energy(top.table("energy")),
        cell=None if (cell := top.maybe_table("cell")) is None else parse_cell(cell),
        tcp=_tcp(top.table("tcp")),
        source=source,
        assumed={key: " ".join(texts) for key, texts in assumed.items()},
    )
    top.finish("setup_ms")
    if bearer.energy.setup_j and bearer.setup is None:
        raise top.fail("[energy]: setup_j is given without setup_ms; accepted: with setup_ms, or not at all")
    if bearer.mtu_bytes <= bearer.ip_bytes + bearer.udp_bytes:
        raise top.fail(
            f"mtu_bytes is {bearer.mtu_bytes}; accepted: more than the bytes of the headers, "
            f"{bearer.ip_bytes + bearer.udp_bytes}"
        )
    return bearer


def _sources(top: Table) -> dict[str, tuple[str, ...]]:
    if not isinstance(top.peek("source"), dict):
        return {"": top.texts("source")}
    found = top.about("source", ASPECTS)
    if not found:
        raise top.fail("source is empty; accepted: at least one")
    return found


def _directions(top: Table) -> tuple[BearerWay, BearerWay]:
    """``[up]`` and ``[down]``, or the short form, in which only the rates of both directions differ."""
    short = [key for key in ("up_bps", "down_bps", "traversal_ms", "traversal_sd_ms") if key in top]
    tables = [key for key in ("up", "down") if key in top]
    if tables and short:
        raise top.fail(f"{short[0]} and [{tables[0]}] are both given; accepted: one of the two forms")
    if tables:
        return _direction(top.table("up")), _direction(top.table("down"))
    up, down = (top.number(key, **RATE_LIMITS) for key in ("up_bps", "down_bps"))
    delay = of_moments(top.seconds("traversal_ms"), top.seconds("traversal_sd_ms", 0.0))
    loss, queue = top.number("loss", 0.0, maximum=MAX_LOSS), top.maybe_whole("queue_bytes")
    shared = {"delay": delay, "loss": loss, "loss_burst_packets": 0.0, "queue_bytes": queue}
    alike: dict[str, Any] = {**shared, "duty_cycle": 1.0, "pause_s": 0.0}
    return BearerWay(rate_bits_per_s=up, **alike), BearerWay(rate_bits_per_s=down, **alike)


def _direction(table: Table) -> BearerWay:
    if "rate" in table:
        raise table.fail("rate lacks a unit; accepted: rate_bps")
    burst = table.number("loss_burst_packets", 0.0)
    if 0.0 < burst < 1.0:
        raise table.fail(f"loss_burst_packets is {burst:g}; accepted: 0, or 1 or more")
    direction = BearerWay(
        rate_bits_per_s=table.number("rate_bps", **RATE_LIMITS),
        delay=parse_delay(table, "delay_ms"),
        loss=table.number("loss", 0.0, maximum=MAX_LOSS),
        loss_burst_packets=burst,
        queue_bytes=table.maybe_whole("queue_bytes"),
        duty_cycle=table.number("duty_cycle", 1.0, above=0, maximum=1),
        pause_s=table.seconds("pause_ms", 0.0),
    )
    table.finish()
    return direction


def _thesis(top: Table) -> ThesisBearer | None:
    table = top.maybe_table("thesis")
    if table is None:
        return None
    model = ThesisBearer(
        table.seconds("traversal_ms"),
        table.seconds("traversal_sd_ms", 0.0),
        table.whole("overhead_bytes", 0),
    )
    table.finish()
    return model


def _tcp(table: Table) -> HostTcp:
    usual = HostTcp()
    tcp = HostTcp(
        cast(Any, table.text("congestion", usual.congestion, CONGESTION_CONTROLS)),
        quick_ack=table.flag("quick_ack", default=usual.quick_ack),
        **{
            key: table.whole(key, getattr(usual, key), minimum=least, maximum=most)
            for key, (least, most) in HOST_LIMITS.items()
        },
    )
    table.finish()
    return tcp


_TOGETHER = (
    ("send_w", "receive_w"),
    ("send_j_per_byte", "receive_j_per_byte"),
    ("tail_w", "tail_s"),
)
"""Keys of `[energy]` that are only valid together."""


def _energy(table: Table) -> BearerEnergy:
    numbers = (name for name in BearerEnergy.__struct_fields__ if name != "spread")
    values = {
        name: table.maybe(name, **({"maximum": MAX_TAIL_S} if name == "tail_s" else {})) for name in numbers
    }
    for one, other in _TOGETHER:
        if (values[one] is None) != (values[other] is None):
            alone = other if values[one] is None else one
            raise table.fail(f"{alone} is given alone; accepted: both {one} and {other}, or neither")
    spread = table.number("spread", RADIO_SPREAD, minimum=1)
    table.finish()
    return BearerEnergy(**values, spread=spread)
