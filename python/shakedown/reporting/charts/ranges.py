"""Spreads: a mean between two ends, for each name or along a line."""

from __future__ import annotations

from shakedown.reporting.charts.figure import Definition
from shakedown.reporting.charts.parts import (
    DASHES,
    FONT_PX,
    HEIGHT,
    WIDTH,
    Values,
    axis_of,
    legend_of,
    line_colour,
    order_of,
)
from shakedown.reporting.charts.theme import FILLS, INK


def spans(values: Values, x: str, mean: str, low: str, high: str, y_title: str) -> Definition:
    """Means with one standard deviation either way, for series of which nothing else was published."""
    groups = order_of(values, x)
    at_x = {"field": x, "type": "nominal", "sort": groups, "title": None, "axis": axis_of(labelAngle=0)}
    quantitative = {"type": "quantitative", "title": y_title, "axis": axis_of(format=",~r")}
    return {
        "data": {"values": list(values)},
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 9, "color": FILLS["busy"].light, "strokeCap": "butt"},
                "encoding": {
                    "x": at_x,
                    "y": {"field": low, **quantitative},
                    "y2": {"field": high},
                },
            },
            {
                "mark": {"type": "tick", "thickness": 3, "size": 34, "color": FILLS["key"].light},
                "encoding": {"x": at_x, "y": {"field": mean, **quantitative}},
            },
            {
                "transform": [{"calculate": f"format(datum['{mean}'], ',.0f')", "as": "_text"}],
                "mark": {"type": "text", "align": "left", "dx": 21, "fontSize": FONT_PX - 1, "color": INK},
                "encoding": {"x": at_x, "y": {"field": mean, **quantitative}, "text": {"field": "_text"}},
            },
        ],
    }


def bands(
    values: Values, x_title: str, x_max: float, y_title: str, fields: tuple[str, str, str, str]
) -> Definition:
    """Horizontal means with their deviations over an axis of repetitions whose single values are unknown.

    Args:
        values: rows with a series' name, mean, low and high; ``fields`` names those four.
        x_title, x_max: the axis of repetitions.
        y_title: title of the vertical axis.
    """
    series, mean, low, high = fields
    names = order_of(values, series)
    rows = [{**row, "_from": 1, "_to": x_max} for row in values]
    x_axis = {
        "type": "quantitative",
        "scale": {"domain": [0, x_max], "nice": False},
        "title": x_title,
        "axis": axis_of(tickCount=10),
    }
    y_axis = {"type": "quantitative", "title": y_title, "axis": axis_of(format=",~r")}
    dashes = {"domain": names, "range": [DASHES[i % 5] for i in range(len(names))]}
    return {
        "data": {"values": rows},
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [
            {
                "transform": [{"filter": f"datum['{series}'] == '{names[0]}'"}],
                "mark": {"type": "rect", "opacity": 0.55, "color": FILLS["busy"].light},
                "encoding": {
                    "x": {"field": "_from", **x_axis},
                    "x2": {"field": "_to"},
                    "y": {"field": low, **y_axis},
                    "y2": {"field": high},
                },
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2.4},
                "encoding": {
                    "x": {"field": "_from", **x_axis},
                    "x2": {"field": "_to"},
                    "y": {"field": mean, **y_axis},
                    "color": line_colour(series, names),
                    "strokeDash": {
                        "field": series,
                        "type": "nominal",
                        "scale": dashes,
                        "legend": legend_of(names, symbolType="stroke", symbolSize=600, symbolStrokeWidth=2),
                    },
                },
            },
        ],
    }
