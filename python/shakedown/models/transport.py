"""The time of a flight on a link, and the bytes that WEP adds."""

from __future__ import annotations

import numpy as np

from shakedown.models.arrays import Floats, Numbers, floats


def flight_s(size_bytes: Numbers, rate_bits_per_s: Numbers, traversal_s: Numbers) -> Floats:
    """Time from the first byte sent to the last byte received: 8 B / r + τ; 0 for an empty flight."""
    size = floats(size_bytes)
    return np.where(size > 0.0, 8.0 * size / floats(rate_bits_per_s) + floats(traversal_s), 0.0)


def wep_wire_bytes(size_bytes: Numbers) -> Floats:
    """Bytes that WEP adds to a payload: IV, key ID and ICV, 8 for each frame of at most 1,500 bytes
    (IEEE 802.11-1997, 8.2).
    """
    return 8.0 * np.ceil(floats(size_bytes) / 1500.0)
