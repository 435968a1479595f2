"""The server's queue: response time by the rate at which handshakes arrive, the knee marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from shakedown.report.figure import Definition, Figure, fitted
from shakedown.report.section import Block, Section
from shakedown.report.theme import INK, LANE, MUTED, PAPER, STEPS
from shakedown.results.folder import Results

_ROW_PX, _CURVE_PX = 62, 40

Row = dict[str, Any]


def queue_section(results: Results) -> Section | None:
    """How long a handshake waits and works at the server, by rate, with the knee marked."""
    queues = list(results.queues)
    if not queues:
        return None
    server = queues[0]["server_device"]
    asked = sorted({row["rate_per_s"] for row in results.predictions if row["rate_per_s"]})
    caption = (
        "Work and wait at one worker; each curve is as high as five times the work itself. The dot is the "
        "knee, where rate over response time is highest; the stroke is the limit, where the queue runs away."
    )
    if asked:
        caption += f" Dotted lines: {', '.join(f'{rate:g}' for rate in asked)} a second."
    free = [suite for suite in results.by_suite if suite not in {queue["suite"] for queue in queues}]
    if free:
        caption += f" Not drawn, for nothing that the server does in them has a price: {', '.join(free)}."
    figure = Figure(
        name="queue",
        title=f"Time at {server} by the rate of handshakes",
        kind="modelled",
        alternative="A curve for each suite: response time of the server against the rate, the knee marked",
        define=lambda width: queue_curves(queues, asked, width),
        data=[_point(queue, rate, wait) for queue in queues for rate, wait in queue["points"]],
        caption=caption,
    )
    slow = min(queues, key=lambda queue: queue["limit_per_s"])
    fast = max(queues, key=lambda queue: queue["limit_per_s"])
    lead = (
        f"One worker of {server} keeps up with {_rate(slow['limit_per_s'])} handshakes a second of "
        f"{slow['suite']}, and with {_rate(fast['limit_per_s'])} of {fast['suite']}; waits grow long from "
        "the knee on."
    )
    return Section("queue", "How many the server takes", lead, [Block(figure=figure)])


def _point(queue: Row, rate_per_s: float, wait_s: float) -> Row:
    return {
        "suite": queue["suite"],
        "server_device": queue["server_device"],
        "rate_per_s": rate_per_s,
        "wait_s": wait_s,
        "service_s": queue["service_s"],
        "knee_per_s": queue["knee_per_s"],
        "limit_per_s": queue["limit_per_s"],
        "kind": "modelled",
    }


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


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
    lowest = min(queue["limit_per_s"] for queue in queues) / 30
    highest = max(queue["limit_per_s"] for queue in queues) * 1.6
    inner = width - 30
    for position, queue in enumerate(queues):
        base = position * _ROW_PX + _ROW_PX - 6
        scale = _CURVE_PX / 5 / queue["service_s"]

        def height(
            wait: float, base: float = base, scale: float = scale, work: float = queue["service_s"]
        ) -> float:
            return base - min(scale * (work + wait), _CURVE_PX)

        points = [(lowest, 0.0), *((rate, wait) for rate, wait in queue["points"] if rate > lowest)]
        points = [(rate, wait) for rate, wait in points if wait <= 4 * queue["service_s"]]
        for order, (rate, wait) in enumerate(points):
            curves.append({"suite": position, "order": order, "rate": rate, "y": height(wait)})
        before = [pair for pair in points if pair[0] <= queue["knee_per_s"]]
        after = [pair for pair in points if pair[0] >= queue["knee_per_s"]]
        (r0, w0), (r1, w1) = before[-1], after[0] if after else before[-1]
        part = 0.0 if r1 == r0 else (queue["knee_per_s"] - r0) / (r1 - r0)
        knees.append(
            {
                "rate": queue["knee_per_s"],
                "y": height(w0 + part * (w1 - w0)),
                "text": f"knee {_rate(queue['knee_per_s'])}/s",
            }
        )
        ends.append({"rate": queue["limit_per_s"], "top": base - _CURVE_PX, "bottom": base})
        bases.append({"y": base})
        names.append(
            {
                "y": base - _CURVE_PX - 3,
                "text": fitted(queue["suite"], width - 110, 6.6) + f"  limit {_rate(queue['limit_per_s'])}/s",
            }
        )
    total = len(queues) * _ROW_PX
    x = {"type": "quantitative", "scale": {"type": "log", "domain": [lowest, highest], "nice": False}}
    y = {"type": "quantitative", "scale": {"domain": [total, 0], "nice": False}, "axis": None}
    ticks = {
        "title": "handshakes a second",
        "values": _round_rates(lowest, highest, (1, 2, 5) if width > 500 else (1,)),
        "grid": False,
        "labelExpr": "format(datum.value, ',')",
    }
    shown = [{"rate": rate} for rate in asked if lowest <= rate <= highest]
    return {
        "width": inner,
        "height": total,
        "layer": [
            {
                "data": {"values": shown},
                "mark": {"type": "rule", "color": MUTED, "strokeDash": [2, 3]},
                "encoding": {"x": {"field": "rate", "axis": ticks, **x}},
            },
            {
                "data": {"values": bases},
                "mark": {"type": "rule", "color": LANE, "strokeWidth": 2},
                "encoding": {"y": {"field": "y", **y}, "x": {"value": 0}, "x2": {"value": inner}},
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
                    "x": {"field": "rate", "axis": ticks, **x},
                    "y": {"field": "y", **y},
                    "detail": {"field": "suite", "type": "nominal"},
                    "order": {"field": "order", "type": "quantitative"},
                },
            },
            {
                "data": {"values": ends},
                "mark": {"type": "rule", "color": INK, "strokeWidth": 1},
                "encoding": {
                    "x": {"field": "rate", **x},
                    "y": {"field": "top", **y},
                    "y2": {"field": "bottom"},
                },
            },
            {
                "data": {"values": knees},
                "mark": {"type": "point", "filled": True, "color": INK, "opacity": 1, "size": 46},
                "encoding": {"x": {"field": "rate", **x}, "y": {"field": "y", **y}},
            },
            {
                "data": {"values": knees},
                "mark": {"type": "text", "align": "right", "dx": -8, "dy": -7, "color": INK},
                "encoding": {
                    "x": {"field": "rate", **x},
                    "y": {"field": "y", **y},
                    "text": {"field": "text"},
                },
            },
            # The halo keeps a name legible where a dotted line passes behind it.
            *(
                {
                    "data": {"values": names},
                    "mark": {
                        "type": "text",
                        "align": "left",
                        "baseline": "middle",
                        "fontWeight": 600,
                        **look,
                    },
                    "encoding": {"x": {"value": 0}, "y": {"field": "y", **y}, "text": {"field": "text"}},
                }
                for look in ({"stroke": PAPER, "strokeWidth": 5, "color": PAPER}, {"color": INK})
            ),
        ],
    }
