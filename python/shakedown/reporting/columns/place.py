"""Device, bearer and server: the columns and texts that predictions, capacities and simulations share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shakedown.profiles.software import DEFAULT_SOFTWARE
from shakedown.reporting.columns import Row, label

PLACE = (
    label("device", "device", identity=True),
    label("server_device", "server device", identity=True),
    label("bearer", "bearer", identity=True),
)


def place_title(rows: Sequence[Row]) -> str:
    """The place of all rows: `cortex-m4 over nb-iot to server (nginx), 2 workers`; without the software if it
    is the default.
    """
    device, bearer, server = (
        _all(rows, key, many)
        for key, many in (("device", "devices"), ("bearer", "bearers"), ("server_device", "server devices"))
    )
    if (software := common(rows, "server_software")) not in (None, DEFAULT_SOFTWARE):
        server += f" ({software})"
    workers = common(rows, "workers") or 1
    return f"{device} over {bearer} to {server}" + (f", {workers} workers" if workers > 1 else "")


def common(rows: Sequence[Row], key: str) -> Any:  # noqa: ANN401 - a value of a row
    """The value that all rows share, or None."""
    first = rows[0].get(key)
    return first if all(row.get(key) == first for row in rows) else None


def _all(rows: Sequence[Row], key: str, many: str) -> str:
    names = dict.fromkeys(row[key] for row in rows)
    return next(iter(names)) if len(names) == 1 else f"{len(names)} {many}"
