"""Clients for comparisons with formulas: links carry only their messages, and take only the bytes' time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def clients(
    messages: Sequence[dict[str, Any]],
    *,
    rate_bits_per_s: float | None = None,
    one_way_s: float = 0.0,
    **more: object,
) -> dict[str, Any]:
    """A class of clients as the simulator's core reads it; `more`: its weight, its cell."""
    return {
        "handshake": {"name": "clients", "transport": "ideal", "messages": list(messages)},
        "bearer": {
            "up_bits_per_s": rate_bits_per_s,
            "down_bits_per_s": rate_bits_per_s,
            "traversal_s": one_way_s,
        },
        **more,
    }
