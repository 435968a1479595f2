"""Queries of the tidy table for simulated fleets: one row per fleet, and their time series."""

from __future__ import annotations

import polars as pl

from shakedown.results.parts import over_parts
from shakedown.results.quantities import Names, columns, texts
from shakedown.results.queries import PLACE, label, wide

OF_CLIENTS = (
    "arrived",
    "completed",
    "failed",
    "in_flight",
    "pausing",
    "seeking",
    "at_server",
    "under_way",
)
OF_FLEETS = (*OF_CLIENTS, "retries", "refused", "waiting", "busy")
OF_SERVERS = ("servers", "starting")
"""Columns of a time series in which servers start and stop."""

FLEET_OPTIONS = ("retry", "admission", "autoscale", "sessions", "records")
"""Options of a fleet that are texts, or null."""

OF_CELLS = ("sent", "collided", "up", "down", "bytes")
"""Columns of a time series with cells; `up` and `down` are utilisations of the channels."""

STATISTICS = ("mean", "margin", "min", "p50", "p90", "p95", "p99", "max", "p99_margin")


def dashed(name: str) -> str:
    """A column of a time series, spelled as in its quantity: `series.in-flight`."""
    return name.replace("_", "-")


def _labelled(view: pl.DataFrame) -> pl.DataFrame:
    named = label(view)
    named = pl.when(pl.col("capture").is_null()).then(named).otherwise("captured: " + named)
    # The label distinguishes protocol engines from the replay of the same suite.
    engines = pl.format("{} ({} engines)", named, pl.col("endpoints"))
    return view.with_columns(label=pl.when(pl.col("endpoints").is_null()).then(named).otherwise(engines))


@over_parts("simulated", _labelled)
def fleets(table: pl.DataFrame) -> pl.DataFrame:
    """Simulated fleets, one per row, in the table's order; times in seconds.

    `arrivals`, `clients`, `replications` (null in results of earlier versions), `cells`, `retry`,
    `admission`, `autoscale`, `sessions` and `records` (null if not given), `completed`, `attempts`, `failed`,
    `handshake_mean_s` … `handshake_max_s`, `wait_mean_s`, `wait_margin_s`, `wait_missing`, `energy_mean_j`,
    `energy_basis`, `energy_missing`, `wake_tail_j`, `wake_tail_low_j`, `wake_tail_high_j`, `wake_tail_basis`,
    `wake_tail_missing`, `basis` (of the times), `missing` (why they are lower bounds), `unstable` (1, 0, or
    null if unknown),
    `utilisation`, `records_utilisation` (the part of it for records), `offered`, `recovery_s`, `last_ready_s`
    (of the clients that did not fail; `recovery_s` is null if clients failed). All of these are null if work
    has no cost figure; `utilisation_low` and similar columns are lower bounds. `in_flight`, the three
    `modelled_…_s`, `width_s` of the time series, `without_cost`;
    `endpoints`: the stacks whose engines ran; `mix`: the mixture of clients, null for clients of one kind;
    `imprecise`: why figures are less precise than requested; `saturated`: cells, or a limit of
    handshakes, that cannot carry the clients.
    """
    rows = table.filter((pl.col("kind") == "simulated") & pl.col("item").is_null())
    names: Names = {
        **columns("simulated", ("modelled.handshake", "modelled.wait", "modelled.flights-wait")),
        **columns("simulated", ("recovery", "last-ready"), (None, "low")),
        **columns("simulated", ("utilisation", "records.utilisation", "offered"), ("low",)),
        **columns("simulated", ("in-flight", "unstable")),
        **columns("simulated", ("wake-tail", "unused-key-share"), (None, "low", "high")),
        **columns("series", ("width",)),
        **columns("simulated", ("clients", "replications", "cells", "completed", "refused", "attempts")),
        **columns("simulated", ("utilisation", "records.utilisation", "offered", "seed")),
        **columns("simulated", ("handshake", "wait", "energy"), STATISTICS),
    }
    said = texts(
        "simulated", "arrivals", "basis", "without_cost", "missing", "wait.missing", "energy.basis",
        "energy.missing", "energy.terms", "wake-tail.basis", "wake-tail.missing", "endpoints", "mix",
        "imprecise", "saturated", *FLEET_OPTIONS, "unused-key-share.basis", "unused-key-share.missing",
    )  # fmt: skip
    view = wide(rows, PLACE, names, texts=said)
    failed = rows.filter(pl.col("quantity") == "simulated.failed").group_by("scenario")
    view = view.join(
        failed.agg(pl.col("value").sum().alias("failed")), on="scenario", how="left", maintain_order="left"
    )
    return view.with_columns(pl.col("failed").fill_null(0.0))


@over_parts("simulated")
def fleet_kinds(table: pl.DataFrame) -> pl.DataFrame:
    """Kinds of clients of mixtures, one per row: `scenario`, `item`, suite, device and bearer, `share`,
    `resumption`, `clients`, `failed`, `handshake_mean_s` … `handshake_max_s`, `basis`, `missing`.
    """
    rows = table.filter(
        (pl.col("kind") == "simulated")
        & pl.col("item").is_not_null()
        & pl.col("quantity").str.starts_with("simulated.")
    )
    names = columns("simulated", ("share", "resumption", "clients", "failed"))
    names |= columns("simulated", ("handshake",), STATISTICS)
    names |= columns("simulated", ("unused-key-share",), (None, "low", "high"))
    keys = ("scenario", "item", "suite", "device", "bearer")
    said = texts("simulated", "basis", "missing", "unused-key-share.basis", "unused-key-share.missing")
    return wide(rows, keys, names, texts=said)


@over_parts("simulated")
def fleet_series(table: pl.DataFrame) -> pl.DataFrame:
    """Time series of fleets, one interval per row: `scenario`, `item`, and the figures of the interval."""
    rows = table.filter((pl.col("kind") == "simulated") & pl.col("quantity").str.starts_with("series."))
    rows = rows.filter(pl.col("item").is_not_null() & pl.col("class").is_null())
    names = columns("series", map(dashed, (*OF_FLEETS, *OF_SERVERS, *OF_CELLS)))
    # Cells may still transmit data after all clients have ended.
    return wide(rows, ("scenario", "item"), names).with_columns(
        pl.col(name).fill_null(0.0) for name in OF_FLEETS
    )


@over_parts("simulated")
def fleet_kind_series(table: pl.DataFrame) -> pl.DataFrame:
    """`fleet_series` by kind of client of a mixture: `class` is the kind's number, from 0, as text."""
    rows = table.filter((pl.col("kind") == "simulated") & pl.col("quantity").str.starts_with("series."))
    rows = rows.filter(pl.col("item").is_not_null() & pl.col("class").is_not_null())
    names = columns("series", map(dashed, OF_CLIENTS))
    return wide(rows, ("scenario", "class", "item"), names)
