"""The server's queue: response time by arrival rate of handshakes, with the knee marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from shakedown.reporting.charts.canvas import (
    WIDE,
    across,
    baselines,
    between,
    down,
    haloed,
    lanes,
    marks,
    ticks,
)
from shakedown.reporting.charts.figure import SUITE, TIP, Definition, label
from shakedown.reporting.charts.theme import INK, LANE, MUTED, PAPER, STEPS
from shakedown.reporting.figures import marked_rate, marked_time

_ROW_PX, _CURVE_PX, _LINE_PX, _ABOVE_PX = 62, 40, 15, 8

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


def rates_drawn(queues: Sequence[Row], asked: Sequence[float]) -> list[float]:
    """The given rates that are on the figure's scale."""
    lowest, highest = _scale(queues)
    return [one for one in asked if lowest <= one <= highest]


def _scale(queues: Sequence[Row]) -> tuple[float, float]:
    saturations = [queue["saturation_per_s"] for queue in queues]
    return min(saturations) / 30, max(saturations) * 1.6


def _rate(queue: Row, key: str) -> str:
    return f"{marked_rate(queue[key], queue['basis'])}/s"


def queue_curves(queues: Sequence[Row], asked: Sequence[float], width: int) -> Definition:
    """A row for each suite over one logarithmic scale of rates."""
    curves: list[Row] = []
    knees: list[Row] = []
    ends: list[Row] = []
    names: list[Row] = []
    bases: list[Row] = []
    at_asked: list[Row] = []
    drawn = rates_drawn(queues, asked)
    lowest, highest = _scale(queues)
    inner = width - 30
    wide = width > WIDE
    # On a narrow page a row has a second line of text.
    row_px = _ROW_PX + (0 if wide else _LINE_PX)
    end_x = {"value": inner if wide else 0}
    for position, queue in enumerate(queues):
        base = (position + 1) * row_px - 6
        scale = _CURVE_PX / 5 / queue["service_s"]

        def height(
            wait: float, base: float = base, scale: float = scale, work: float = queue["service_s"]
        ) -> float:
            return base - min(scale * (work + wait), _CURVE_PX)

        points = [(lowest, 0.0), *((at, wait) for at, wait in queue["points"] if at > lowest)]
        points = [(at, wait) for at, wait in points if wait <= 4 * queue["service_s"]]
        for order, (at, wait) in enumerate(points):
            curves.append(
                {SUITE: queue["label"], "of": position, "order": order, "rate": at, "y": height(wait)}
            )
        curve_per_s, curve_s = zip(*points, strict=True)
        for at in drawn:
            wait_s = float(np.interp(at, curve_per_s, curve_s, right=math.inf))
            if wait_s < math.inf:
                wait, both = (
                    marked_time(one, queue["basis"]) for one in (wait_s, queue["service_s"] + wait_s)
                )
                here = f"at {at:g}/s: wait {wait}, with the work {both}"
                at_asked.append({SUITE: queue["label"], TIP: here, "rate": at, "y": height(wait_s)})
        about = {SUITE: queue["label"]}
        knee, saturation = (_rate(queue, key) for key in ("knee_per_s", "saturation_per_s"))
        work = marked_time(queue["service_s"], queue["basis"])
        tips = {**about, TIP: f"work {work}; knee at {knee}; saturates at {saturation}"}
        reached = {"top": base - _CURVE_PX, "bottom": base}
        knee_text = f"knee {knee}"
        knee_y = height(float(np.interp(queue["knee_per_s"], curve_per_s, curve_s)))
        knees.append({**tips, "rate": queue["knee_per_s"], "y": knee_y, "text": knee_text})
        ends.append({**tips, "rate": queue["saturation_per_s"], **reached})
        bases.append({**tips, "y": base, **reached})
        names.append(
            {
                **about,
                **label(queue["label"], width - (190 if wide else 30), 7.4),
                "y": base - _CURVE_PX - _ABOVE_PX - (0 if wide else _LINE_PX),
                "end_y": base - _CURVE_PX - _ABOVE_PX,
                "end": ("" if wide else f"{knee_text}, ") + f"saturates at {saturation}",
            }
        )
    total = len(queues) * row_px
    x, y = across(lowest, highest, log=True), down(total)
    values = _round_rates(lowest, highest, (1, 2, 5) if width > WIDE else (1,))
    axis = ticks("handshakes a second", width, values=values, grid=False)
    at_rate, at_y = {"field": "rate", **x}, {"field": "y", **y}
    dot: Row = {"filled": True, "opacity": 1}
    return {
        "width": inner,
        "height": total,
        "layer": [
            lanes(bases, 0, inner, y, color=PAPER),
            marks(
                [{"rate": one} for one in drawn],
                "rule",
                {"x": {"axis": axis, **at_rate}},
                color=MUTED,
                strokeDash=[2, 3],
            ),
            baselines(bases, inner, at_y, color=LANE, strokeWidth=2),
            marks(
                curves,
                "line",
                {
                    "x": {"axis": axis, **at_rate},
                    "y": at_y,
                    "detail": {"field": "of", "type": "nominal"},
                    "order": {"field": "order", "type": "quantitative"},
                },
                color=STEPS["step4"].light,
                strokeWidth=2,
                interpolate="monotone",
            ),
            marks(ends, "rule", {"x": at_rate, **between(y)}, color=INK, strokeWidth=1),
            marks(knees, "point", {"x": at_rate, "y": at_y}, color=INK, size=46, **dot),
            marks(at_asked, "point", {"x": at_rate, "y": at_y}, color=STEPS["step4"].light, size=30, **dot),
            # The halo keeps texts legible in front of a dotted line.
            *(haloed(knees, "text", at_rate, at_y, "right", dx=-8, dy=-11) if wide else []),
            *haloed(names, "text", {"value": 0}, at_y, fontWeight=600),
            *haloed(names, "end", end_x, {"field": "end_y", **y}, "right" if wide else "left"),
        ],
    }
