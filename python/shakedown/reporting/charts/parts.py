"""Common parts of the kinds of figures: sizes, axes, legends, colours, dashes and panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shakedown.reporting.charts.figure import Definition
from shakedown.reporting.charts.theme import FILLS, GRID, INK, MUTED

WIDTH, HEIGHT = 580, 270
FONT_PX = 13

Values = Sequence[Mapping[str, object]]

_LOOKS = ("key", "signature", "common", "hello", "busy")
_LINES = ("key", "signature", "hello", "common", "busy")
DASHES: tuple[list[int], ...] = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [14, 4])
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "cross")
_DARKER_GREY = {"common": "#6b7682", "busy": "#17212b"}


def title_of(text: str) -> dict[str, Any]:
    """A title that is broken at the width of the drawing."""
    rows, row = [], ""
    for word in text.split():
        if len(row) + len(word) > 78:
            rows.append(row)
            row = ""
        row = f"{row} {word}".strip()
    return {
        "text": [*rows, row],
        "anchor": "start",
        "fontSize": FONT_PX + 1,
        "fontWeight": 600,
        "color": INK,
        "offset": 10,
        "lineHeight": 18,
    }


def axis_of(**more: object) -> dict[str, Any]:
    """An axis in the common font and colours."""
    return {
        "labelFontSize": FONT_PX,
        "titleFontSize": FONT_PX,
        "labelColor": INK,
        "titleColor": INK,
        "labelOverlap": True,
        "labelLimit": 220,
        "domain": True,
        "domainColor": MUTED,
        "gridColor": GRID,
        "titlePadding": 8,
        **more,
    }


def names_axis(groups: Sequence[str], count: int) -> dict[str, Any]:
    """An axis of names, all of them printed; they are rotated if they would touch."""
    crowded = sum(len(group) + 2 for group in groups) * count > 84
    return axis_of(labelAngle=-55 if crowded else 0, grid=False, labelOverlap=False)


def decades(bottom: float, top: float) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, and 2 and 5 between them if there are few."""
    import math

    powers = [10.0**power for power in range(round(math.log10(bottom)), round(math.log10(top)) + 1)]
    if len(powers) > 4:
        return powers
    return [power * step for power in powers for step in (1, 2, 5)]


def legend_of(names: Sequence[str], **more: object) -> dict[str, Any]:
    """A legend above the drawing, in as many columns as fit."""
    wide = sum(len(name) + 6 for name in names)
    longest = max((len(name) + 6 for name in names), default=1)
    columns = len(names) if wide <= 86 else max(1, 86 // longest)
    return {"labelFontSize": FONT_PX, "columns": columns, "orient": "top", "title": None, **more}


def quantity(field: str, title: str | None = None, **more: object) -> dict[str, Any]:
    """A field of numbers along an axis; the axis' title is `title`, or else the field's name."""
    return {"field": field, "type": "quantitative", "title": title or field, **more}


def names_of(field: str, names: Sequence[str], looks: Sequence[object], **more: object) -> dict[str, Any]:
    """A field of names, each with its look; the looks repeat if there are more names."""
    shown = [looks[number % len(looks)] for number in range(len(names))]
    return {"field": field, "type": "nominal", "scale": {"domain": list(names), "range": shown}, **more}


def line_legend(names: Sequence[str]) -> dict[str, Any]:
    return legend_of(names, symbolType="stroke", symbolSize=600, symbolStrokeWidth=2)


def colour_of(field: str, names: Sequence[str]) -> dict[str, Any]:
    """Colours and patterns of categories."""
    legend = legend_of(names, symbolStrokeColor=INK, symbolStrokeWidth=0.5)
    return names_of(field, names, [FILLS[look].light for look in _LOOKS], sort=list(names), legend=legend)


def line_colour(field: str, names: Sequence[str]) -> dict[str, Any]:
    """Colours of lines; greys are darker than in areas."""
    looks = [_DARKER_GREY.get(look, FILLS[look].light) for look in _LINES]
    return names_of(field, names, looks, legend=line_legend(names))


def header_of(field: str, order: Sequence[str]) -> dict[str, Any]:
    """The headings of panels that are side by side."""
    return {
        "field": field,
        "type": "nominal",
        "sort": list(order),
        "header": {
            "title": None,
            "labelFontSize": FONT_PX,
            "labelFontWeight": 600,
            "labelColor": INK,
            "labelAnchor": "start",
            "labelOrient": "top",
            "labelPadding": 4,
        },
    }


def panelled(unit: Definition, values: Values, panels: str | None, facet: str | None) -> Definition:
    """One drawing for each panel, below or beside each other."""
    data = {"values": list(values)}
    if not panels and not facet:
        return {"data": data, **unit}
    split = {}
    if panels:
        split["row"] = header_of(panels, order_of(values, panels))
    if facet:
        split["column"] = header_of(facet, order_of(values, facet))
    return {
        "data": data,
        "facet": split,
        "spec": unit,
        "spacing": {"row": 34, "column": 20},
        "resolve": {"scale": {"x": "independent"}},
    }


def order_of(values: Values, field: str) -> list[str]:
    """The names of a field in their order of appearance."""
    return list(dict.fromkeys(str(row[field]) for row in values))


def power_below(value: float) -> int:
    """The exponent of the power of ten at or below a value."""
    import math

    return math.floor(math.log10(value))
