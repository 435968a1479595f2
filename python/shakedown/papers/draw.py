"""The kinds of figures that the papers have, as Vega-Lite definitions in the house's colours and patterns.

Categories differ in colour and pattern, lines in colour, dash and symbol, so that print without colour tells
them apart. Sizes are for a column of 16 cm, where the smallest letters come to about 8 points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shakedown.report.figure import Definition, Figure
from shakedown.report.theme import FILLS, GRID, INK, MUTED, PAPER

WIDTH, HEIGHT = 580, 270
FONT_PX = 13

Values = Sequence[Mapping[str, object]]

_LOOKS = ("key", "signature", "common", "hello", "busy")
_LINES = ("key", "signature", "hello", "common", "busy")
_DASHES: tuple[list[int], ...] = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [14, 4])
_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "cross")
_DARKER_GREY = {"common": "#6b7682", "busy": "#17212b"}


@dataclass(frozen=True)
class Drawing:
    """A figure of a paper, drawn or waiting.

    Attributes:
        number: as the paper numbers it.
        title: what it shows.
        note: where its figures come from, and what was never published.
        kind: modelled, measured or published.
        definition: Vega-Lite, or None for a figure that waits.
        data: what is drawn, as figures.
        waits_for: the part that is missing, empty where nothing is.
    """

    slug: str
    number: str
    title: str
    note: str
    kind: str
    definition: Definition | None = None
    data: Values = ()
    waits_for: str = ""

    @property
    def name(self) -> str:
        """The figure's file name without its ending."""
        number = self.number.translate(str.maketrans(". ", "--", "()"))
        return f"{self.slug}-figure-{number}"

    @property
    def heading(self) -> str:
        """The figure's number and title."""
        return f"{'Figures' if ' ' in self.number else 'Figure'} {self.number}: {self.title}"

    def figure(self) -> Figure:
        """The house's figure. Raises `ValueError` for one that waits."""
        definition = self.definition
        if definition is None:
            raise ValueError(f"{self.name} waits for {self.waits_for}")
        titled = {**definition, "title": _title(self.heading)}
        return Figure(
            self.name, self.title, self.kind, f"{self.title}. {self.note}", lambda _: titled, self.data
        )


def waiting(slug: str, number: str, title: str, waits_for: str) -> Drawing:
    """A figure that is listed, and drawn when its part is there."""
    return Drawing(slug, number, title, "", "measured", None, (), waits_for)


def grouped_bars(
    values: Values,
    x: str,
    series: str,
    y: str,
    *,
    panels: str | None = None,
    log: bool = False,
    facet: str | None = None,
    free: bool = False,
    x_title: str | None = None,
) -> Definition:
    """Bars side by side for each ``x``: field names of ``values``; ``y`` is also the axis' title.

    Args:
        values: rows.
        x, series, y: their fields; orders are those in which values first come.
        panels: field whose values get a panel each, above each other.
        log: logarithmic heights.
        facet: as panels, side by side.
        free: a scale of its own for each panel.
        x_title: title of the horizontal axis.
    """
    names, groups = _order(values, series), _order(values, x)
    count = len(_order(values, facet)) if facet else 1
    floor = {}
    scale: dict[str, Any] = {}
    ticks: dict[str, Any] = {}
    if log:
        least = min(float(str(row[y])) for row in values if float(str(row[y])) > 0)
        most = max(float(str(row[y])) for row in values)
        bottom, top = 10.0 ** _below(0.8 * least), 10.0 ** (_below(most) + 1)
        floor = {"y2": {"datum": bottom}}
        scale = {"type": "log", "domain": [bottom, min(top, 1.3 * most)], "nice": False}
        ticks = {"values": _decades(bottom, top)}
    encoding: dict[str, Any] = {
        "x": {
            "field": x,
            "type": "nominal",
            "sort": groups,
            "title": x_title,
            "axis": _names_axis(groups, count),
        },
        "xOffset": {"field": series, "type": "nominal", "sort": names},
        "y": {
            "field": y,
            "type": "quantitative",
            "title": y,
            "scale": scale,
            "axis": _axis(format=",~r", **ticks),
        },
        **floor,
        "color": _colour(series, names),
    }
    unit: Definition = {
        "mark": {"type": "bar", "stroke": INK, "strokeWidth": 0.5},
        "encoding": encoding,
        "width": WIDTH / count - 10 * (count - 1),
        "height": HEIGHT if not panels else HEIGHT * 0.62,
    }
    definition = _panelled(unit, values, panels, facet)
    if panels or facet:
        # Bars side by side share their horizontal scale with the other panels: else they get no width.
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
    """Bars of parts on top of each other; fields as in ``grouped_bars``; ``free`` scales each panel alone."""
    names, groups = _order(values, part), _order(values, x)
    count = len(_order(values, facet)) if facet else 1
    ranked = [{**row, "_rank": names.index(str(row[part]))} for row in values]
    unit: Definition = {
        "mark": {"type": "bar", "stroke": INK, "strokeWidth": 0.5},
        "encoding": {
            "x": {
                "field": x,
                "type": "nominal",
                "sort": groups,
                "title": x_title,
                "axis": _names_axis(groups, count),
            },
            "y": {
                "field": y,
                "type": "quantitative",
                "title": y,
                "stack": "zero",
                **({} if y_max is None else {"scale": {"domain": [0, y_max], "clamp": True}}),
                "axis": _axis(format=",~r"),
            },
            "color": _colour(part, names),
            "order": {"field": "_rank", "type": "quantitative"},
        },
        "width": WIDTH / count - 10 * (count - 1),
        "height": HEIGHT if not panels else HEIGHT * 0.62,
    }
    definition = _panelled(unit, ranked, panels, facet)
    if free and (panels or facet):
        definition["resolve"] = {"scale": {"y": "independent", "x": "independent"}}
    return definition


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

    ``marks`` are single points with a text beside them (what a paper printed), or under them where they are
    ``below``.
    """
    names = _order(values, series)
    # What lies above the axis ends at it: clipping by the renderer would leave stray ink.
    shown = [dict(row) for row in values if y_max is None or float(str(row[y])) <= y_max]
    y_scale: dict[str, Any] = {"type": "log"} if log_y else {}
    ticks: dict[str, Any] = {}
    if log_y:
        heights = [float(str(row[y])) for row in shown]
        ticks = {"values": _decades(10.0 ** _below(min(heights)), 10.0 ** (_below(max(heights)) + 1))}
    if y_max is not None:
        y_scale |= {"domain": [y_min, y_max], "nice": False}
    at_x = {
        "field": x,
        "type": "quantitative",
        "title": x,
        "scale": {"type": "log", "nice": False}
        if log_x
        else {"nice": False, **({} if x_max is None else {"domain": [0, x_max]})},
        "axis": _axis(format="~s" if log_x else ",~r", tickCount=10),
    }
    at_y = {
        "field": y,
        "type": "quantitative",
        "title": y,
        "scale": y_scale,
        "axis": _axis(format=",~r", **ticks),
    }
    layer: list[Definition] = [
        {
            "mark": {
                "type": "line",
                "strokeWidth": 2,
                **({"point": {"filled": False, "size": 55, "strokeWidth": 1.6}} if symbols else {}),
            },
            "encoding": {
                "x": at_x,
                "y": at_y,
                "color": _line_colour(series, names),
                "strokeDash": {
                    "field": series,
                    "type": "nominal",
                    "sort": names,
                    "scale": {"domain": names, "range": [_DASHES[i % 5] for i in range(len(names))]},
                    "legend": _legend(names, symbolType="stroke", symbolSize=600, symbolStrokeWidth=2),
                },
                **(
                    {
                        "shape": {
                            "field": series,
                            "type": "nominal",
                            "scale": {"domain": names, "range": [_SYMBOLS[i % 5] for i in range(len(names))]},
                            "legend": None,
                        }
                    }
                    if symbols
                    else {}
                ),
            },
        }
    ]
    if marks:
        point = {"x": {"field": x, "type": "quantitative"}, "y": {"field": y, "type": "quantitative"}}
        layer += [
            {
                "data": {"values": list(marks)},
                "mark": {"type": "point", "shape": "cross", "size": 90, "color": INK, "strokeWidth": 2},
                "encoding": point,
            },
            *(
                {
                    "data": {"values": list(marks)},
                    "mark": {
                        "type": "text",
                        "align": "left",
                        "dx": 9,
                        "dy": {"expr": "datum.below ? 15 : -9"},
                        "fontSize": FONT_PX - 1,
                        **look,
                    },
                    "encoding": {**point, "text": {"field": label}},
                }
                for look in ({"stroke": PAPER, "strokeWidth": 4, "color": PAPER}, {"color": INK})
            ),
        ]
    height = HEIGHT if not panels else HEIGHT * 0.75
    if panels:
        return {
            "data": {"values": shown},
            "facet": {"row": _header(panels, _order(values, panels))},
            "spec": {"layer": layer, "width": WIDTH, "height": height},
        }
    return {"data": {"values": shown}, "layer": layer, "width": WIDTH, "height": height}


def regression(values: Values, x: str, y: str, series: str, what: str) -> Definition:
    """Points and the lines fitted to them; ``what`` tells rows "measured" from rows "regression"."""
    names = _order(values, series)
    place = {
        "x": {
            "field": x,
            "type": "quantitative",
            "title": x,
            "scale": {"nice": False},
            "axis": _axis(format=",~r"),
        },
        "y": {"field": y, "type": "quantitative", "title": y, "axis": _axis(format=",~r")},
        "color": {
            **_line_colour(series, names),
            "legend": _legend(names, symbolSize=110, symbolStrokeWidth=2),
        },
    }
    style = {"type": "nominal", "sort": names}
    return {
        "data": {"values": list(values)},
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [
            {
                "transform": [{"filter": f"datum['{what}'] == 'regression'"}],
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {
                    **place,
                    "strokeDash": {
                        "field": series,
                        **style,
                        "scale": {"domain": names, "range": [_DASHES[i % 5] for i in range(len(names))]},
                        "legend": None,
                    },
                },
            },
            {
                "transform": [{"filter": f"datum['{what}'] == 'measured'"}],
                "mark": {"type": "point", "filled": False, "size": 80, "strokeWidth": 2},
                "encoding": {
                    **place,
                    "shape": {
                        "field": series,
                        **style,
                        "scale": {"domain": names, "range": [_SYMBOLS[i % 5] for i in range(len(names))]},
                        "legend": _legend(names, symbolSize=110, symbolStrokeWidth=2),
                    },
                },
            },
        ],
    }


def spans(values: Values, x: str, mean: str, low: str, high: str, y_title: str) -> Definition:
    """Means with one standard deviation either way, for series of which nothing else was published."""
    groups = _order(values, x)
    at_x = {"field": x, "type": "nominal", "sort": groups, "title": None, "axis": _axis(labelAngle=0)}
    quantitative = {"type": "quantitative", "title": y_title, "axis": _axis(format=",~r")}
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
    names = _order(values, series)
    rows = [{**row, "_from": 1, "_to": x_max} for row in values]
    x_axis = {
        "type": "quantitative",
        "scale": {"domain": [0, x_max], "nice": False},
        "title": x_title,
        "axis": _axis(tickCount=10),
    }
    y_axis = {"type": "quantitative", "title": y_title, "axis": _axis(format=",~r")}
    dashes = {"domain": names, "range": [_DASHES[i % 5] for i in range(len(names))]}
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
                    "color": _line_colour(series, names),
                    "strokeDash": {
                        "field": series,
                        "type": "nominal",
                        "scale": dashes,
                        "legend": _legend(names, symbolType="stroke", symbolSize=600, symbolStrokeWidth=2),
                    },
                },
            },
        ],
    }


def _title(text: str) -> dict[str, Any]:
    """A title that breaks where the drawing ends."""
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


def _axis(**more: object) -> dict[str, Any]:
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


def _names_axis(groups: Sequence[str], count: int) -> dict[str, Any]:
    """An axis of names, every one of them written; turned where they would touch."""
    crowded = sum(len(group) + 2 for group in groups) * count > 84
    return _axis(labelAngle=-55 if crowded else 0, grid=False, labelOverlap=False)


def _decades(bottom: float, top: float) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, and 2 and 5 between where there are few."""
    import math

    powers = [10.0**power for power in range(round(math.log10(bottom)), round(math.log10(top)) + 1)]
    if len(powers) > 4:
        return powers
    return [power * step for power in powers for step in (1, 2, 5)]


def _legend(names: Sequence[str], **more: object) -> dict[str, Any]:
    wide = sum(len(name) + 6 for name in names)
    longest = max((len(name) + 6 for name in names), default=1)
    columns = len(names) if wide <= 86 else max(1, 86 // longest)
    return {"labelFontSize": FONT_PX, "columns": columns, "orient": "top", "title": None, **more}


def _colour(field: str, names: Sequence[str]) -> dict[str, Any]:
    looks = [FILLS[_LOOKS[number % len(_LOOKS)]].light for number in range(len(names))]
    return {
        "field": field,
        "type": "nominal",
        "sort": list(names),
        "scale": {"domain": list(names), "range": looks},
        "legend": _legend(names, symbolStrokeColor=INK, symbolStrokeWidth=0.5),
    }


def _line_colour(field: str, names: Sequence[str]) -> dict[str, Any]:
    looks = [
        _DARKER_GREY.get(_LINES[i % len(_LINES)], FILLS[_LINES[i % len(_LINES)]].light)
        for i in range(len(names))
    ]
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": list(names), "range": looks},
        "legend": _legend(names, symbolType="stroke", symbolSize=600, symbolStrokeWidth=2),
    }


def _header(field: str, order: Sequence[str]) -> dict[str, Any]:
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


def _panelled(unit: Definition, values: Values, panels: str | None, facet: str | None) -> Definition:
    data = {"values": list(values)}
    if not panels and not facet:
        return {"data": data, **unit}
    split = {}
    if panels:
        split["row"] = _header(panels, _order(values, panels))
    if facet:
        split["column"] = _header(facet, _order(values, facet))
    return {
        "data": data,
        "facet": split,
        "spec": unit,
        "spacing": {"row": 34, "column": 20},
        "resolve": {"scale": {"x": "independent"}},
    }


def _order(values: Values, field: str) -> list[str]:
    return list(dict.fromkeys(str(row[field]) for row in values))


def _below(value: float) -> int:
    import math

    return math.floor(math.log10(value))
