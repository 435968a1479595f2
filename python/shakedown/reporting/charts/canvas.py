"""Drawings with pixel layouts: rectangles, texts and rules at positions that rows contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from shakedown.reporting.charts.figure import Definition
from shakedown.reporting.charts.theme import FILLS, INK, PAPER

Row = Mapping[str, Any]

WIDE = 500
"""Pages wider than this many pixels have the wide layout."""
_SYMBOL_PX = 36
"""Width in pixels of a legend's symbol with the gaps around it."""

CHARACTER_PX = 6.2
"""Mean width of a character at the labels' size."""


def across(low: float, high: float, *, log: bool = False) -> dict[str, Any]:
    kind = {"type": "log"} if log else {}
    return {"type": "quantitative", "scale": {**kind, "domain": [low, high], "nice": False}}


def down(height: float) -> dict[str, Any]:
    """The vertical scale: pixels from the top."""
    return {"type": "quantitative", "scale": {"domain": [height, 0], "nice": False}, "axis": None}


def ticks(title: str, width: int, **more: object) -> dict[str, Any]:
    """A horizontal axis; on a narrow page it has fewer ticks, and a title of several lines."""
    count = {} if "values" in more else {"tickCount": 8 if width > WIDE else 4}
    lines = wrap(title, int(width / CHARACTER_PX)) if width <= WIDE else [title]
    return {"title": lines, "labelExpr": "format(datum.value, ',')", **count, **more}


def marks(rows: Sequence[Row], kind: str, encoding: Mapping[str, Any], **look: object) -> Definition:
    return {"data": {"values": list(rows)}, "mark": {"type": kind, **look}, "encoding": dict(encoding)}


def between(y: Mapping[str, Any]) -> dict[str, Any]:
    """The vertical extent from the field `top` to `bottom`."""
    return {"y": {"field": "top", **y}, "y2": {"field": "bottom"}}


def rectangles(
    rows: Sequence[Row],
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    **more: Any,  # noqa: ANN401 - any mark's
) -> Definition:
    """Rectangles from `from` to `to`, from `top` to `bottom`; `color` is an encoding or a single colour."""
    encoding = {"x": {"field": "from", **x}, "x2": {"field": "to"}, **between(y)}
    if "color" in more and isinstance(more["color"], dict):
        encoding["color"] = more.pop("color")
    return marks(rows, "rect", encoding, **more)


def lanes(
    rows: Sequence[Row], left_px: float, right_px: float, y: Mapping[str, Any], **mark: object
) -> Definition:
    """Bands over the whole width, from `top` to `bottom`."""
    return marks(rows, "rect", {"x": {"value": left_px}, "x2": {"value": right_px}, **between(y)}, **mark)


def baselines(rows: Sequence[Row], right_px: float, y: Mapping[str, Any], **mark: object) -> Definition:
    """Rules over the whole width, at `y`."""
    return marks(rows, "rule", {"y": y, "x": {"value": 0}, "x2": {"value": right_px}}, **mark)


def shaped(
    rows: Sequence[Row],
    looks: Mapping[str, tuple[str, str]],
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    **mark: object,
) -> Definition:
    """Points at `at`, with the shape and colour in `looks` of their `what`."""
    names = list(looks)

    def scale(place: int) -> dict[str, Any]:
        return {
            "field": "what",
            "type": "nominal",
            "scale": {"domain": names, "range": [look[place] for look in looks.values()]},
            "sort": names,
        }

    encoding = {"x": {"field": "at", **x}, "y": y, "shape": scale(0), "color": scale(1)}
    return marks(rows, "point", encoding, filled=True, **mark)


def texts(
    rows: Sequence[Row],
    field: str,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    align: str = "left",
    **mark: object,
) -> Definition:
    """The texts of a field, vertically centred."""
    look = {"color": INK, **mark}
    how = {"align": align} if align != "each" else {"align": {"expr": "datum.align"}}
    encoding = {"x": dict(x), "y": dict(y), "text": {"field": field}}
    return marks(rows, "text", encoding, **{"baseline": "middle", **how, **look})


def haloed(
    rows: Sequence[Row],
    field: str,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    align: str = "left",
    **mark: object,
) -> list[Definition]:
    """Texts with a halo, which stay legible in front of other marks."""
    halo = {"stroke": PAPER, "strokeWidth": 5, "color": PAPER}
    return [texts(rows, field, x, y, align, **{**mark, **look}) for look in (halo, {"color": INK})]


def legend_columns(names: Sequence[str], width: int) -> int:
    """One column per name; on a narrow page two, or one if the longest names are too long for two."""
    if width > WIDE:
        return len(names)
    longest = sorted(map(len, names))[-2:]
    return 2 if CHARACTER_PX * sum(longest) + 2 * _SYMBOL_PX <= width else 1


def filled(field: str, looks: Mapping[str, str], width: int) -> dict[str, Any]:
    """Categories by fill; `looks` maps each category to its fill."""
    return {
        "field": field,
        "type": "nominal",
        "sort": list(looks),
        "legend": {"columns": legend_columns(list(looks), width)},
        "scale": {"domain": list(looks), "range": [FILLS[fill].light for fill in looks.values()]},
    }
