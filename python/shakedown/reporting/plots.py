"""Charts of objects of the schema, with the report's chart library: what `Rows.plot` draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shakedown.errors import InputError
from shakedown.reporting.charts import Definition, grouped_bars
from shakedown.reporting.charts.figure import WIDE_PX
from shakedown.reporting.charts.map import time_map
from shakedown.reporting.charts.ranges import spans
from shakedown.reporting.charts.theme import vega_config
from shakedown.reporting.columns import shared
from shakedown.reporting.columns.objects import object_table
from shakedown.reporting.figures import digits_of

Rows = Sequence[Mapping[str, Any]]


def plot_definition(objects: Sequence[Any]) -> Definition:
    """Vega-Lite of objects of one type. Raises `InputError` for types without a chart."""
    kinds = {type(one).__name__ for one in objects}
    table = object_table(objects) if len(kinds) == 1 else None
    draw = _CHARTS.get(next(iter(kinds), ""))
    if table is None or draw is None:
        found = f"rows of {len(kinds)} kinds" if len(kinds) > 1 else next(iter(kinds), "no rows")
        raise InputError(f"there is no chart of {found}; accepted: rows of {', '.join(_CHARTS)}")
    labels = [row.get("label", row["suite"]) for row in table.rows]
    names = shared(labels)
    short = [
        {**row, "label": names.short.get(label, label)} for row, label in zip(table.rows, labels, strict=True)
    ]
    title = "; ".join(filter(None, (table.title, names.pattern)))
    return {"title": title, **draw(short), "config": {**vega_config(), "background": "white"}}


def _measured(rows: Rows) -> Definition:
    from shakedown.reporting.html.measured import time_section

    [block] = time_section(rows).blocks
    assert block.figure is not None
    return block.figure.define(WIDE_PX)


def _predictions(rows: Rows) -> Definition:
    rates = len({row["rate_per_s"] for row in rows}) > 1
    shown = [
        {
            **row,
            "label": f"{row['label']} · {row['rate_per_s']:g}/s" if rates else row["label"],
            "missing": bool(row.get("ready_missing")),
        }
        for row in rows
    ]
    return time_map(shown, WIDE_PX)


def _capacities(rows: Rows) -> Definition:
    """Rates with their 90 % intervals; rows without a rate are not drawn."""
    low, rate, high = "rate_low_per_s", "rate_per_s", "rate_high_per_s"
    known = [
        {
            **row,
            "label": _label(row, rows),
            rate: float(f"{row[rate]:.{digits_of(row[rate], row[low], row[high])}g}"),
            high: row[high] or row[rate],
        }
        for row in rows
        if row.get(rate) is not None
    ]
    if not known:
        raise InputError("none of the rows has a rate; accepted: rows with a known capacity")
    return spans(known, "label", rate, low, high, "handshakes/s, 90 % interval")


def _fleets(rows: Rows) -> Definition:
    statistics = {"p50": "median", "p95": "p95", "p99": "p99"}
    axis = "ready (s)"
    values = [
        {
            "label": _label(row, rows),
            "statistic": name,
            axis: row[f"ready_{key}_s"],
        }
        for row in rows
        for key, name in statistics.items()
        if row.get(f"ready_{key}_s")
    ]
    if not values:
        raise InputError("no client of any row got through; accepted: rows with times")
    return grouped_bars(values, "label", "statistic", axis, log=True)


def _label(row: Mapping[str, Any], rows: Rows) -> str:
    """The suite, with the keys of the place in which the rows differ."""
    places = ("mix", "arrivals", "device", "bearer", "server_device")
    differ = [key for key in places if len({one.get(key) for one in rows}) > 1]
    return " · ".join([row["label"], *(str(row[key]) for key in differ if row.get(key))])


_CHARTS: dict[str, Callable[[Rows], Definition]] = {
    "Measurement": _measured,
    "Prediction": _predictions,
    "Capacity": _capacities,
    "Simulated": _fleets,
    "SimulatedMix": _fleets,
}
