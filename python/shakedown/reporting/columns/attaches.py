"""Columns of attaches by SSL-based AKA: the papers' times, of full and of resumed handshakes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shakedown.reporting.columns import ALWAYS, ROOM, USUAL, WIDE, Column, Row, label, seconds
from shakedown.reporting.figures import UNKNOWN, bounded, time

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


def _seconds(name: str, rank: int) -> Column:
    """A time; with ≥ if a part of the work has no figure. A standard deviation then is unknown."""
    key = f"{name}_s"

    def text(row: Row) -> str:
        value = row.get(key)
        if value is None or not row["is_lower_bound"]:
            return time(value)
        return UNKNOWN if name == "sd" else bounded(time, None, value, None, digits=3)

    return seconds(key, name, rank=rank, text=text)


ATTACHES = (
    label("handshake", "handshake", identity=True),
    label("time", "time"),
    label("what", "what", rank=USUAL),
    *(_seconds(name, ALWAYS) for name in ("mean", "sd", "p50", "p95")),
    _seconds("p99", ROOM),
    _seconds("max", USUAL),
    Column(key="n", name="n", rank=WIDE, meaning="attaches"),
)


def attach_rows(
    full: AttachGroup | None, resumed: AttachGroup | None, *, lower_bounds: bool = False
) -> Iterator[dict[str, Any]]:
    """One row per time of each kind of handshake. `lower_bounds`: a part of the work has no figure."""
    for handshake, group in (("full", full), ("resumed", resumed)):
        for field, (short, what) in _TIMES.items() if group is not None else ():
            spread = getattr(group, field)
            if spread is not None:
                named = {
                    f"{name}_s": getattr(spread, name) for name in ("mean", "sd", "p50", "p95", "p99", "max")
                }
                about = {"handshake": handshake, "time": short, "what": what, "n": spread.n}
                yield {**about, **named, "is_lower_bound": lower_bounds}
