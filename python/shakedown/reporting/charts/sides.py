"""Stacked bars, usually two per suite: the client's side and the server's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.reporting.charts.canvas import across, down, filled, rectangles, texts, ticks
from shakedown.reporting.charts.figure import SUITE, TIP, Definition, label
from shakedown.reporting.charts.theme import MUTED
from shakedown.schema.base import SIDES

_LABEL_PX, _BAR_PX, _GAP_PX, _BETWEEN_PX = 20, 13, 3, 12
_BOLD_PX = 7.4
"""Width of a bold character in the widest of the possible fonts."""


@dataclass(frozen=True)
class Segment:
    """A part of a bar; `fill` is its look in the theme, `category` its name in the legend.

    `spread` is the uncertainty of the whole bar's value.
    """

    suite: str
    side: str
    category: str
    fill: str
    value: float
    spread: str = ""


def stacked_bars(
    segments: Sequence[Segment],
    totals: Sequence[str],
    axis: str,
    width: int,
    sides: Sequence[str] = SIDES,
) -> Definition:
    """A bar for each side of each suite over a common scale.

    Suites, and categories in a bar, are in their order of first appearance; `totals` are the labels at the
    ends of the bars, side by side for each suite in that order.
    """
    suite_px = _LABEL_PX + len(sides) * (_BAR_PX + _GAP_PX) - _GAP_PX + _BETWEEN_PX
    suites = list(dict.fromkeys(segment.suite for segment in segments))
    categories = {segment.category: segment.fill for segment in segments}
    of: dict[tuple[str, str, str], list[Segment]] = {}
    for segment in segments:
        of.setdefault((segment.suite, segment.side, segment.category), []).append(segment)
    bars: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    for position, suite in enumerate(suites):
        for row, side in enumerate(sides):
            top = position * suite_px + _LABEL_PX + row * (_BAR_PX + _GAP_PX)
            reached = 0.0
            for category in categories:
                for segment in of.get((suite, side, category), ()):
                    end = reached + segment.value
                    total = totals[len(sides) * position + row]
                    whole = f"of {total}{segment.spread}"
                    bars.append(
                        {
                            SUITE: suite,
                            TIP: f"{side} {category}: {segment.value:,.6g} {axis}; {whole}".strip(),
                            "category": category,
                            "from": reached,
                            "to": end,
                            "top": top,
                            "bottom": top + _BAR_PX,
                        }
                    )
                    reached = end
            middle = top + _BAR_PX / 2
            total = totals[len(sides) * position + row]
            ends.append({SUITE: suite, "side": side, "to": reached, "middle": middle, "total": total})
    names = [
        {SUITE: suite, **label(suite, width - 60, _BOLD_PX), "y": position * suite_px + _LABEL_PX - 10}
        for position, suite in enumerate(suites)
    ]
    height = len(suites) * suite_px
    longest = max((end["to"] for end in ends), default=1.0) or 1.0
    # The label of the longest bar must fit into the drawing.
    x, y = across(0, longest * (1 + 70 / width)), down(height)
    middle_y = {"field": "middle", **y}
    return {
        "width": width - 60,
        "height": height,
        "layer": [
            rectangles(
                bars, {"axis": ticks(axis, width), **x}, y, color=filled("category", categories, width)
            ),
            texts(ends, "total", {"field": "to", **x}, middle_y, dx=5),
            texts(ends, "side", {"value": -6}, middle_y, "right", color=MUTED),
            texts(names, "text", {"value": 0}, {"field": "y", **y}, fontWeight=600, fontSize=12),
        ],
    }
