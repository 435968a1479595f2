"""The server's queue: response time by the rate at which handshakes arrive, the knee marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from shakedown.reporting.charts.canvas import WIDE, across, down, haloed, texts, ticks
from shakedown.reporting.charts.figure import Definition, fitted
from shakedown.reporting.charts.theme import INK, LANE, MUTED, STEPS
from shakedown.reporting.terminal.figures import rate

_ROW_PX, _CURVE_PX = 62, 40

Row = dict[str, Any]


def _round_rates(lowest: float, highest: float, steps: Sequence[int]) -> list[float]:
    """Round numbers between two rates: 1, 2, 5, 10 …"""
    decades = range(math.floor(math.log10(lowest)), math.ceil(math.log10(highest)) + 1)
    return [
        step * 10.0**decade
        for decade in decades
        for step in steps
        if lowest <= step * 10.0**decade <= highest
    ]


def queue_curves(queues: Sequence[Row], asked: Sequence[float], width: int) -> Definition:
    """A row for each suite over one logarithmic scale of rates."""
    curves: list[Row] = []
    knees: list[Row] = []
    ends: list[Row] = []
    names: list[Row] = []
    bases: list[Row] = []
    lowest = min(queue["saturation_per_s"] for queue in queues) / 30
    highest = max(queue["saturation_per_s"] for queue in queues) * 1.6
    inner = width - 30
    for position, queue in enumerate(queues):
        base = position * _ROW_PX + _ROW_PX - 6
        scale = _CURVE_PX / 5 / queue["service_s"]

        def height(
            wait: float, base: float = base, scale: float = scale, work: float = queue["service_s"]
        ) -> float:
            return base - min(scale * (work + wait), _CURVE_PX)

        points = [(lowest, 0.0), *((at, wait) for at, wait in queue["points"] if at > lowest)]
        points = [(at, wait) for at, wait in points if wait <= 4 * queue["service_s"]]
        for order, (at, wait) in enumerate(points):
            curves.append({"suite": position, "order": order, "rate": at, "y": height(wait)})
        before = [pair for pair in points if pair[0] <= queue["knee_per_s"]]
        after = [pair for pair in points if pair[0] >= queue["knee_per_s"]]
        (r0, w0), (r1, w1) = before[-1], after[0] if after else before[-1]
        part = 0.0 if r1 == r0 else (queue["knee_per_s"] - r0) / (r1 - r0)
        knees.append(
            {
                "rate": queue["knee_per_s"],
                "y": height(w0 + part * (w1 - w0)),
                "text": f"knee {rate(queue['knee_per_s'])}/s",
            }
        )
        ends.append({"rate": queue["saturation_per_s"], "top": base - _CURVE_PX, "bottom": base})
        bases.append({"y": base})
        names.append(
            {
                "y": base - _CURVE_PX - 3,
                "text": fitted(queue["label"], width - 150, 6.6)
                + f"  saturates at {rate(queue['saturation_per_s'])}/s",
            }
        )
    total = len(queues) * _ROW_PX
    x, y = across(lowest, highest, log=True), down(total)
    values = _round_rates(lowest, highest, (1, 2, 5) if width > WIDE else (1,))
    axis = ticks("handshakes a second", width, values=values, grid=False)
    at_rate, at_y = {"field": "rate", **x}, {"field": "y", **y}
    shown = [{"rate": one} for one in asked if lowest <= one <= highest]
    return {
        "width": inner,
        "height": total,
        "layer": [
            {
                "data": {"values": shown},
                "mark": {"type": "rule", "color": MUTED, "strokeDash": [2, 3]},
                "encoding": {"x": {"axis": axis, **at_rate}},
            },
            {
                "data": {"values": bases},
                "mark": {"type": "rule", "color": LANE, "strokeWidth": 2},
                "encoding": {"y": at_y, "x": {"value": 0}, "x2": {"value": inner}},
            },
            {
                "data": {"values": curves},
                "mark": {
                    "type": "line",
                    "color": STEPS["step4"].light,
                    "strokeWidth": 2,
                    "interpolate": "monotone",
                },
                "encoding": {
                    "x": {"axis": axis, **at_rate},
                    "y": at_y,
                    "detail": {"field": "suite", "type": "nominal"},
                    "order": {"field": "order", "type": "quantitative"},
                },
            },
            {
                "data": {"values": ends},
                "mark": {"type": "rule", "color": INK, "strokeWidth": 1},
                "encoding": {"x": at_rate, "y": {"field": "top", **y}, "y2": {"field": "bottom"}},
            },
            {
                "data": {"values": knees},
                "mark": {"type": "point", "filled": True, "color": INK, "opacity": 1, "size": 46},
                "encoding": {"x": at_rate, "y": at_y},
            },
            texts(knees, "text", at_rate, at_y, "right", dx=-8, dy=-7, baseline="alphabetic"),
            # The halo keeps a name legible where a dotted line passes behind it.
            *haloed(names, "text", {"value": 0}, at_y, fontWeight=600),
        ],
    }
