"""The data that each client sends after its handshake: `rate=100B/s,for=10min,size=512B`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from shakedown.errors import InputError
from shakedown.schema.units import parse_bytes, parse_bytes_per_s
from shakedown.simulation.keyed import Reader, duration, read_keyed

ACCEPTED = "accepted: rate=100B/s,for=10min,size=512B, all three keys"
MAX_BYTES = 1 << 30
MAX_BYTES_PER_S = 1e12
MAX_S = 1e7
MIN_INTERVAL_S = 1e-6
MAX_COUNT = (1 << 32) - 1


@dataclass(frozen=True)
class Records:
    """Bytes that a client sends at equal intervals, until it closes its connection.

    Attributes:
        bytes_per_s: mean rate.
        open_s: maximum duration of a connection; it is closed after the last whole piece.
        size_bytes: size of the pieces, each of which is sent at once.
    """

    bytes_per_s: float
    open_s: float
    size_bytes: int

    @property
    def interval_s(self) -> float:
        """The time until a ready client first sends, and between two pieces."""
        return self.size_bytes / self.bytes_per_s

    @property
    def count(self) -> int:
        """The number of pieces that a client sends."""
        return math.floor(self.open_s / self.interval_s * (1.0 + 1e-12))

    def spec(self) -> dict[str, Any]:
        return {"interval_s": self.interval_s, "count": self.count}


def parse_records(text: str) -> Records:
    """Read the option. Raises `InputError`."""
    found = read_keyed("records", text, _READERS, ACCEPTED, needed=_READERS)
    one = Records(found["rate"], found["for"], found["size"])
    if one.interval_s < MIN_INTERVAL_S:
        raise InputError(
            f'records "{text:.60}": {one.size_bytes:,} bytes every {one.interval_s:.2g} s; accepted: '
            f"{MIN_INTERVAL_S:g} s or more, as by a larger size"
        )
    if not 1 <= one.count <= MAX_COUNT:
        raise InputError(
            f'records "{text:.60}": a client sends {one.count:,} times; accepted: 1 to {MAX_COUNT:,} times, '
            f"here every {one.interval_s:.3g} s"
        )
    return one


def _bytes(value: str) -> int:
    found = parse_bytes(value)
    if not (1.0 <= found <= MAX_BYTES and found == int(found)):
        raise InputError(f'"{value:.20}"; accepted: a whole number of bytes from 1 to {MAX_BYTES:,}')
    return int(found)


def _bytes_per_s(value: str) -> float:
    found = parse_bytes_per_s(value)
    if not 0.0 < found <= MAX_BYTES_PER_S:
        raise InputError(f"a rate of {value:.20}; accepted: above 0, {MAX_BYTES_PER_S:g} B/s at most")
    return found


_READERS: dict[str, Reader] = {
    "rate": _bytes_per_s,
    "for": duration(1e-6, MAX_S),
    "size": _bytes,
}
