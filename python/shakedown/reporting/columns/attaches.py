"""Columns of attaches by SSL-based AKA: the papers' times, of full and of resumed handshakes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shakedown.reporting.columns import ALWAYS, ROOM, USUAL, WIDE, Column, label, seconds

if TYPE_CHECKING:
    from shakedown.schema.aka import AttachGroup

_TIMES = {
    "nrt_s": ("NRT", "connection"),
    "rpt_s": ("RPT", "with preparation"),
    "tht_s": ("THT", "handshake"),
    "tst_s": ("TST", "RPT and THT"),
    "scrt_s": ("SCRT", "server"),
    "attach_s": ("attach", "until accepted"),
}

ATTACHES = (
    label("handshake", "handshake", identity=True),
    label("time", "time"),
    label("what", "what", rank=USUAL),
    *(seconds(f"{name}_s", name, rank=ALWAYS) for name in ("mean", "sd", "p50", "p95")),
    seconds("p99_s", "p99", rank=ROOM),
    seconds("max_s", "max"),
    Column(key="n", name="n", rank=WIDE, meaning="attaches"),
)


def attach_rows(full: AttachGroup | None, resumed: AttachGroup | None) -> Iterator[dict[str, Any]]:
    """One row per time of each kind of handshake."""
    for handshake, group in (("full", full), ("resumed", resumed)):
        for field, (time, what) in _TIMES.items() if group is not None else ():
            spread = getattr(group, field)
            if spread is not None:
                named = {
                    f"{name}_s": getattr(spread, name) for name in ("mean", "sd", "p50", "p95", "p99", "max")
                }
                yield {"handshake": handshake, "time": time, "what": what, "n": spread.n, **named}
