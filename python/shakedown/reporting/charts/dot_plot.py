"""One figure found in several ways: a row each, a mark a way, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.reporting.charts.canvas import across, down, lanes, shaped, texts, ticks
from shakedown.reporting.charts.figure import Definition, fitted
from shakedown.reporting.charts.theme import FILLS, INK, LANE, MUTED

_ROW_PX, _LABEL_PX = 44, 17
_LOOKS = {
    "live": ("circle", FILLS["key"].light),
    "modelled": ("diamond", FILLS["signature"].light),
    "simulated": ("triangle-up", INK),
    "engines in virtual time": ("triangle-down", FILLS["busy"].light),
}


@dataclass(frozen=True)
class Way:
    """A figure (ms) by the ways that say something of it, live, modelled and simulated ones; all above 0."""

    label: str
    times_ms: dict[str, float]


def ways(rows: Sequence[Way], title: str, width: int) -> Definition:
    """A row for each figure."""
    values = [value for row in rows for value in row.times_ms.values()]
    labels, bands, marks = [], [], []
    for position, row in enumerate(rows):
        middle = position * _ROW_PX + _LABEL_PX + 10
        labels.append({"y": position * _ROW_PX + 8, "text": fitted(row.label, width - 60, 7.0)})
        bands.append({"top": middle - 7, "bottom": middle + 7})
        marks += [{"at": value, "y": middle, "what": kind} for kind, value in row.times_ms.items()]
    total, inner = len(rows) * _ROW_PX, width - 40
    x, y = across(min(values) / 2.0, max(values) * 2.0, log=True), down(total)
    at_y: dict[str, Any] = {"field": "y", **y}
    return {
        "width": inner,
        "height": total,
        "layer": [
            lanes(bands, 0, inner, y, color=LANE),
            shaped(marks, _LOOKS, {"axis": ticks(title, width, grid=False), **x}, at_y, opacity=0.9, size=80),
            texts(labels, "text", {"value": 0}, at_y, fontWeight=600, fontSize=12, color=MUTED),
        ],
    }
