"""WEP's additional time of a transfer, measured on this machine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shakedown.papers.pda.inputs import BULK, RSA, TRANSFERS
from shakedown.papers.replication import Bulk, Replication
from shakedown.schema.base import Side


class Growth(NamedTuple):
    """WEP's additional time as a linear function of the transfer's size, and the goodness of fit."""

    s_per_byte: float
    fixed_s: float
    determination: float


def wep_growth(replication: Replication, suite: str, side: Side) -> Growth | None:
    """Regression of (WEP time - open time) over file size, as in figure 6; None if not measured."""
    pairs = transfers_of(replication, suite)
    if pairs is None:
        return None
    sizes = np.array([size for size, _, _ in pairs], dtype=float)
    extra = np.array([side_s(wep, side) - side_s(plain, side) for _, plain, wep in pairs])
    slope, fixed = np.polyfit(sizes, extra, 1)
    left = extra - (slope * sizes + fixed)
    return Growth(
        float(slope), float(fixed), 1 - float((left**2).sum() / ((extra - extra.mean()) ** 2).sum())
    )


def transfers_of(replication: Replication, suite: str) -> list[tuple[int, Bulk, Bulk]] | None:
    """A suite's transfers without and with WEP by size; None if one is missing."""
    plain, wep = (replication.transfers(suite, link, TRANSFERS.sizes_bytes) for link in ("open", "wep"))
    if plain is None or wep is None:
        return None
    return list(zip(TRANSFERS.sizes_bytes, plain, wep, strict=True))


def side_s(bulk: Bulk, side: Side) -> float:
    return (bulk.client_us if side == "client" else bulk.server_us) / 1e6


def growth_words(replication: Replication) -> str:
    """The reason why slopes of two machines cannot be compared, and the slope on this machine."""
    found = wep_growth(replication, RSA, "client")
    words = "compares two machines, and only one is available"
    if found is None:
        return f"{words}; {BULK}"
    return (
        f"{words}, where WEP's processing grows by {1e6 * 2**20 * found.s_per_byte:.0f} µs per MiB on the "
        "receiving "
        f"side (R² {found.determination:.3f})"
    )
