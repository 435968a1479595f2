"""Bearer profiles: what a network does to a handshake's bytes.

The file format is described in ``docs/reference/bearer-profile.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from shakedown.errors import did_you_mean
from shakedown.profiles.delay import DelayProfile, parse_delay
from shakedown.profiles.tables import Table

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
    "energy",
    "thesis",
)
"""What a source or an assumption may be about."""


RADIO_SPREAD = 1.5
"""How far a radio's power may be off another module of its kind, where the profile does not say."""


@dataclass(frozen=True, slots=True)
class BearerEnergy:
    """Radio power and energy of the client; None where unknown.

    Attributes:
        send_w, receive_w, idle_w: power while sending, receiving, and connected without either.
        send_j_per_byte, receive_j_per_byte: instead of power times time.
        setup_j: energy of the set-up from idle.
        tail_w, tail_s: power and time for which the radio stays connected after the last byte; 0: it does
            not.
        spread: factor by which another radio of the kind may draw more or less.
    """

    send_w: float | None = None
    receive_w: float | None = None
    idle_w: float | None = None
    send_j_per_byte: float | None = None
    receive_j_per_byte: float | None = None
    setup_j: float | None = None
    tail_w: float | None = None
    tail_s: float | None = None
    spread: float = RADIO_SPREAD

    @property
    def known(self) -> bool:
        """Whether sending and receiving have an energy."""
        by_time = self.send_w is not None and self.receive_w is not None
        return by_time or (self.send_j_per_byte is not None and self.receive_j_per_byte is not None)


@dataclass(frozen=True, slots=True)
class BearerDirection:
    """One way through the network.

    Attributes:
        rate_bits_per_s: useful rate.
        delay: one-way delay that does not depend on size.
        loss: probability that a packet is lost.
        loss_burst_packets: mean number of packets lost in a row; 0: each by itself.
        queue_bytes: depth of the drop-tail queue before the rate, or None if unknown.
        duty_cycle: share of the time that may be spent sending.
        pause_s: silence after each packet.
    """

    rate_bits_per_s: float
    delay: DelayProfile
    loss: float = 0.0
    loss_burst_packets: float = 0.0
    queue_bytes: int | None = None
    duty_cycle: float = 1.0
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ThesisModel:
    """What the thesis's model (Bayoglu 2004, 3.84) takes where the bearer comes from that thesis.

    Attributes:
        traversal_s, traversal_sd_s: one-way delay τ as that model defines it, and its deviation.
        overhead_bytes: what a handshake has on the channel beyond its messages.
    """

    traversal_s: float
    traversal_sd_s: float = 0.0
    overhead_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Bearer:
    """A validated bearer profile.

    Attributes:
        up, down: from and to the client.
        setup: what the first packet after silence waits for the radio; None: none, or unknown.
        delay_holds_s: for how long a drawn delay holds in a direction.
        half_duplex: both directions share the rate's time.
        super_packets: what becomes of TCP's: ``none`` travel, or they are lost as one, and arrive ``cut`` or
            ``whole``.
        mtu_bytes: largest network-layer packet.
        ip_bytes, udp_bytes: headers of a packet and of a datagram, as compressed.
        packet_overhead_bytes: link bytes added to each packet.
        link_encryption: ``none``, ``wep`` or ``ccmp``; its bytes per packet come on top.
        applicable_messages: n of the thesis's equation 3.84 where the source fixes it, else None (counted).
        thesis: what the thesis's model takes, if not the mean of the delay.
        source: what each aspect comes from; aspect ``""`` is for all.
        assumed: why an aspect has its value where no source gives it.
    """

    name: str
    title: str
    date: str
    note: str
    up: BearerDirection
    down: BearerDirection
    setup: DelayProfile | None
    delay_holds_s: float
    half_duplex: bool
    super_packets: str
    mtu_bytes: int
    ip_bytes: int
    udp_bytes: int
    packet_overhead_bytes: int
    link_encryption: str
    applicable_messages: int | None
    thesis: ThesisModel | None
    energy: BearerEnergy
    source: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    assumed: Mapping[str, str] = field(default_factory=dict)

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
        """One-way delay as the thesis's model takes it: its own, else the mean of both directions."""
        if self.thesis is not None:
            return self.thesis.traversal_s
        return (self.up.delay.distribution.mean + self.down.delay.distribution.mean) / 2.0

    @property
    def traversal_sd_s(self) -> float:
        """Deviation of ``traversal_s``, for one way."""
        if self.thesis is not None:
            return self.thesis.traversal_sd_s
        return math.hypot(self.up.delay.distribution.sd, self.down.delay.distribution.sd) / math.sqrt(2.0)

    @property
    def loss(self) -> float:
        """Probability that a packet is lost, the mean of both directions."""
        return (self.up.loss + self.down.loss) / 2.0

    @property
    def setup_s(self) -> float:
        """Mean of the set-up from idle, 0 if none is known."""
        return 0.0 if self.setup is None else self.setup.distribution.mean

    def as_json(self) -> dict[str, Any]:
        """The whole profile, rates in bit/s, times in seconds; delays as crates/link reads them."""

        def direction(way: BearerDirection) -> dict[str, Any]:
            return {**asdict(way), "delay": way.delay.as_json()}

        return {
            "name": self.name,
            "title": self.title,
            "date": self.date,
            "note": self.note,
            "up": direction(self.up),
            "down": direction(self.down),
            "setup": None if self.setup is None else self.setup.as_json(),
            "delay_holds_s": self.delay_holds_s,
            "half_duplex": self.half_duplex,
            "super_packets": self.super_packets,
            "mtu_bytes": self.mtu_bytes,
            "ip_bytes": self.ip_bytes,
            "udp_bytes": self.udp_bytes,
            "packet_overhead_bytes": self.packet_overhead_bytes,
            "link_encryption": self.link_encryption,
            "applicable_messages": self.applicable_messages,
            "thesis": None if self.thesis is None else asdict(self.thesis),
            "energy": asdict(self.energy),
            "source": {aspect: list(texts) for aspect, texts in self.source.items()},
            "assumed": dict(self.assumed),
        }


_UNITS = {
    "up": "bps",
    "down": "bps",
    "traversal": "ms",
    "traversal_sd": "ms",
    "setup": "ms",
    "delay_holds": "ms",
    "mtu": "bytes",
}
_KEYS = [
    "schema",
    "name",
    "title",
    "date",
    "note",
    "source",
    "assumed",
    "up",
    "down",
    "up_bps",
    "down_bps",
    "traversal_ms",
    "traversal_sd_ms",
    "loss",
    "queue_bytes",
    "setup_ms",
    "delay_holds_ms",
    "half_duplex",
    "super_packets",
    "mtu_bytes",
    "ip_bytes",
    "udp_bytes",
    "packet_overhead_bytes",
    "link_encryption",
    "applicable_messages",
    "thesis",
    "energy",
]
_DIRECTION_KEYS = [
    "rate_bps",
    "delay_ms",
    "loss",
    "loss_burst_packets",
    "queue_bytes",
    "duty_cycle",
    "pause_ms",
]
_ENERGY_KEYS = list(BearerEnergy.__dataclass_fields__)


def parse_bearer(document: Mapping[str, Any], where: str) -> Bearer:
    """Validate a bearer profile.

    Args:
        document: the parsed TOML document.
        where: how complaints name the file.

    Raises:
        InputError: naming file, key and what is accepted.
    """
    top = Table(document, where)
    schema = top.number("schema")
    if schema not in (1, SCHEMA):
        raise top.fail(f"schema is {document['schema']!r}; accepted: {SCHEMA}")
    for word, unit in _UNITS.items():
        if word in top and not isinstance(document[word], dict):
            raise top.fail(f"{word} lacks a unit; accepted: {word}_{unit}")
    assumed = _about(top, document, "assumed")
    source = _sources(top, document)
    up, down = _directions(top, document)
    bearer = Bearer(
        name=top.text("name"),
        title=top.text("title"),
        date=top.text("date"),
        note=top.text("note", ""),
        up=up,
        down=down,
        setup=parse_delay(top, document, "setup_ms") if "setup_ms" in document else None,
        delay_holds_s=top.number("delay_holds_ms", 0.0) * 1e-3,
        half_duplex=_flag(top, document, "half_duplex"),
        super_packets=top.text("super_packets", "none", SUPER_PACKETS),
        mtu_bytes=_whole(top, "mtu_bytes", 1500, 8),
        ip_bytes=_whole(top, "ip_bytes", 20, 0),
        udp_bytes=_whole(top, "udp_bytes", 8, 0),
        packet_overhead_bytes=_whole(top, "packet_overhead_bytes", 0, 0),
        link_encryption=top.text("link_encryption", "none", LINK_ENCRYPTION_BYTES),
        applicable_messages=_whole(top, "applicable_messages", 0, 1)
        if "applicable_messages" in top
        else None,
        thesis=_thesis(top),
        energy=_energy(top.table("energy")),
        source=source,
        assumed={key: " ".join(texts) for key, texts in assumed.items()},
    )
    top.finish(_KEYS)
    if bearer.mtu_bytes <= bearer.ip_bytes + bearer.udp_bytes:
        raise top.fail(
            f"mtu_bytes is {bearer.mtu_bytes}; accepted: more than the headers' "
            f"{bearer.ip_bytes + bearer.udp_bytes}"
        )
    return bearer


def _sources(top: Table, document: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    if isinstance(document.get("source"), dict):
        found = _about(top, document, "source")
        if not found:
            raise top.fail("source is empty; accepted: at least one")
        return found
    return {"": top.texts("source")}


def _about(top: Table, document: Mapping[str, Any], key: str) -> dict[str, tuple[str, ...]]:
    """A table from aspects to texts; an aspect may be named by a key that belongs to it."""
    if key not in document:
        return {}
    table = top.table(key)
    found: dict[str, tuple[str, ...]] = {}
    for name, value in document[key].items():
        if name not in ASPECTS and not _given(document, name):
            raise table.fail(
                f"{name!r} is not in the profile; accepted: {', '.join(ASPECTS)}{did_you_mean(name, ASPECTS)}"
            )
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t for t in texts):
            raise table.fail(f"{name} is {value!r}; accepted: a non-empty string, or a list of them")
        found[name] = tuple(texts)
    return found


def _given(document: Mapping[str, Any], key: str) -> bool:
    """Whether a key is in the profile; within a table it is named with a dot, as in ``energy.idle_w``."""
    place: object = document
    for part in key.split("."):
        if not isinstance(place, dict) or part not in place:
            return False
        place = place[part]
    return True


def _directions(top: Table, document: Mapping[str, Any]) -> tuple[BearerDirection, BearerDirection]:
    """``[up]`` and ``[down]``, or the short form, which is alike both ways."""
    short = [key for key in ("up_bps", "down_bps", "traversal_ms", "traversal_sd_ms") if key in top]
    tables = [key for key in ("up", "down") if key in document]
    if tables and short:
        raise top.fail(f"{short[0]} and [{tables[0]}] at once; accepted: one of the two forms")
    if tables:
        return _direction(top.table("up"), document, "up"), _direction(top.table("down"), document, "down")
    up, down = top.number("up_bps", above=0), top.number("down_bps", above=0)
    mean_s = top.number("traversal_ms") * 1e-3
    delay = DelayProfile.of_moments(mean_s, top.number("traversal_sd_ms", 0.0) * 1e-3)
    loss = top.number("loss", 0.0, maximum=0.9)
    queue = _whole(top, "queue_bytes", 0, 0) if "queue_bytes" in top else None
    return BearerDirection(up, delay, loss, 0.0, queue), BearerDirection(down, delay, loss, 0.0, queue)


def _direction(table: Table, document: Mapping[str, Any], key: str) -> BearerDirection:
    given = document.get(key, {})
    if "rate" in table:
        raise table.fail("rate lacks a unit; accepted: rate_bps")
    direction = BearerDirection(
        rate_bits_per_s=table.number("rate_bps", above=0),
        delay=parse_delay(table, given, "delay_ms"),
        loss=table.number("loss", 0.0, maximum=0.9),
        loss_burst_packets=table.number("loss_burst_packets", 0.0),
        queue_bytes=_whole(table, "queue_bytes", 0, 0) if "queue_bytes" in table else None,
        duty_cycle=table.number("duty_cycle", 1.0, above=0, maximum=1),
        pause_s=table.number("pause_ms", 0.0) * 1e-3,
    )
    table.finish(_DIRECTION_KEYS)
    return direction


def _flag(top: Table, document: Mapping[str, Any], key: str) -> bool:
    value = document.get(key, False)
    if not isinstance(value, bool):
        raise top.fail(f"{key} is {value!r}; accepted: true or false")
    if key in top:
        top.drop(key)
    return value


def _thesis(top: Table) -> ThesisModel | None:
    if "thesis" not in top:
        return None
    table = top.table("thesis")
    model = ThesisModel(
        table.number("traversal_ms") * 1e-3,
        table.number("traversal_sd_ms", 0.0) * 1e-3,
        _whole(table, "overhead_bytes", 0, 0),
    )
    table.finish(["traversal_ms", "traversal_sd_ms", "overhead_bytes"])
    return model


def _whole(table: Table, key: str, default: int, minimum: int) -> int:
    value = table.number(key, default, minimum=minimum)
    if value != int(value):
        raise table.fail(f"{key} is {value!r}; accepted: a whole number")
    return int(value)


_TOGETHER = (
    ("send_w", "receive_w"),
    ("send_j_per_byte", "receive_j_per_byte"),
    ("tail_w", "tail_s"),
)
"""Keys of an energy of which one says nothing."""


def _energy(table: Table) -> BearerEnergy:
    values = {key: table.number(key) for key in _ENERGY_KEYS if key in table and key != "spread"}
    if "spread" in table:
        values["spread"] = table.number("spread", minimum=1)
    for pair in _TOGETHER:
        given = [key for key in pair if key in values]
        if len(given) == 1:
            raise table.fail(f"{given[0]} stands alone; accepted: both {' and '.join(pair)}, or neither")
    table.finish(_ENERGY_KEYS)
    return BearerEnergy(**values)
