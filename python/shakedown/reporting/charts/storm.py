"""A storm of clients over time: how many are still outside, a row for each suite on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.reporting.charts.canvas import WIDE, across, down, haloed, lanes, rectangles, texts, ticks
from shakedown.reporting.charts.figure import Definition, fitted
from shakedown.reporting.charts.theme import FILLS, INK, LANE, MUTED, STEPS
from shakedown.reporting.terminal.figures import time, whole

AXIS = "seconds since the first client could arrive (shaded: they come; area: how many are still outside)"

_ROW_PX, _AREA_PX, _LABEL_PX = 96, 62, 20

_FEW_PX = 210
"""Room that a row's last label needs."""


@dataclass(frozen=True)
class Storm:
    """A fleet over time.

    Attributes:
        outside: ends of intervals (s), and the clients that were neither in nor gone by then.
        recovery_s: when the last client was in.
        most_in_s: when 99 % of all clients were; None where fewer ever were.
        failed: clients that gave up.
    """

    suite: str
    outside: Sequence[tuple[float, float]]
    recovery_s: float
    failed: float
    most_in_s: float | None = None


def storms(fleets: Sequence[Storm], arrive_s: float, width: int) -> Definition:
    """A row for each fleet: the area of those still outside, its peak, and when the last one is in.

    `arrive_s` is the time within which all arrive; it is shaded.
    """
    # Who gives up is outside for longer than the last one who gets in.
    gone_s = max((at_s for one in fleets for at_s, many in one.outside if many > 0.0), default=0.0)
    end_s = max(gone_s, arrive_s, *(one.recovery_s for one in fleets)) * 1.02 or 1.0
    most = max((many for one in fleets for _, many in one.outside), default=1.0) or 1.0
    inner = width - 40
    per_s = inner / end_s
    areas: list[dict[str, Any]] = []
    names: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    bases: list[dict[str, Any]] = []
    peaks: list[dict[str, Any]] = []
    for position, one in enumerate(fleets):
        base = position * _ROW_PX + _LABEL_PX + _AREA_PX
        before_s = 0.0
        for at_s, many in one.outside:
            if many > 0.0:
                top = base - _AREA_PX * many / most
                areas.append({"from": before_s, "to": at_s, "top": top, "bottom": base})
            before_s = at_s
        bases.append({"y": base, "top": base - _AREA_PX, "bottom": base})
        names.append(
            {"y": base - _AREA_PX - 11, "text": fitted(one.suite, width - (260 if width > WIDE else 60), 7.0)}
        )
        ends.append({"at": one.recovery_s, "top": base - 26, "bottom": base})
        most_in = "" if one.most_in_s is None else f"; 99 % in after {time(one.most_in_s)}"
        peak = max((many for _, many in one.outside), default=0.0)
        peaks.append({"y": base - _AREA_PX - 11, "text": f"up to {whole(peak)} outside at once{most_in}"})
        gone = f", {whole(one.failed)} gave up" if one.failed else ""
        last = f"{'last one' if one.failed else 'all'} in after {time(one.recovery_s)}{gone}"
        room = (end_s - one.recovery_s) * per_s > _FEW_PX
        marks.append(
            {
                "at": one.recovery_s,
                "y": base - 35,
                "text": last,
                "align": "left" if one.recovery_s * per_s < _FEW_PX and room else "right",
            }
        )
    total = len(fleets) * _ROW_PX
    x, y = across(0, end_s), down(total)
    blue = STEPS["step3"].light
    axis = ticks(AXIS, width, grid=False)
    at_x, at_y = {"field": "at", **x}, {"field": "y", **y}
    return {
        "width": inner,
        "height": total,
        "layer": [
            lanes(bases, 0, arrive_s * per_s, y, color=LANE),
            rectangles(areas, {"axis": axis, **x}, y, color=blue, stroke=blue, strokeWidth=0.6),
            {
                "data": {"values": bases},
                "mark": {"type": "rule", "color": MUTED, "strokeWidth": 1},
                "encoding": {"y": at_y, "x": {"value": 0}, "x2": {"value": inner}},
            },
            {
                "data": {"values": ends},
                "mark": {"type": "rule", "color": FILLS["signature"].light, "strokeWidth": 2.5},
                "encoding": {"x": at_x, "y": {"field": "top", **y}, "y2": {"field": "bottom"}},
            },
            *haloed(marks, "text", at_x, at_y, "each", fontWeight=600, fontSize=12),
            texts(names, "text", {"value": 0}, at_y, fontWeight=600, fontSize=12, color=INK),
            *([texts(peaks, "text", {"value": inner}, at_y, "right", color=MUTED)] if width > WIDE else []),
        ],
    }
