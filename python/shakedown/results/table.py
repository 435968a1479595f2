"""The tidy table, with one row per figure of any kind: its columns, and functions that create rows.

The columns of a row are its scenario (a handshake's identity, devices, bearer, rate), its figure (quantity,
side, message, operation, statistic), value and unit, number of repetitions, kind of figure, and run.
`quantities.csv` describes the quantities.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from shakedown.results.quantities import UNITS
from shakedown.schema.identity import Identified

signal.siginterrupt(signal.SIGINT, True)
"""polars installs its own SIGINT handler, with which blocking system calls would continue after Ctrl-C."""

IDENTITY_COLUMNS = (
    "suite",
    "client_stack",
    "client_stack_version",
    "server_stack",
    "server_stack_version",
    "carrier",
    "credentials",
)
"""Columns of a handshake's identity."""

SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(IDENTITY_COLUMNS, pl.String()),
    "device": pl.String(),
    "server_device": pl.String(),
    "bearer": pl.String(),
    "rate_per_s": pl.Float64(),
    "workers": pl.Int32(),
    "model": pl.String(),
    "capture": pl.String(),
    "connection": pl.Int64(),
    "quantity": pl.String(),
    "side": pl.String(),
    "item": pl.Int32(),
    "message_index": pl.Int32(),
    "message": pl.String(),
    "sender": pl.String(),
    "flight": pl.Int32(),
    "message_unit": pl.Int32(),
    "operation": pl.String(),
    "algorithm": pl.String(),
    "parameters": pl.String(),
    "class": pl.String(),
    "statistic": pl.String(),
    "value": pl.Float64(),
    "unit": pl.String(),
    "text": pl.String(),
    "n": pl.Int64(),
    "samples": pl.List(pl.Float64()),
    "kind": pl.String(),
    "scenario": pl.String(),
    "provenance": pl.String(),
}
"""Columns of the table, in order."""

Row = dict[str, Any]


def identity_columns(one: Identified) -> Row:
    """A handshake's identity as columns."""
    return {
        "suite": one.suite,
        "client_stack": one.client_stack.name if one.client_stack else None,
        "client_stack_version": one.client_stack.version if one.client_stack else None,
        "server_stack": one.server_stack.name if one.server_stack else None,
        "server_stack_version": one.server_stack.version if one.server_stack else None,
        "carrier": one.carrier,
        "credentials": one.credentials,
    }


def figure(quantity: str, value: float | None, **columns: object) -> Row:
    """A row with a number, in the quantity's unit."""
    number = None if value is None else float(value)
    return {"quantity": quantity, "unit": UNITS[quantity], "value": number, **columns}


def spread(quantity: str, found: object, statistics: Iterable[str], **columns: object) -> Iterator[Row]:
    """A row for each statistic that is a field of an object."""
    for statistic in statistics:
        yield figure(quantity, getattr(found, statistic), statistic=statistic, **columns)


def fact(quantity: str, text: str | None, **columns: object) -> Row:
    return {"quantity": quantity, "text": text, **columns}


def frame(rows: Iterable[Row], common: Mapping[str, Any]) -> pl.DataFrame:
    """Converts rows to a table with the columns of `SCHEMA`; `common` has values for all rows."""
    kept = list(rows)
    data = {name: [row.get(name, common.get(name)) for row in kept] for name in SCHEMA}
    return pl.DataFrame(data, schema=SCHEMA)


def complete(table: pl.DataFrame, *more: str) -> pl.DataFrame:
    """A table with all columns of `SCHEMA`, in order; missing ones are null. `more` columns follow."""
    there = set(table.columns)
    missing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in there]
    return table.with_columns(missing).select([*SCHEMA, *more])


def empty() -> pl.DataFrame:
    return pl.DataFrame(schema=SCHEMA)
