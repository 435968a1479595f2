"""Ranges: a mean between two ends, for each name or along an axis."""

from __future__ import annotations

from shakedown.reporting.charts.figure import Definition
from shakedown.reporting.charts.parts import (
    DASHES,
    FONT_PX,
    HEIGHT,
    WIDTH,
    Values,
    axis_of,
    line_colour,
    line_legend,
    names_axis,
    names_of,
    order_of,
    quantity,
)
from shakedown.reporting.charts.theme import FILLS, INK


def spans(values: Values, x: str, mean: str, low: str, high: str, y_title: str) -> Definition:
    """Means with one standard deviation either way, for series whose single values were not published."""
    groups = order_of(values, x)
    at_x = {"field": x, "type": "nominal", "sort": groups, "title": None, "axis": names_axis(groups, 1)}
    axis = axis_of(format=",~r")
    at_mean = {"x": at_x, "y": quantity(mean, y_title, axis=axis)}
    ends = {"x": at_x, "y": quantity(low, y_title, axis=axis), "y2": {"field": high}}
    band = {"type": "rule", "strokeWidth": 9, "color": FILLS["busy"].light, "strokeCap": "butt"}
    words = {"type": "text", "align": "left", "dx": 21, "fontSize": FONT_PX - 1, "color": INK}
    return {
        "data": {"values": list(values)},
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [
            {"mark": band, "encoding": ends},
            {
                "mark": {"type": "tick", "thickness": 3, "size": 34, "color": FILLS["key"].light},
                "encoding": at_mean,
            },
            {
                "transform": [{"calculate": f"format(datum['{mean}'], ',.0f')", "as": "_text"}],
                "mark": words,
                "encoding": {**at_mean, "text": {"field": "_text"}},
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
    scale = {"domain": [0, x_max], "nice": False}
    along = {
        "x": quantity("_from", x_title, scale=scale, axis=axis_of(tickCount=10)),
        "x2": {"field": "_to"},
    }
    at_low, at_mean = (quantity(one, y_title, axis=axis_of(format=",~r")) for one in (low, mean))
    return {
        "data": {"values": rows},
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [
            {
                "transform": [{"filter": f"datum['{series}'] == '{names[0]}'"}],
                "mark": {"type": "rect", "opacity": 0.55, "color": FILLS["busy"].light},
                "encoding": {**along, "y": at_low, "y2": {"field": high}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2.4},
                "encoding": {
                    **along,
                    "y": at_mean,
                    "color": line_colour(series, names),
                    "strokeDash": names_of(series, names, DASHES, legend=line_legend(names)),
                },
            },
        ],
    }
