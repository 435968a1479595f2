"""Stacked bars, as a rule two a suite: what the client's side comes to, and the server's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.report.figure import Definition, fitted
from shakedown.report.theme import FILLS, INK, MUTED

_LABEL_PX, _BAR_PX, _GAP_PX, _BETWEEN_PX = 17, 13, 3, 12
_BOLD_PX = 7.4
"""Width of a bold character in the widest font that a reader's browser takes."""
_BOTH = ("client", "server")


@dataclass(frozen=True)
class Segment:
    """One piece of a bar; `fill` names its look in the theme, `category` its word in the legend."""

    suite: str
    side: str
    category: str
    fill: str
    value: float


def stacked_bars(
    segments: Sequence[Segment],
    axis: str,
    totals: Sequence[str],
    width: int,
    sides: Sequence[str] = _BOTH,
) -> Definition:
    """A bar for each side of each suite over a common scale.

    Suites, and categories in a bar, stand in the order in which they first come; `totals` labels the bars'
    ends, side by side for each suite in that order.
    """
    suite_px = _LABEL_PX + len(sides) * (_BAR_PX + _GAP_PX) - _GAP_PX + _BETWEEN_PX
    suites = list(dict.fromkeys(segment.suite for segment in segments))
    categories = {segment.category: segment.fill for segment in segments}
    bars: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    for position, suite in enumerate(suites):
        for row, side in enumerate(sides):
            top = position * suite_px + _LABEL_PX + row * (_BAR_PX + _GAP_PX)
            reached = 0.0
            for category in categories:
                for segment in segments:
                    if (segment.suite, segment.side, segment.category) == (suite, side, category):
                        bars.append(
                            {
                                "category": category,
                                "from": reached,
                                "to": reached + segment.value,
                                "top": top,
                                "bottom": top + _BAR_PX,
                            }
                        )
                        reached += segment.value
            middle = top + _BAR_PX / 2
            ends.append(
                {"side": side, "to": reached, "middle": middle, "total": totals[len(sides) * position + row]}
            )
    names = [
        {"suite": fitted(suite, width - 60, _BOLD_PX), "y": position * suite_px + _LABEL_PX - 7}
        for position, suite in enumerate(suites)
    ]
    height = len(suites) * suite_px
    longest = max((end["to"] for end in ends), default=1.0) or 1.0
    # The longest bar's label must find its place inside the drawing.
    room = longest * (1 + 70 / width)
    x = {"type": "quantitative", "scale": {"domain": [0, room], "nice": False}}
    y = {"type": "quantitative", "scale": {"domain": [height, 0], "nice": False}, "axis": None}
    ticks = {"title": axis, "tickCount": 8 if width > 500 else 4, "labelExpr": "format(datum.value, ',')"}
    return {
        "width": width - 60,
        "height": height,
        "layer": [
            {
                "data": {"values": bars},
                "mark": {"type": "rect"},
                "encoding": {
                    "x": {"field": "from", "axis": ticks, **x},
                    "x2": {"field": "to"},
                    "y": {"field": "top", **y},
                    "y2": {"field": "bottom"},
                    "color": {
                        "field": "category",
                        "type": "nominal",
                        "sort": list(categories),
                        "legend": {"columns": len(categories) if width > 500 else 2},
                        "scale": {
                            "domain": list(categories),
                            "range": [FILLS[fill].light for fill in categories.values()],
                        },
                    },
                },
            },
            {
                "data": {"values": ends},
                "mark": {"type": "text", "align": "left", "dx": 5, "baseline": "middle", "color": INK},
                "encoding": {
                    "x": {"field": "to", **x},
                    "y": {"field": "middle", **y},
                    "text": {"field": "total"},
                },
            },
            {
                "data": {"values": ends},
                "mark": {"type": "text", "align": "right", "baseline": "middle", "color": MUTED},
                "encoding": {
                    "x": {"value": -6},
                    "y": {"field": "middle", **y},
                    "text": {"field": "side"},
                },
            },
            {
                "data": {"values": names},
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "middle",
                    "fontWeight": 600,
                    "fontSize": 12,
                },
                "encoding": {"x": {"value": 0}, "y": {"field": "y", **y}, "text": {"field": "suite"}},
            },
        ],
    }
