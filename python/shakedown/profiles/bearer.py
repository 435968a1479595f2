"""Bearer profiles: what a network does to a handshake's bytes.

The file format is described in ``docs/reference/bearer-profile.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from shakedown.profiles.tables import Table

SCHEMA = 1
LINK_ENCRYPTIONS = ("none", "wep", "ccmp")


@dataclass(frozen=True, slots=True)
class BearerEnergy:
    """Radio power while sending, receiving and waiting, and energy per byte; None where unknown."""

    send_w: float | None = None
    receive_w: float | None = None
    idle_w: float | None = None
    send_j_per_byte: float | None = None
    receive_j_per_byte: float | None = None


@dataclass(frozen=True, slots=True)
class Bearer:
    """A validated bearer profile.

    Attributes:
        up_bits_per_s, down_bits_per_s: useful rates from and to the client.
        traversal_s, traversal_sd_s: one-way delay that does not depend on size, and its spread.
        mtu_bytes: largest network-layer packet.
        packet_overhead_bytes: link bytes added to each packet.
        link_encryption: ``none``, ``wep`` or ``ccmp``; its bytes per packet come on top.
        loss: probability that a packet is lost.
        setup_s: time before the first packet can go.
        queue_bytes: depth of the link's drop-tail queue, or None if unknown.
        applicable_messages: n of the thesis's equation 3.84 where the source fixes it, else None (counted).
        assumed: why a key has its value where no source gives it.
    """

    name: str
    title: str
    date: str
    source: tuple[str, ...]
    note: str
    up_bits_per_s: float
    down_bits_per_s: float
    traversal_s: float
    traversal_sd_s: float
    mtu_bytes: int
    packet_overhead_bytes: int
    link_encryption: str
    loss: float
    setup_s: float
    queue_bytes: int | None
    applicable_messages: int | None
    energy: BearerEnergy
    assumed: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The whole profile, rates in bit/s, times in seconds."""
        return {**asdict(self), "source": list(self.source), "assumed": dict(self.assumed)}


_UNITS = {
    "up": "bps",
    "down": "bps",
    "traversal": "ms",
    "traversal_sd": "ms",
    "setup": "ms",
    "mtu": "bytes",
}
_KEYS = [
    "schema",
    "name",
    "title",
    "date",
    "source",
    "note",
    "assumed",
    "up_bps",
    "down_bps",
    "traversal_ms",
    "traversal_sd_ms",
    "mtu_bytes",
    "packet_overhead_bytes",
    "link_encryption",
    "loss",
    "setup_ms",
    "queue_bytes",
    "applicable_messages",
    "energy",
]


def parse_bearer(document: Mapping[str, Any], where: str) -> Bearer:
    """Validate a bearer profile.

    Args:
        document: the parsed TOML document.
        where: how complaints name the file.

    Raises:
        InputError: naming file, key and what is accepted.
    """
    top = Table(document, where)
    if top.number("schema") != SCHEMA:
        raise top.fail(f"schema is {document['schema']!r}; accepted: {SCHEMA}")
    for word, unit in _UNITS.items():
        if word in top:
            raise top.fail(f"{word} lacks a unit; accepted: {word}_{unit}")
    assumed = top.assumptions()
    energy = top.table("energy")
    bearer = Bearer(
        name=top.text("name"),
        title=top.text("title"),
        date=top.text("date"),
        source=top.texts("source"),
        note=top.text("note", ""),
        up_bits_per_s=top.number("up_bps", above=0),
        down_bits_per_s=top.number("down_bps", above=0),
        traversal_s=top.number("traversal_ms") * 1e-3,
        traversal_sd_s=top.number("traversal_sd_ms", 0.0) * 1e-3,
        mtu_bytes=_whole(top, "mtu_bytes", 1500, 128),
        packet_overhead_bytes=_whole(top, "packet_overhead_bytes", 0, 0),
        link_encryption=top.text("link_encryption", "none", LINK_ENCRYPTIONS),
        loss=top.number("loss", 0.0, maximum=0.9),
        setup_s=top.number("setup_ms", 0.0) * 1e-3,
        queue_bytes=_whole(top, "queue_bytes", 0, 0) if "queue_bytes" in top else None,
        applicable_messages=_whole(top, "applicable_messages", 0, 1)
        if "applicable_messages" in top
        else None,
        energy=_energy(energy),
        assumed=assumed,
    )
    top.finish(_KEYS)
    return bearer


def _whole(table: Table, key: str, default: int, minimum: int) -> int:
    value = table.number(key, default, minimum=minimum)
    if value != int(value):
        raise table.fail(f"{key} is {value!r}; accepted: a whole number")
    return int(value)


def _energy(table: Table) -> BearerEnergy:
    keys = ["send_w", "receive_w", "idle_w", "send_j_per_byte", "receive_j_per_byte"]
    values = [table.number(key) if key in table else None for key in keys]
    table.finish(keys)
    return BearerEnergy(*values)
