"""Lines, and points with the line fitted to them."""

from __future__ import annotations

from typing import Any

from shakedown.reporting.charts.figure import Definition
from shakedown.reporting.charts.parts import (
    DASHES,
    FONT_PX,
    HEIGHT,
    SYMBOLS,
    WIDTH,
    Values,
    axis_of,
    decades,
    header_of,
    legend_of,
    line_colour,
    line_legend,
    names_of,
    order_of,
    power_below,
    quantity,
)
from shakedown.reporting.charts.theme import INK, PAPER


def lines(
    values: Values,
    x: str,
    y: str,
    series: str,
    *,
    marks: Values = (),
    label: str = "label",
    log_x: bool = False,
    log_y: bool = False,
    y_min: float = 0.0,
    y_max: float | None = None,
    x_max: float | None = None,
    panels: str | None = None,
    symbols: bool = False,
) -> Definition:
    """Lines over a number.

    ``marks`` are single points with a text beside them (a value that a paper printed), or below them if they
    are ``below``.
    """
    names = order_of(values, series)
    # Values above the axis are dropped: clipping by the renderer would leave stray ink.
    shown = [dict(row) for row in values if y_max is None or float(str(row[y])) <= y_max]
    y_scale: dict[str, Any] = {"type": "log"} if log_y else {}
    ticks: dict[str, Any] = {}
    if log_y:
        heights = [float(str(row[y])) for row in shown]
        ticks = {
            "values": decades(10.0 ** power_below(min(heights)), 10.0 ** (power_below(max(heights)) + 1))
        }
    if y_max is not None:
        y_scale |= {"domain": [y_min, y_max], "nice": False}
    x_scale = {"type": "log"} if log_x else {} if x_max is None else {"domain": [0, x_max]}
    x_axis = axis_of(format="~s" if log_x else ",~r", tickCount=10)
    encoding = {
        "x": quantity(x, scale={**x_scale, "nice": False}, axis=x_axis),
        "y": quantity(y, scale=y_scale, axis=axis_of(format=",~r", **ticks)),
        "color": line_colour(series, names),
        "strokeDash": names_of(series, names, DASHES, sort=names, legend=line_legend(names)),
    }
    look: dict[str, Any] = {"type": "line", "strokeWidth": 2}
    if symbols:
        look["point"] = {"filled": False, "size": 55, "strokeWidth": 1.6}
        encoding["shape"] = names_of(series, names, SYMBOLS, legend=None)
    layer: list[Definition] = [{"mark": look, "encoding": encoding}]
    if marks:
        point = {"x": {"field": x, "type": "quantitative"}, "y": {"field": y, "type": "quantitative"}}
        cross = {"type": "point", "shape": "cross", "size": 90, "color": INK, "strokeWidth": 2}
        beside = {"type": "text", "align": "left", "dx": 9, "dy": {"expr": "datum.below ? 15 : -9"}}
        halo = {"stroke": PAPER, "strokeWidth": 4, "color": PAPER}
        layer.append({"data": {"values": list(marks)}, "mark": cross, "encoding": point})
        layer += [
            {
                "data": {"values": list(marks)},
                "mark": {**beside, "fontSize": FONT_PX - 1, **ink},
                "encoding": {**point, "text": {"field": label}},
            }
            for ink in (halo, {"color": INK})
        ]
    height = HEIGHT if not panels else HEIGHT * 0.75
    if panels:
        return {
            "data": {"values": shown},
            "facet": {"row": header_of(panels, order_of(values, panels))},
            "spec": {"layer": layer, "width": WIDTH, "height": height},
        }
    return {"data": {"values": shown}, "layer": layer, "width": WIDTH, "height": height}


def regression(values: Values, x: str, y: str, series: str, what: str) -> Definition:
    """Points and the lines fitted to them; ``what`` distinguishes rows "measured" and "regression"."""
    names = order_of(values, series)
    legend = legend_of(names, symbolSize=110, symbolStrokeWidth=2)
    place = {
        "x": quantity(x, scale={"nice": False}, axis=axis_of(format=",~r")),
        "y": quantity(y, axis=axis_of(format=",~r")),
        "color": {**line_colour(series, names), "legend": legend},
    }
    dashes = names_of(series, names, DASHES, sort=names, legend=None)
    shapes = names_of(series, names, SYMBOLS, sort=names, legend=legend)
    return {
        "data": {"values": list(values)},
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [
            {
                "transform": [{"filter": f"datum['{what}'] == 'regression'"}],
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {**place, "strokeDash": dashes},
            },
            {
                "transform": [{"filter": f"datum['{what}'] == 'measured'"}],
                "mark": {"type": "point", "filled": False, "size": 80, "strokeWidth": 2},
                "encoding": {**place, "shape": shapes},
            },
        ],
    }
