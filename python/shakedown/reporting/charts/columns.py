"""Bars, side by side or stacked."""

from __future__ import annotations

from typing import Any

from shakedown.reporting.charts.figure import Definition
from shakedown.reporting.charts.parts import (
    HEIGHT,
    WIDTH,
    Values,
    axis_of,
    colour_of,
    decades,
    names_axis,
    order_of,
    panelled,
    power_below,
    quantity,
)
from shakedown.reporting.charts.theme import INK


def grouped_bars(
    values: Values,
    x: str,
    series: str,
    y: str,
    *,
    log: bool = False,
    facet: str | None = None,
    free: bool = False,
    x_title: str | None = None,
) -> Definition:
    """Bars side by side for each ``x``; ``y`` is also the axis' title.

    Args:
        values: rows.
        x, series, y: fields of the rows; values are in their order of first appearance.
        log: logarithmic heights.
        facet: field whose values each have a panel, side by side.
        free: each panel has its own scale.
        x_title: title of the horizontal axis.
    """
    names, groups = order_of(values, series), order_of(values, x)
    count = len(order_of(values, facet)) if facet else 1
    floor = {}
    scale: dict[str, Any] = {}
    ticks: dict[str, Any] = {}
    if log:
        least = min(float(str(row[y])) for row in values if float(str(row[y])) > 0)
        most = max(float(str(row[y])) for row in values)
        bottom, top = 10.0 ** power_below(0.8 * least), 10.0 ** (power_below(most) + 1)
        floor = {"y2": {"datum": bottom}}
        scale = {"type": "log", "domain": [bottom, min(top, 1.3 * most)], "nice": False}
        ticks = {"values": decades(bottom, top)}
    unit = _bars(
        _names(x, groups, count, x_title),
        {
            "xOffset": {"field": series, "type": "nominal", "sort": names},
            "y": quantity(y, scale=scale, axis=axis_of(format=",~r", **ticks)),
            **floor,
            "color": colour_of(series, names),
        },
        count,
    )
    definition = panelled(unit, values, None, facet)
    if facet:
        # Panels of grouped bars share their horizontal scale; with independent scales, bars have no width.
        definition["resolve"] = {"scale": {"y": "independent" if free else "shared"}}
    return definition


def stacked_bars(
    values: Values,
    x: str,
    part: str,
    y: str,
    *,
    panels: str | None = None,
    facet: str | None = None,
    free: bool = False,
    y_max: float | None = None,
    x_title: str | None = None,
) -> Definition:
    """Stacked bars of parts; fields as in ``grouped_bars``; ``free`` scales each panel independently.

    ``panels`` is like ``facet``, but the panels are one above the other.
    """
    names, groups = order_of(values, part), order_of(values, x)
    count = len(order_of(values, facet)) if facet else 1
    ranked = [{**row, "_rank": names.index(str(row[part]))} for row in values]
    scale: dict[str, Any] = {} if y_max is None else {"scale": {"domain": [0, y_max], "clamp": True}}
    unit = _bars(
        _names(x, groups, count, x_title),
        {
            "y": quantity(y, stack="zero", axis=axis_of(format=",~r"), **scale),
            "color": colour_of(part, names),
            "order": {"field": "_rank", "type": "quantitative"},
        },
        count,
        panels,
    )
    definition = panelled(unit, ranked, panels, facet)
    if free and (panels or facet):
        definition["resolve"] = {"scale": {"y": "independent", "x": "independent"}}
    return definition


def _names(x: str, groups: list[str], count: int, title: str | None) -> dict[str, Any]:
    """The horizontal axis of `count` panels."""
    return {"field": x, "type": "nominal", "sort": groups, "title": title, "axis": names_axis(groups, count)}


def _bars(x: dict[str, Any], encoding: dict[str, Any], count: int, panels: str | None = None) -> Definition:
    return {
        "mark": {"type": "bar", "stroke": INK, "strokeWidth": 0.5},
        "encoding": {"x": x, **encoding},
        "width": WIDTH / count - 10 * (count - 1),
        "height": HEIGHT if not panels else HEIGHT * 0.62,
    }
