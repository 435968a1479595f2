"""Simulated beside modelled: a mean with its interval, and what the formulas say, a row each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.reporting.charts.canvas import across, down, lanes, shaped, texts, ticks
from shakedown.reporting.charts.figure import Definition, fitted
from shakedown.reporting.charts.theme import FILLS, INK, LANE, MUTED

_ROW_PX, _LABEL_PX = 44, 17
_SIMULATED = "simulated mean, 95 % interval"


@dataclass(frozen=True)
class Pair:
    """A figure found both ways, in one unit; a formula that says nothing is left out.

    Attributes:
        margin: half of the simulated mean's interval.
        formulas: what each formula's name says.
    """

    label: str
    simulated: float
    margin: float
    formulas: dict[str, float]


def beside(pairs: Sequence[Pair], title: str, width: int) -> Definition:
    """A row for each pair, on a logarithmic scale: waits lie decades apart."""
    values = [value for pair in pairs for value in (pair.simulated, *pair.formulas.values()) if value > 0.0]
    low, high = min(values) / 2.0, max(values) * 2.0
    names = list(dict.fromkeys(name for pair in pairs for name in pair.formulas))
    shapes = dict(zip(names, ("diamond", "triangle-up", "square"), strict=False))
    rows, spans, marks, labels, bands = [], [], [], [], []
    for position, pair in enumerate(pairs):
        middle = position * _ROW_PX + _LABEL_PX + 10
        labels.append({"y": position * _ROW_PX + 8, "text": fitted(pair.label, width - 60, 7.0)})
        bands.append({"top": middle - 7, "bottom": middle + 7})
        ends = max(pair.simulated - pair.margin, low), min(pair.simulated + pair.margin, high)
        spans.append({"from": ends[0], "to": ends[1], "y": middle})
        rows.append({"at": pair.simulated, "y": middle, "what": _SIMULATED})
        marks += [
            {"at": value, "y": middle, "what": name} for name, value in pair.formulas.items() if value > 0.0
        ]
    total = len(pairs) * _ROW_PX
    x, y = across(low, high, log=True), down(total)
    at_y: dict[str, Any] = {"field": "y", **y}
    inner = width - 40
    looks = {_SIMULATED: ("circle", FILLS["key"].light)} | {
        name: (shapes[name], FILLS["signature"].light if number == 0 else INK)
        for number, name in enumerate(names)
    }
    return {
        "width": inner,
        "height": total,
        "layer": [
            lanes(bands, 0, inner, y, color=LANE),
            {
                "data": {"values": spans},
                "mark": {"type": "rule", "color": FILLS["key"].light, "strokeWidth": 3},
                "encoding": {
                    "x": {"field": "from", "axis": ticks(title, width, grid=False), **x},
                    "x2": {"field": "to"},
                    "y": at_y,
                },
            },
            shaped([*rows, *marks], looks, x, at_y, opacity=1, size=70),
            texts(labels, "text", {"value": 0}, at_y, fontWeight=600, fontSize=12, color=MUTED),
        ],
    }
