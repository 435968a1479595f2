"""Predictions and queues as rows of the tidy table, and back; see `results.tidy` for the quantities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import polars as pl

from shakedown.results.tidy import SCHEMA, Row

_PARTS = ("client", "server", "transmission", "queue", "total")
_SCENARIO = ("suite", "device", "server_device", "bearer", "rate_per_s", "model", "kind")
_CAPTURED = ("capture", "connection")
"""Of predictions that price a captured trace: where it was captured."""


def to_table(
    predictions: Sequence[Mapping[str, Any]], queues: Sequence[Mapping[str, Any]], provenance: str
) -> pl.DataFrame:
    """Rows of `predict` and queue curves as a table with the columns of `SCHEMA`."""
    empty: Row = dict.fromkeys(SCHEMA)
    rows = [*_predicted(predictions), *_queued(queues)]
    return pl.DataFrame([{**empty, "provenance": provenance, **row} for row in rows], schema=SCHEMA)


def _predicted(predictions: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    for item, one in enumerate(predictions):
        captured = {column: one.get(column) for column in _CAPTURED}
        place = {**{column: one[column] for column in _SCENARIO}, **captured, "item": item}
        for part in _PARTS:
            yield {**place, "quantity": f"predicted.{part}", "value": one[f"{part}_s"], "unit": "s"}
        for statistic, value in zip(("low", "high"), one["range_s"], strict=True):
            yield {
                **place,
                "quantity": "predicted.total",
                "statistic": statistic,
                "value": value,
                "unit": "s",
            }
        yield {**place, "quantity": "predicted.utilisation", "value": one["utilisation"], "unit": "1"}
        yield {**place, "quantity": "predicted.energy", "value": one["energy_j"], "unit": "J"}


def _queued(queues: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    for item, one in enumerate(queues):
        place = {
            "suite": one["suite"],
            "server_device": one["server_device"],
            "item": item,
            "kind": "modelled",
            "model": "default",
        }
        yield {**place, "quantity": "queue.service", "value": one["service_s"], "unit": "s"}
        yield {**place, "quantity": "queue.knee", "value": one["knee_per_s"], "unit": "1/s"}
        yield {**place, "quantity": "queue.limit", "value": one["limit_per_s"], "unit": "1/s"}
        for rate, wait in one["points"]:
            yield {**place, "quantity": "queue.wait", "rate_per_s": rate, "value": wait, "unit": "s"}


def extrapolated_of(predictions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What of the predictions is no figure: which prices were extrapolated, once for each pair of devices."""
    return {_pair(one): one["extrapolated"] for one in predictions}


def _pair(one: Mapping[str, Any]) -> str:
    captured = f" {one['connection']} of {one['capture']}" if one.get("capture") else ""
    return f"{one['suite']} {one['device']} {one['server_device']}{captured}"


def predictions_of(table: pl.DataFrame, extrapolated: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of `predict` that `to_table` took apart. Raises `KeyError` where figures are missing."""
    found: dict[int, dict[str, Any]] = {}
    for row in table.filter(pl.col("quantity").str.starts_with("predicted.")).to_dicts():
        captured = {column: row[column] for column in _CAPTURED if row[column] is not None}
        place = {**{column: row[column] for column in _SCENARIO}, **captured}
        one = found.setdefault(row["item"], {**place, "range_s": [None, None]})
        part = row["quantity"].removeprefix("predicted.")
        if row["statistic"] is not None:
            one["range_s"][row["statistic"] == "high"] = row["value"]
        else:
            one[{"utilisation": "utilisation", "energy": "energy_j"}.get(part, f"{part}_s")] = row["value"]
    return [{**found[item], "extrapolated": extrapolated[_pair(found[item])]} for item in sorted(found)]


def queues_of(table: pl.DataFrame) -> list[dict[str, Any]]:
    """The queue curves that `to_table` took apart."""
    found: dict[int, dict[str, Any]] = {}
    names = {"service": "service_s", "knee": "knee_per_s", "limit": "limit_per_s"}
    for row in table.filter(pl.col("quantity").str.starts_with("queue.")).to_dicts():
        one = found.setdefault(
            row["item"], {"suite": row["suite"], "server_device": row["server_device"], "points": []}
        )
        part = row["quantity"].removeprefix("queue.")
        if part == "wait":
            cast("list[tuple[float, float]]", one["points"]).append((row["rate_per_s"], row["value"]))
        else:
            one[names[part]] = row["value"]
    return [found[item] for item in sorted(found)]
