"""Simulated fleets over time, for figures: clients that are not ready; loads of cells and servers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import polars as pl

from shakedown.reporting.charts.storm import ACCESS, GONE, PAUSING, SERVER, Load, Storm, storms
from shakedown.reporting.columns import Row
from shakedown.reporting.figures import trimmed
from shakedown.results.fleets import OF_CELLS, OF_FLEETS, OF_SERVERS
from shakedown.schema.units import parse_duration_s

if TYPE_CHECKING:
    from shakedown.results.folder import Results

READY_SHARE = 0.99
_CAUSES = {ACCESS: "seeking", SERVER: "at_server", PAUSING: "pausing"}


def loads_of(series: Sequence[Mapping[str, Any]], cells: float | None, together: int) -> list[Load]:
    """The known loads of cells, and of the server's queue and workers; `together` intervals are merged."""
    if not series:
        return []
    width_s = series[0]["end_s"] - series[0]["start_s"]
    groups = [series[at : at + together] for at in range(0, len(series), together)]

    def mean(key: str, per: float) -> list[float]:
        return [sum(one[key] or 0.0 for one in group) / len(group) / per for group in groups]

    def load(name: str, key: str, per: float, unit: str, part: str = "") -> Load:
        values = mean(key, per)
        ends = [group[-1]["end_s"] for group in groups]
        most = f"at most {trimmed(max(values))}{unit}"
        return Load(name, list(zip(ends, values, strict=True)), most, mean(part, per) if part else ())

    found = []
    if cells:
        if any(one["sent"] for one in series):
            found.append(load("attempts at access per second", "sent", width_s, "", "collided"))
        for key, way in (("up", "from"), ("down", "to")):
            found.append(load(f"a cell's time {way} clients, %", key, 0.01, " %"))
        found.append(load("kB/s a cell", "bytes", 1e3 * width_s * cells, " kB/s"))
    if any(one["refused"] for one in series):
        found.append(load("connections refused per second", "refused", width_s, ""))
    found.append(load("flights waiting at the server", "waiting", 1.0, ""))
    found.append(load("workers at work", "busy", 1.0, ""))
    if any(one["servers"] is not None for one in series):
        found.append(load("servers in service", "servers", 1.0, ""))
    return found


def drawing(results: Results, rows: Sequence[Row], arrive_s: float) -> Any:  # noqa: ANN401 - `Figure.define`'s
    shown = [storm_of(results, row) for row in rows]
    return lambda width: storms(shown, arrive_s, width)


def arrival_window_s(arrivals: str) -> float:
    """The time within which a storm's clients arrive; 0 for other arrivals."""
    match = re.match(r"storm:([^+]+)", arrivals)
    return parse_duration_s(match[1]) if match else 0.0


def storm_of(results: Results, row: Row) -> Storm:
    return _course(row["label"], points(results, row), row["clients"], last_s(row))


def _course(name: str, series: Sequence[Row], clients: float, recovery_s: float) -> Storm:
    """Clients over time: sums over replications; clients by cause are averages."""
    inside, most_in_s = 0.0, None
    for point in series:
        missing = READY_SHARE * clients - inside
        inside += point["completed"]
        if missing <= point["completed"] > 0.0:
            width_s = point["end_s"] - point["start_s"]
            most_in_s = min(point["start_s"] + width_s * missing / point["completed"], recovery_s)
            break
    causes = {
        cause: [point["outside"] * point[name] / max(point["in_flight"], 1e-9) for point in series]
        for cause, name in _CAUSES.items()
    }
    failed = list(accumulate(point["failed"] for point in series))
    outside = [(point["end_s"], point["outside"]) for point in series]
    return Storm(
        name, outside, recovery_s, failed[-1] if failed else 0.0, most_in_s, {**causes, GONE: failed}
    )


def kinds_drawing(series: Sequence[tuple[str, Sequence[Row]]], arrive_s: float) -> Any:  # noqa: ANN401 - `Figure.define`'s
    """Kinds of clients over time, each with an area, from their names and intervals."""
    shown = []
    for name, found in series:
        ready = [point["end_s"] for point in found if point["completed"]]
        clients = sum(point["arrived"] for point in found)
        shown.append(_course(name, found, clients, max(ready, default=0.0)))
    return lambda width: storms(shown, arrive_s, width)


def kind_points(results: Results, row: Row, kinds: Sequence[Row]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The clients of each kind of a mixture over time, with the kind's name."""
    series = results.fleet_kind_series.filter(pl.col("scenario") == row["scenario"]).sort("item")
    found = []
    for kind in kinds:
        mine = series.filter(pl.col("class") == str(kind["item"]))
        name = f"{kind['suite']}, {kind['device']} over {kind['bearer']}"
        about = {"suite": kind["suite"], "device": kind["device"], "bearer": kind["bearer"]}
        found.append((name, _points(mine, row["width_s"], {**about, "class": str(kind["item"])})))
    return found


def last_s(row: Row) -> float:
    """When the last client was ready, as far as it is known. Folders written before `last_ready_s` was saved
    have the recovery time only.
    """
    names = ("last_ready_s", "last_ready_low_s", "recovery_s", "recovery_low_s")
    return float(next((row[name] for name in names if row[name]), 0.0))


def points(results: Results, row: Row) -> list[dict[str, Any]]:
    """A fleet over time, one row per interval."""
    series = results.fleet_series.filter(pl.col("scenario") == row["scenario"]).sort("item")
    about = {name: row[name] for name in ("arrivals", "device", "bearer")}
    return _points(series, row["width_s"], {"suite": row["label"], **about})


def _points(series: pl.DataFrame, width_s: float, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    outside = 0.0
    for one in series.iter_rows(named=True):
        outside += one["arrived"] - one["completed"] - one["failed"]
        known = {name: one[name] for name in (*OF_FLEETS, *OF_SERVERS, *OF_CELLS) if name in one}
        times = {"start_s": one["item"] * width_s, "end_s": (one["item"] + 1) * width_s}
        found.append({**about, **times, **known, "outside": outside, "kind": "simulated"})
    return found
